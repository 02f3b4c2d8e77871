// The runtime's options: device, configuration file, other batch sizes, three kinds of memory.
//
//   mslite sdk cpp DIR && export LITE_HOME=DIR
//   cmake -S examples/cpp/runtime -B build/runtime && cmake --build build/runtime
//   build/runtime/runtime_cpp --model_path=mindspore_lite/cli/data/digits.mindir --batch_size=2
//
// Further options: --device_type=CPU|GPU|Ascend --device_id=0 --config_file=FILE
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
using mindspore::DataType;
using mindspore::MSTensor;
using Buffers = std::vector<std::vector<uint8_t>>;
constexpr int64_t kMostShown = 50;

bool Ok(const mindspore::Status &status, const char *what) {
  if (status != mindspore::kSuccess) {
    std::cerr << what << " error " << status << std::endl;
  }
  return status == mindspore::kSuccess;
}

// `--name=value` of the command line into `options`; false when a name is not among them.
bool Parse(int argc, const char **argv, std::map<std::string, std::string> *options) {
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    if (equals == std::string::npos || options->count(name) == 0) {
      std::cerr << "Got " << text << ", wanted";
      for (const auto &option : *options) {
        std::cerr << " " << option.first << "=...";
      }
      std::cerr << std::endl;
      return false;
    }
    (*options)[name] = text.substr(equals + 1);
  }
  return true;
}

std::shared_ptr<mindspore::DeviceInfoContext> Device(const std::string &type, uint32_t id) {
  if (type == "CPU") {
    return std::make_shared<mindspore::CPUDeviceInfo>();
  }
  if (type == "GPU") {
    auto device = std::make_shared<mindspore::GPUDeviceInfo>();
    device->SetDeviceID(id);
    return device;
  }
  if (type == "Ascend") {
    auto device = std::make_shared<mindspore::AscendDeviceInfo>();
    device->SetDeviceID(id);
    return device;
  }
  std::cerr << "device_type is " << type << ", wanted CPU, GPU or Ascend" << std::endl;
  return nullptr;
}

// Before Build: what the configuration file says. After it: the batch of every input.
bool Prepare(mindspore::Model *model, const std::map<std::string, std::string> &options) {
  auto device = Device(options.at("--device_type"), std::atoi(options.at("--device_id").c_str()));
  if (device == nullptr) {
    return false;
  }
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(device);
  const auto &config_file = options.at("--config_file");
  if (!config_file.empty() && !Ok(model->LoadConfig(config_file), "LoadConfig")) {
    return false;
  }
  if (!Ok(model->Build(options.at("--model_path"), mindspore::kMindIR, context), "Build")) {
    return false;
  }
  const auto inputs = model->GetInputs();
  std::vector<std::vector<int64_t>> shapes;
  for (const auto &input : inputs) {
    auto shape = input.Shape();
    if (!shape.empty()) {
      shape[0] = std::atoi(options.at("--batch_size").c_str());
    }
    shapes.push_back(shape);
  }
  return Ok(model->Resize(inputs, shapes), "Resize");
}

Buffers Room(const std::vector<MSTensor> &tensors) {
  Buffers buffers;
  for (const auto &tensor : tensors) {
    buffers.emplace_back(tensor.DataSize());
  }
  return buffers;
}

Buffers RandomValues(const std::vector<MSTensor> &inputs) {
  std::mt19937 engine;
  std::uniform_real_distribution<float> between(0.1f, 1.0f);
  auto buffers = Room(inputs);
  for (auto &buffer : buffers) {
    auto *values = reinterpret_cast<float *>(buffer.data());
    std::generate_n(values, buffer.size() / sizeof(float), [&]() { return between(engine); });
  }
  return buffers;
}

// The tensors use the buffers, which stay ours and have to live as long as they do.
void Lend(std::vector<MSTensor> *tensors, Buffers *buffers) {
  for (size_t i = 0; i < tensors->size(); ++i) {
    (*tensors)[i].SetData((*buffers)[i].data(), false);
    (*tensors)[i].SetDeviceData(nullptr);
  }
}

