#include "src/build_request.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "src/config_file.h"
#include "src/failure.h"
#include "src/log.h"

namespace mslite {
namespace {
using mindspore::AscendDeviceInfo;
using mindspore::Context;
using mindspore::CPUDeviceInfo;
using mindspore::DeviceInfoContext;
using mindspore::GPUDeviceInfo;

Failure Wrong(const std::string &message) {
  return Failure(mindspore::kLiteError, "ValueError", message);
}

template <class Number>
std::string Joined(const std::vector<Number> &numbers) {
  std::string text;
  for (Number number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

// Only what was set: the worker knows the defaults.
class Settings {
 public:
  explicit Settings(BuildRequest *request) : request_(request) {}

  void Add(const std::string &name, const std::string &value) {
    if (!value.empty()) {
      request_->settings.emplace_back(name, value);
    }
  }
  void Add(const std::string &name, int64_t number) {
    if (number != 0) {
      Add(name, std::to_string(number));
    }
  }
  void AddEntry(const std::string &key, const std::string &value) {
    if (!value.empty()) {
      request_->config["ascend_context"].emplace(key, value);  // the user's own entry counts
    }
  }

 private:
  BuildRequest *request_;
};

void AddCpu(CPUDeviceInfo *info, Settings *out) {
  out->Add("target", "cpu");
  out->Add("cpu.precision_mode", info->GetEnableFP16() ? "preferred_fp16" : "");
}

void AddGpu(GPUDeviceInfo *info, Settings *out) {
  out->Add("target", "gpu");
  out->Add("gpu.device_id", info->GetDeviceID());
  out->Add("gpu.precision_mode", info->GetEnableFP16() ? "preferred_fp16" : "");
}

void AddAscend(AscendDeviceInfo *info, Settings *out) {
  out->Add("target", "ascend");
  out->Add("ascend.device_id", info->GetDeviceID());
  out->Add("ascend.rank_id", info->GetRankID());
  out->Add("ascend.provider", info->GetProvider());
  out->Add("ascend.precision_mode", info->GetPrecisionMode());
  out->AddEntry("input_format", info->GetInputFormat());
  out->AddEntry("input_shape", info->GetInputShape());
  out->AddEntry("dynamic_batch_size", info->GetDynamicBatchSize());
  out->AddEntry("dynamic_image_size", info->GetDynamicImageSize());
  out->AddEntry("insert_op_config_file_path", info->GetInsertOpConfigPath());
  out->AddEntry("op_select_impl_mode", info->GetOpSelectImplMode());
  out->AddEntry("fusion_switch_config_file_path", info->GetFusionSwitchConfigPath());
  out->AddEntry("buffer_optimize_mode", info->GetBufferOptimizeMode());
  if (info->GetOutputType() != mindspore::DataType::kTypeUnknown) {
    LogWarning("AscendDeviceInfo::SetOutputType has no effect: outputs have the model's types");
  }
  if (!info->GetInputShapeMap().empty()) {
    LogWarning("AscendDeviceInfo::SetInputShapeMap has no effect; use SetInputShape");
  }
}

void AddDevice(const std::shared_ptr<DeviceInfoContext> &info, Settings *out) {
  switch (info->GetDeviceType()) {
    case mindspore::kCPU:
    case mindspore::kAllDevice:  // "whatever is there": the CPU always is
      if (auto cpu = info->Cast<CPUDeviceInfo>()) {
        AddCpu(cpu.get(), out);
      }
      return;
    case mindspore::kGPU:
      return AddGpu(info->Cast<GPUDeviceInfo>().get(), out);
    case mindspore::kAscend:
      return AddAscend(info->Cast<AscendDeviceInfo>().get(), out);
    default:
      throw Failure(mindspore::kLiteNotSupport, "EngineUnavailableError",
                    "device type " + std::to_string(info->GetDeviceType()) +
                        " is not supported; use CPUDeviceInfo, GPUDeviceInfo or AscendDeviceInfo");
  }
}
// The guides promise an error for a GPU behind the CPU: one of the two would be left unused.
void CheckOrder(const std::vector<std::shared_ptr<DeviceInfoContext>> &devices) {
  bool has_cpu = false;
  for (size_t i = 0; i < devices.size(); ++i) {
    has_cpu = has_cpu || devices[i]->GetDeviceType() == mindspore::kCPU;
    if (has_cpu && devices[i]->GetDeviceType() == mindspore::kGPU) {
      throw Wrong("device " + std::to_string(i) +
                  " of the context is a GPU behind the CPU; add the GPUDeviceInfo first and the "
                  "CPUDeviceInfo after it");
    }
  }
}
}  // namespace

void AddContext(const Context &given, BuildRequest *request) {
  Context context = given;  // another handle: only a changeable one tells its devices
  const auto &devices = context.MutableDeviceInfo();
  if (devices.empty()) {
    throw Wrong(
        "the context has no device; add one: "
        "context->MutableDeviceInfo().push_back(std::make_shared<CPUDeviceInfo>())");
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == nullptr) {
      throw Wrong("device " + std::to_string(i) + " of the context is a null pointer");
    }
  }
  CheckOrder(devices);
  // A runner's list may have the CPU before the Ascend device that is meant.
  auto chosen = devices.front();
  for (const auto &device : devices) {
    if (request->kind == BuildRequest::kRunner && chosen->GetDeviceType() == mindspore::kCPU) {
      chosen = device;
    }
  }
  if (context.GetThreadNum() < 0) {
    throw Wrong("the context's thread number is " + std::to_string(context.GetThreadNum()) +
                ", wanted 0 (automatic) or more");
  }
  Settings out(request);
  AddDevice(chosen, &out);
  out.Add("group_info_file", Absolute(context.GetGroupInfoFile()));
  out.Add("cpu.thread_num", context.GetThreadNum());
  out.Add("cpu.inter_op_parallel_num", context.GetInterOpParallelNum());
  out.Add("cpu.thread_affinity_mode", context.GetThreadAffinityMode());
  out.Add("cpu.thread_affinity_core_list", Joined(context.GetThreadAffinityCoreList()));
}

BuildRequest OfFile(const std::string &path, mindspore::ModelType type) {
  if (path.empty()) {
    throw Wrong("the path of the model is empty");
  }
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found;
  bool is_there = file >= 0 && fstat(file, &found) == 0;
  int error = errno;
  if (file >= 0) {
    close(file);
  }
  if (!is_there) {
    throw Wrong("model file '" + path + "' cannot be read: " + std::strerror(error));
  }
  BuildRequest request;
  request.model_type = type;
  request.path = Absolute(path);
  return request;
}

BuildRequest OfContent(const void *data, size_t size, mindspore::ModelType type) {
  if (data == nullptr || size == 0) {
    throw Wrong("got no bytes of a model: a null pointer, or none of them");
  }
  BuildRequest request;
  request.model_type = type;
  request.content = data;
  request.content_size = size;
  return request;
}
}  // namespace mslite
