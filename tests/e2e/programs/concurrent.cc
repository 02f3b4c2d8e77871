// The concurrent program of the original's tutorial: its calls, in its order, with its habits. All
// memory is from malloc and handed over, and room for 1001 floats is given whatever the model is.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/model_parallel_runner.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
constexpr int kNumWorkers = 2;
constexpr int kElementsNum = 1001;
}  // namespace

int SetInputData(std::vector<mindspore::MSTensor> inputs) {
  if (inputs.size() != 1 || inputs[0].DataSize() == 0) {
    std::cerr << "one input with a size is wanted" << std::endl;
    return -1;
  }
  auto *values = static_cast<float *>(malloc(inputs[0].DataSize()));
  std::fill_n(values, inputs[0].ElementNum(), 0.5f);
  inputs.at(0).SetData(values);
  return 0;
}

int main(int argc, const char **argv) {
  std::string model_path = argc > 1 ? argv[1] : "";
  auto context = std::make_shared<mindspore::Context>();
  auto &device_list = context->MutableDeviceInfo();
  auto device_info = std::make_shared<mindspore::CPUDeviceInfo>();
  device_list.push_back(device_info);

  auto model_runner = new (std::nothrow) mindspore::ModelParallelRunner();
  if (model_runner == nullptr) {
    return -1;
  }
  auto runner_config = std::make_shared<mindspore::RunnerConfig>();
  runner_config->SetContext(context);
  runner_config->SetWorkersNum(kNumWorkers);
  auto build_ret = model_runner->Init(model_path, runner_config);
  if (build_ret != mindspore::kSuccess) {
    delete model_runner;
    std::cerr << "Build model error " << build_ret << std::endl;
    return -1;
  }

  auto inputs = model_runner->GetInputs();
  if (inputs.empty() || SetInputData(inputs) != 0) {
    delete model_runner;
    return -1;
  }
  auto outputs = model_runner->GetOutputs();
  for (auto &output : outputs) {
    auto out_data = malloc(kElementsNum * sizeof(float));
    output.SetShape({1, kElementsNum});
    output.SetData(out_data);
  }

  auto predict_ret = model_runner->Predict(inputs, &outputs);
  if (predict_ret != mindspore::kSuccess) {
    delete model_runner;
    std::cerr << "Predict error " << predict_ret << std::endl;
    return -1;
  }
  for (auto tensor : outputs) {
    std::cout << "tensor name is:" << tensor.Name() << " tensor size is:" << tensor.DataSize()
              << " tensor elements num is:" << tensor.ElementNum() << std::endl;
    auto out_data = reinterpret_cast<const float *>(tensor.Data().get());
    std::cout << "output data is:";
    for (int i = 0; i < tensor.ElementNum() && i <= 50; i++) {
      std::cout << out_data[i] << " ";
    }
    std::cout << std::endl;
  }
  delete model_runner;
  return mindspore::kSuccess;
}