template <typename T>
void PrintValues(const void *data, int64_t count) {
  const auto *values = static_cast<const T *>(data);
  for (int64_t i = 0; i < std::min(count, kMostShown); ++i) {
    std::cout << +values[i] << " ";  // the plus makes numbers of bytes
  }
  std::cout << std::endl;
}

void Print(const std::vector<MSTensor> &outputs) {
  using Printer = void (*)(const void *, int64_t);
  const std::map<DataType, Printer> printers = {
      {DataType::kNumberTypeFloat32, PrintValues<float>},
      {DataType::kNumberTypeFloat64, PrintValues<double>},
      {DataType::kNumberTypeInt64, PrintValues<int64_t>},
      {DataType::kNumberTypeInt32, PrintValues<int32_t>},
      {DataType::kNumberTypeInt16, PrintValues<int16_t>},
      {DataType::kNumberTypeInt8, PrintValues<int8_t>},
      {DataType::kNumberTypeUInt64, PrintValues<uint64_t>},
      {DataType::kNumberTypeUInt32, PrintValues<uint32_t>},
      {DataType::kNumberTypeUInt16, PrintValues<uint16_t>},
      {DataType::kNumberTypeUInt8, PrintValues<uint8_t>},
      {DataType::kNumberTypeBool, PrintValues<bool>},
  };
  for (const auto &tensor : outputs) {
    std::cout << "tensor name is:" << tensor.Name() << " tensor size is:" << tensor.DataSize()
              << " tensor elements num is:" << tensor.ElementNum() << std::endl;
    const auto found = printers.find(tensor.DataType());
    if (found == printers.end()) {
      std::cout << "Unsupported data type " << static_cast<int>(tensor.DataType()) << std::endl;
    } else {
      found->second(tensor.Data().get(), tensor.ElementNum());
    }
  }
}

// The inputs lie in our own memory; the results come in memory of the library.
bool OwnInputs(mindspore::Model *model) {
  auto inputs = model->GetInputs();
  auto values = RandomValues(inputs);
  Lend(&inputs, &values);
  std::vector<MSTensor> outputs;
  if (!Ok(model->Predict(inputs, &outputs), "Predict")) {
    return false;
  }
  Print(outputs);
  return true;
}

// The results come into our own memory, too.
bool OwnInputsAndOutputs(mindspore::Model *model) {
  auto inputs = model->GetInputs();
  auto values = RandomValues(inputs);
  Lend(&inputs, &values);
  auto outputs = model->GetOutputs();
  auto room = Room(outputs);
  Lend(&outputs, &room);
  if (!Ok(model->Predict(inputs, &outputs), "Predict")) {
    return false;
  }
  Print(outputs);
  return true;
}

// All memory is the library's: the worker reads it where it is, without a copy.
bool CopiedInputs(mindspore::Model *model) {
  auto inputs = model->GetInputs();
  const auto values = RandomValues(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    void *memory = inputs[i].MutableData();
    if (memory == nullptr) {
      std::cerr << "Input " << inputs[i].Name() << " has no memory" << std::endl;
      return false;
    }
    std::memcpy(memory, values[i].data(), values[i].size());
  }
  std::vector<MSTensor> outputs;
  if (!Ok(model->Predict(inputs, &outputs), "Predict")) {
    return false;
  }
  Print(outputs);
  return true;
}
}  // namespace

int main(int argc, const char **argv) {
  std::map<std::string, std::string> options = {
      {"--model_path", ""},  {"--device_type", "CPU"}, {"--device_id", "0"},
      {"--batch_size", "1"}, {"--config_file", ""},
  };
  if (!Parse(argc, argv, &options)) {
    return -1;
  }
  for (const auto &run : {OwnInputs, OwnInputsAndOutputs, CopiedInputs}) {
    auto model = std::make_shared<mindspore::Model>();  // each run with a model that is new
    if (!Prepare(model.get(), options) || !run(model.get())) {
      return -1;
    }
  }
  return 0;
}
