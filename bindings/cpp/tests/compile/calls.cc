// What programs for this interface call, in their ways of calling it: with default arguments, with
// temporaries and braces. It compiles when all of that is there; it is not run.
#include <cstdlib>
#include <iostream>
#include <new>
#include <thread>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/model_group.h"
#include "include/api/model_parallel_runner.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
using Tensors = std::vector<mindspore::MSTensor>;

std::shared_ptr<mindspore::Context> ContextOf(
    const std::shared_ptr<mindspore::DeviceInfoContext> &device) {
  auto context = std::make_shared<mindspore::Context>();
  if (context == nullptr) return nullptr;
  auto &device_list = context->MutableDeviceInfo();
  device_list.push_back(device);
  return context;
}

int FillThroughCopies(Tensors inputs) {
  for (auto tensor : inputs) {
    auto *data = reinterpret_cast<float *>(tensor.MutableData());
    if (data == nullptr) return -1;
    for (size_t i = 0; i < tensor.DataSize() / sizeof(float); ++i) data[i] = 0.5f;
  }
  return mindspore::kSuccess;
}

void Print(const Tensors &outputs) {
  for (auto tensor : outputs) {
    std::cout << "tensor name is:" << tensor.Name() << " tensor size is:" << tensor.DataSize()
              << " tensor elements num is:" << tensor.ElementNum() << std::endl;
    const auto *data = reinterpret_cast<const float *>(tensor.Data().get());
    for (int64_t i = 0; i < tensor.ElementNum() && i <= 50; ++i) std::cout << data[i] << " ";
  }
}
}  // namespace

int QuickStart(int argc, const char **argv) {
  if (argc < 2) return -1;
  const std::string model_path = argv[1];
  auto device_info = std::make_shared<mindspore::CPUDeviceInfo>();
  auto model = new (std::nothrow) mindspore::Model();
  auto build_ret = model->Build(model_path, mindspore::kMindIR, ContextOf(device_info));
  if (build_ret != mindspore::kSuccess) {
    delete model;
    std::cerr << "Build model error " << build_ret << std::endl;
    return -1;
  }
  auto inputs = model->GetInputs();
  auto ret = FillThroughCopies(inputs);
  if (ret != mindspore::kSuccess) {
    delete model;
    return -1;
  }
  Tensors outputs;
  auto predict_ret = model->Predict(inputs, &outputs);
  if (predict_ret != mindspore::kSuccess) std::cerr << "Predict error " << predict_ret;
  Print(outputs);
  delete model;
  return mindspore::kSuccess;
}

int QuickStartParallel(const char *model_path) {
  auto context = ContextOf(std::make_shared<mindspore::CPUDeviceInfo>());
  auto model_runner = new (std::nothrow) mindspore::ModelParallelRunner();
  auto runner_config = std::make_shared<mindspore::RunnerConfig>();
  if (model_runner == nullptr || runner_config == nullptr) return -1;
  runner_config->SetContext(context);
  runner_config->SetWorkersNum(2);
  auto build_ret = model_runner->Init(model_path, runner_config);
  if (build_ret != mindspore::kSuccess) {
    delete model_runner;
    std::cerr << "Build model error " << build_ret << std::endl;
    return -1;
  }
  auto inputs = model_runner->GetInputs();
  for (auto &input : inputs) input.SetData(std::malloc(input.DataSize()));
  auto outputs = model_runner->GetOutputs();
  for (auto &output : outputs) {
    output.SetShape({1, 1001});
    output.SetData(std::malloc(output.DataSize()));
  }
  auto predict_ret = model_runner->Predict(inputs, &outputs);
  if (predict_ret != mindspore::kSuccess) std::cerr << "Predict error " << predict_ret;
  Print(outputs);
  delete model_runner;
  return mindspore::kSuccess;
}

int RunnerFromMemory(const char *model_data, size_t size) {
  auto config = std::make_shared<mindspore::RunnerConfig>();
  config->SetConfigInfo("model_File", {{"mindir_path", "model.mindir"}});
  config->SetConfigPath("config.ini");
  config->SetDeviceIds({0, 1});
  mindspore::ModelParallelRunner runner;
  if (runner.Init(model_data, size).IsOk()) return 0;
  return static_cast<int>(runner.Init(model_data, size, config));
}

