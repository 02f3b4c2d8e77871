// Quick start: a model and files of raw float32 values in, its outputs printed.
//
//   mslite sdk cpp DIR && export LITE_HOME=DIR
//   cmake -S examples/cpp/quick_start -B build/quick_start && cmake --build build/quick_start
//   build/quick_start/mindspore_quick_start_cpp mindspore_lite/cli/data/digits.mindir
//       examples/quick_start/input.bin
//
// Without a file for it, an input has random values.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
constexpr int64_t kMostShown = 50;

// A model may leave dims open, such as its batch; before memory can be had they must be settled.
mindspore::Status SettleShapes(mindspore::Model *model) {
  auto inputs = model->GetInputs();
  std::vector<std::vector<int64_t>> shapes;
  bool open = false;
  for (const auto &input : inputs) {
    auto shape = input.Shape();
    open = open || std::count(shape.begin(), shape.end(), -1) > 0;
    std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});
    shapes.push_back(shape);
  }
  return open ? model->Resize(inputs, shapes) : mindspore::kSuccess;
}

// Copies of a tensor share its data: what is written here, the model sees.
bool Fill(mindspore::MSTensor input, const char *path) {
  if (input.DataType() != mindspore::DataType::kNumberTypeFloat32 || input.DataSize() == 0) {
    std::cerr << "Input " << input.Name() << " is not of float32, or has no size." << std::endl;
    return false;
  }
  auto *values = static_cast<float *>(input.MutableData());
  if (path == nullptr) {
    std::mt19937 engine;
    std::uniform_real_distribution<float> between(0.1f, 1.0f);
    std::generate_n(values, input.ElementNum(), [&]() { return between(engine); });
    return true;
  }
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char *>(values), static_cast<std::streamsize>(input.DataSize()));
  if (!file || file.peek() != std::ifstream::traits_type::eof()) {
    std::cerr << "Input " << input.Name() << " needs a file of " << input.DataSize()
              << " bytes, which " << path << " is not." << std::endl;
    return false;
  }
  return true;
}

int QuickStart(int argc, const char **argv) {
  if (argc < 2) {
    std::cerr << "Usage: " << argv[0] << " MODEL [INPUT.bin ...]" << std::endl;
    return -1;
  }

  // where and how to run
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::CPUDeviceInfo>());

  // load and compile
  mindspore::Model model;
  auto status = model.Build(std::string(argv[1]), mindspore::kMindIR, context);
  if (status != mindspore::kSuccess) {
    std::cerr << "Build model error " << status << std::endl;
    return -1;
  }
  status = SettleShapes(&model);
  if (status != mindspore::kSuccess) {
    std::cerr << "Resize error " << status << std::endl;
    return -1;
  }

  // fill
  auto inputs = model.GetInputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool has_file = i + 2 < static_cast<size_t>(argc);
    if (!Fill(inputs[i], has_file ? argv[i + 2] : nullptr)) {
      return -1;
    }
  }

  // run
  std::vector<mindspore::MSTensor> outputs;
  status = model.Predict(inputs, &outputs);
  if (status != mindspore::kSuccess) {
    std::cerr << "Predict error " << status << std::endl;
    return -1;
  }

  // read
  for (const auto &tensor : outputs) {
    std::cout << "tensor name is:" << tensor.Name() << " tensor size is:" << tensor.DataSize()
              << " tensor elements num is:" << tensor.ElementNum() << std::endl;
    const auto *values = static_cast<const float *>(tensor.Data().get());
    std::cout << "output data is:";
    for (int64_t i = 0; i < std::min(tensor.ElementNum(), kMostShown); ++i) {
      std::cout << values[i] << " ";
    }
    std::cout << std::endl;
  }
  return mindspore::kSuccess;
}
}  // namespace

int main(int argc, const char **argv) { return QuickStart(argc, argv); }
