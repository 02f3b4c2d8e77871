#include "include/api/model.h"

#include <utility>

#include "src/border.h"
#include "src/build_request.h"
#include "src/callbacks.h"
#include "src/log.h"
#include "src/model_impl.h"
#include "src/tensor_impl.h"

namespace mindspore {
namespace {
using mslite::BuildRequest;
using mslite::Failure;
using mslite::Guarded;
using mslite::OfContent;
using mslite::OfFile;
using mslite::OrElse;

BuildRequest Encrypted(BuildRequest request, const Key &key, const std::vector<char> &mode) {
  if (key.len == 0 || key.len > sizeof(key.key)) {
    throw Failure(kLiteError, "ValueError",
                  "the key has " + std::to_string(key.len) + " bytes, wanted 16, 24 or 32");
  }
  request.key.assign(reinterpret_cast<const char *>(key.key), key.len);
  request.key_mode = CharToString(mode);
  return request;
}

MSTensor Named(const std::vector<MSTensor> &tensors, const std::string &name) {
  for (const auto &tensor : tensors) {
    if (tensor.impl()->name == name) {
      return tensor;
    }
  }
  mslite::LogError("the model has no tensor '" + name + "' there");
  return MSTensor(nullptr);
}
}  // namespace

Model::Model() : impl_(std::make_shared<ModelImpl>()) {}
Model::~Model() = default;

Status Model::Build(const void *model_data, size_t data_size, ModelType model_type,
                    const std::shared_ptr<Context> &model_context) {
  return Guarded(
      [&] { impl_->Build(OfContent(model_data, data_size, model_type), model_context); });
}

Status Model::Build(const std::vector<char> &model_path, ModelType model_type,
                    const std::shared_ptr<Context> &model_context) {
  return Guarded(
      [&] { impl_->Build(OfFile(CharToString(model_path), model_type), model_context); });
}

Status Model::Build(const void *model_data, size_t data_size, ModelType model_type,
                    const std::shared_ptr<Context> &model_context, const Key &dec_key,
                    const std::vector<char> &dec_mode, const std::vector<char> &) {
  return Guarded([&] {
    auto request = OfContent(model_data, data_size, model_type);
    impl_->Build(Encrypted(std::move(request), dec_key, dec_mode), model_context);
  });
}

Status Model::Build(const std::vector<char> &model_path, ModelType model_type,
                    const std::shared_ptr<Context> &model_context, const Key &dec_key,
                    const std::vector<char> &dec_mode, const std::vector<char> &) {
  return Guarded([&] {
    auto request = OfFile(CharToString(model_path), model_type);
    impl_->Build(Encrypted(std::move(request), dec_key, dec_mode), model_context);
  });
}

Status Model::LoadConfig(const std::vector<char> &config_path) {
  return Guarded([&] { impl_->LoadConfig(CharToString(config_path)); });
}

Status Model::UpdateConfig(const std::vector<char> &section,
                           const std::pair<std::vector<char>, std::vector<char>> &config) {
  return Guarded([&] {
    impl_->UpdateConfig(CharToString(section),
                        std::make_pair(CharToString(config.first), CharToString(config.second)));
  });
}

Status Model::Resize(const std::vector<MSTensor> &inputs,
                     const std::vector<std::vector<int64_t>> &dims) {
  return Guarded([&] { impl_->Resize(inputs, dims); });
}

Status Model::Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs,
                      const MSKernelCallBack &before, const MSKernelCallBack &after) {
  mslite::WarnOfCallBacks(before, after);
  return Guarded([&] { impl_->Predict(inputs, outputs); });
}

Status Model::RunStep(const MSKernelCallBack &before, const MSKernelCallBack &after) {
  mslite::WarnOfCallBacks(before, after);
  return Guarded([&] { impl_->RunStep(); });
}

std::vector<MSTensor> Model::GetInputs() {
  return OrElse(std::vector<MSTensor>(), [&] { return impl_->Inputs(); });
}

std::vector<MSTensor> Model::GetOutputs() {
  return OrElse(std::vector<MSTensor>(), [&] { return impl_->Outputs(); });
}

MSTensor Model::GetInputByTensorName(const std::vector<char> &tensor_name) {
  return OrElse(MSTensor(nullptr),
                [&] { return Named(impl_->Inputs(), CharToString(tensor_name)); });
}

MSTensor Model::GetOutputByTensorName(const std::vector<char> &tensor_name) {
  return OrElse(MSTensor(nullptr),
                [&] { return Named(impl_->Outputs(), CharToString(tensor_name)); });
}

std::vector<std::vector<char>> Model::GetOutputTensorNamesChar() {
  std::vector<std::vector<char>> names;
  for (const auto &output : GetOutputs()) {
    names.push_back(StringToChar(output.impl()->name));
  }
  return names;
}

Status Model::UpdateWeights(const std::vector<std::vector<MSTensor>> &new_weights) {
  return Guarded([&] { impl_->UpdateWeights(new_weights); });
}

std::vector<char> Model::GetModelInfo(const std::vector<char> &key) {
  return OrElse(std::vector<char>(), [&] { return StringToChar(impl_->Info(CharToString(key))); });
}

bool Model::CheckModelSupport(enum DeviceType device_type, ModelType model_type) {
  if (device_type == kCPU) {
    return true;
  }
  bool is_ascend = device_type == kAscend || device_type == kAscend910 || device_type == kAscend310;
  if ((device_type != kGPU && !is_ascend) || model_type != kMindIR) {
    return false;
  }
  return OrElse(false, [&] {
    std::string targets = "," + mslite::Session::Current()->Info(0, "targets") + ",";
    return targets.find(is_ascend ? ",ascend," : ",gpu,") != std::string::npos;
  });
}

Status Model::Finalize() {
  return Guarded([&] { impl_->Finalize(); });
}
}  // namespace mindspore