int Runtime(const std::string &device_type, const std::string &model_path) {
  std::shared_ptr<mindspore::DeviceInfoContext> device_info = nullptr;
  if (device_type == "GPU") {
    auto gpu = std::make_shared<mindspore::GPUDeviceInfo>();
    gpu->SetDeviceID(0);
    device_info = gpu;
  } else if (device_type == "Ascend") {
    auto ascend = std::make_shared<mindspore::AscendDeviceInfo>();
    ascend->SetDeviceID(0);
    device_info = ascend;
  } else {
    device_info = std::make_shared<mindspore::CPUDeviceInfo>();
  }
  auto context = ContextOf(device_info);
  context->SetThreadNum(2);
  context->SetThreadAffinity(1);
  context->SetThreadAffinity({0, 1});
  context->SetInterOpParallelNum(2);
  auto model = std::make_shared<mindspore::Model>();
  if (model->LoadConfig(model_path) != mindspore::kSuccess) return -1;
  if (model->Build(model_path, mindspore::kMindIR, context) != mindspore::kSuccess) return -1;
  auto inputs = model->GetInputs();
  std::vector<std::vector<int64_t>> shapes;
  for (auto &input : inputs) {
    auto shape = input.Shape();
    shape[0] = 4;
    shapes.push_back(shape);
  }
  if (!model->Resize(inputs, shapes)) return -1;
  std::vector<uint8_t> buffer(inputs[0].DataSize());
  inputs[0].SetData(buffer.data(), false);
  inputs[0].SetDeviceData(nullptr);
  auto outputs = model->GetOutputs();
  mindspore::Status ret = model->Predict(inputs, &outputs);
  if (ret.IsError()) return static_cast<int>(ret);
  const auto type = outputs[0].DataType();
  if (type == mindspore::DataType::kNumberTypeFloat32) Print(outputs);
  return type == mindspore::DataType::kNumberTypeInt32 ? 1 : 0;
}

void InGroup(const std::shared_ptr<mindspore::ModelGroup> &group) {
  auto context = ContextOf(std::make_shared<mindspore::AscendDeviceInfo>());
  const std::string path0 = "path_to_model1";
  const std::string path1 = "path_to_model2";
  group->AddModel({path0, path1});
  group->CalMaxSizeOfWorkspace(mindspore::kMindIR, context);
  mindspore::Model model1;
  mindspore::Model model2;
  model1.Build(path0, mindspore::kMindIR, context);
  model2.Build(path1, mindspore::kMindIR, context);
  auto inputs = model1.GetInputs();
  Tensors outputs;
  model1.Predict(inputs, &outputs);
  model2.Predict(inputs, &outputs);
}

int ModelGroups() {
  auto group = std::make_shared<mindspore::ModelGroup>();
  std::thread first(InGroup, group);
  std::thread second(InGroup, group);
  first.join();
  second.join();
  mindspore::Model model0;
  mindspore::Model model1;
  mindspore::ModelGroup sharing(mindspore::ModelGroupFlag::kShareWeight);
  if (!sharing.AddModel({model0, model1}).IsOk()) return -1;
  std::vector<std::string> paths = {"a", "b"};
  return sharing.AddModel(paths) == mindspore::kSuccess ? 0 : 1;
}

int Distributed(const std::string &model_path, const std::string &config) {
  auto ascend = std::make_shared<mindspore::AscendDeviceInfo>();
  ascend->SetDeviceID(0);
  ascend->SetRankID(1);
  ascend->SetProvider("ge");
  ascend->SetPrecisionMode("preferred_fp32");
  mindspore::Model model;
  if (model.LoadConfig(config) != mindspore::kSuccess) return -1;
  auto ret = model.Build(model_path, mindspore::kMindIR, ContextOf(ascend));
  auto gpu = std::make_shared<mindspore::GPUDeviceInfo>();
  auto rank_id = gpu->GetRankID();
  gpu->SetDeviceID(static_cast<uint32_t>(rank_id));
  gpu->SetProvider("tensorrt");
  mindspore::Model other;
  ret = other.Build(model_path + std::to_string(rank_id), mindspore::kMindIR, ContextOf(gpu));
  return ret == mindspore::kSuccess ? 0 : -1;
}

int DeviceMemory(const std::string &model_path, void *far) {
  auto gpu = std::make_shared<mindspore::GPUDeviceInfo>();
  gpu->SetDeviceID(0);
  mindspore::Model model;
  if (!model.Build(model_path, mindspore::kMindIR, ContextOf(gpu))) return -1;
  auto inputs = model.GetInputs();
  model.Resize(inputs, {{1, 3, 224, 224}});
  inputs[0].SetDeviceData(far);
  inputs[0].SetData(nullptr, false);
  auto outputs = model.GetOutputs();
  outputs[0].SetDeviceData(inputs[0].GetDeviceData());
  return static_cast<int>(model.Predict(inputs, &outputs).StatusCode());
}
