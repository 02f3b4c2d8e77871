// A model at another batch size, run three times, with the habits of the original's sample: the
// configuration is the model's own file; inputs and outputs lie in memory of the program, in memory
// of the program on both sides, then in the tensors' own. 0 is returned whatever happens.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
using Memory = std::vector<std::vector<float>>;

Memory RoomFor(const std::vector<mindspore::MSTensor> &tensors) {
  Memory room;
  for (const auto &tensor : tensors) {
    if (tensor.DataType() != mindspore::DataType::kNumberTypeFloat32) {
      std::cerr << tensor.Name() << " is no float32" << std::endl;
    }
    room.emplace_back(tensor.DataSize() / sizeof(float), 0.5f);
  }
  return room;
}

void Lend(Memory *room, const std::vector<mindspore::MSTensor> &tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto tensor = tensors[i];
    tensor.SetDeviceData(nullptr);
    tensor.SetData((*room)[i].data(), false);
  }
}

void Print(const char *run, const std::vector<mindspore::MSTensor> &outputs) {
  for (const auto &output : outputs) {
    const auto *values = static_cast<const float *>(output.Data().get());
    std::cout << run << " " << output.Name() << " " << output.DataSize() << " "
              << output.ElementNum();
    for (int64_t i = 0; i < std::min<int64_t>(output.ElementNum(), 3); ++i) {
      std::cout << " " << values[i];
    }
    std::cout << std::endl;
  }
}

void Run(const std::shared_ptr<mindspore::Model> &model, const char *run, Memory *in, Memory *out) {
  auto inputs = model->GetInputs();
  std::vector<mindspore::MSTensor> outputs;
  if (out != nullptr) {
    outputs = model->GetOutputs();
    Lend(out, outputs);
  }
  if (in != nullptr) {
    Lend(in, inputs);
  } else {
    for (auto &input : inputs) {
      input.SetData(nullptr, false);
      std::fill_n(static_cast<float *>(input.MutableData()), input.ElementNum(), 0.5f);
    }
  }
  auto status = model->Predict(inputs, &outputs);
  if (status != mindspore::kSuccess) {
    std::cerr << run << " error " << status << std::endl;
    return;
  }
  if (out != nullptr && outputs[0].Data().get() != (*out)[0].data()) {
    std::cerr << run << " has its result elsewhere" << std::endl;
  }
  Print(run, outputs);
}
}  // namespace

int main(int argc, const char **argv) {
  const std::string path = argc > 1 ? argv[1] : "";
  const int64_t batch = argc > 2 ? std::atoi(argv[2]) : 1;
  auto context = std::make_shared<mindspore::Context>();
  std::shared_ptr<mindspore::DeviceInfoContext> device =
      std::make_shared<mindspore::CPUDeviceInfo>();
  context->MutableDeviceInfo().push_back(device);
  auto model = std::make_shared<mindspore::Model>();
  if (model->LoadConfig(path) != mindspore::kSuccess) {
    std::cerr << "LoadConfig failed" << std::endl;
  }
  auto status = model->Build(path, mindspore::kMindIR, context);
  if (status != mindspore::kSuccess) {
    std::cerr << "Build error " << status << std::endl;
    return 0;
  }
  std::vector<std::vector<int64_t>> shapes;
  for (const auto &input : model->GetInputs()) {
    auto shape = input.Shape();
    shape[0] = batch;
    shapes.push_back(shape);
  }
  status = model->Resize(model->GetInputs(), shapes);
  if (status != mindspore::kSuccess) {
    std::cerr << "Resize error " << status << std::endl;
    return 0;
  }
  Memory in = RoomFor(model->GetInputs());
  Memory out = RoomFor(model->GetOutputs());
  Run(model, "first", &in, nullptr);
  Run(model, "second", &in, &out);
  Run(model, "third", nullptr, nullptr);
  return 0;
}
