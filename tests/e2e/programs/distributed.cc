// One rank of a distributed model, as the original's two samples set it up: on Ascend with provider
// ge, its device, rank and configuration given; on a GPU with provider tensorrt and MPI's rank.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
int Run(mindspore::Model *model, const std::string &path,
        const std::shared_ptr<mindspore::Context> &context) {
  auto status = model->Build(path, mindspore::kMindIR, context);
  if (status != mindspore::kSuccess) {
    std::cerr << "Build error " << status << std::endl;
    return -1;
  }
  auto inputs = model->GetInputs();
  for (auto &input : inputs) {
    std::fill_n(static_cast<float *>(input.MutableData()), input.ElementNum(), 0.5f);
  }
  std::vector<mindspore::MSTensor> outputs;
  status = model->Predict(inputs, &outputs);
  if (status != mindspore::kSuccess) {
    std::cerr << "Predict error " << status << std::endl;
    return -1;
  }
  for (const auto &output : outputs) {
    std::cout << output.Name() << " " << output.DataSize() << " bytes" << std::endl;
  }
  return 0;
}
}  // namespace

int main(int argc, const char **argv) {
  std::string path = argc > 1 ? argv[1] : "";
  auto context = std::make_shared<mindspore::Context>();
  mindspore::Model model;
  if (argc > 4) {
    auto ascend = std::make_shared<mindspore::AscendDeviceInfo>();
    ascend->SetDeviceID(static_cast<uint32_t>(std::atoi(argv[2])));
    ascend->SetRankID(static_cast<uint32_t>(std::atoi(argv[3])));
    ascend->SetProvider("ge");
    ascend->SetOutputType(mindspore::DataType::kNumberTypeFloat16);
    context->MutableDeviceInfo().push_back(ascend);
    auto status = model.LoadConfig(argv[4]);
    if (status != mindspore::kSuccess) {
      std::cerr << "LoadConfig error " << status << std::endl;
      return -1;
    }
    return Run(&model, path, context);
  }
  auto gpu = std::make_shared<mindspore::GPUDeviceInfo>();
  const auto rank = gpu->GetRankID();
  gpu->SetDeviceID(static_cast<uint32_t>(rank));
  gpu->SetProvider("tensorrt");
  context->MutableDeviceInfo().push_back(gpu);
  path.insert(path.rfind('.'), std::to_string(rank));  // each rank has a part of its own
  std::cout << path << std::endl;
  return Run(&model, path, context);
}
