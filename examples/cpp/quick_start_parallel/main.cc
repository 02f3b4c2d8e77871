// Concurrent quick start: five threads share one runner, and each sends it two requests.
//
//   mslite sdk cpp DIR && export LITE_HOME=DIR
//   cmake -S examples/cpp/quick_start_parallel -B build/parallel && cmake --build build/parallel
//   build/parallel/mindspore_quick_start_cpp mindspore_lite/cli/data/digits.mindir
//       examples/quick_start/input.bin
//
// The model has one input of float32. Without a file for it, its values are random.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "include/api/context.h"
#include "include/api/model_parallel_runner.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
constexpr int32_t kNumWorkers = 2;  // requests that run at the same time
constexpr int kNumClients = 5;
constexpr int kNumTasks = 2;  // requests of each client
constexpr int64_t kMostShown = 5;

// The values that all clients send: of the file, or random.
std::vector<char> InputData(const char *path, size_t size) {
  if (path != nullptr) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::mt19937 engine;
  std::uniform_real_distribution<float> between(0.1f, 1.0f);
  std::vector<char> data(size);
  auto *values = reinterpret_cast<float *>(data.data());
  std::generate_n(values, size / sizeof(float), [&]() { return between(engine); });
  return data;
}

// Every call gives new tensors, which no other thread has. Dims that the model leaves open are 1.
std::vector<mindspore::MSTensor> OwnInputs(mindspore::ModelParallelRunner *runner) {
  auto inputs = runner->GetInputs();
  for (auto &input : inputs) {
    auto shape = input.Shape();
    std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});
    input.SetShape(shape);
  }
  return inputs;
}

std::string Described(const std::vector<mindspore::MSTensor> &outputs) {
  std::ostringstream text;
  for (const auto &tensor : outputs) {
    text << "tensor name is:" << tensor.Name() << " tensor size is:" << tensor.DataSize()
         << " tensor elements num is:" << tensor.ElementNum() << "\noutput data is:";
    const auto *values = static_cast<const float *>(tensor.Data().get());
    for (int64_t i = 0; i < std::min(tensor.ElementNum(), kMostShown); ++i) {
      text << values[i] << " ";
    }
    text << "\n";
  }
  return text.str();
}

// One client: fills an input, waits for the answer and shows it.
bool Run(mindspore::ModelParallelRunner *runner, const std::vector<char> &data) {
  static std::mutex printing;
  for (int task = 0; task < kNumTasks; ++task) {
    auto inputs = OwnInputs(runner);
    void *memory = malloc(data.size());
    if (memory == nullptr) {
      return false;
    }
    std::copy(data.begin(), data.end(), static_cast<char *>(memory));
    inputs[0].SetData(memory);  // which is the tensor's from now on: it will free it

    std::vector<mindspore::MSTensor> outputs;
    const auto status = runner->Predict(inputs, &outputs);
    std::lock_guard<std::mutex> lock(printing);
    if (status != mindspore::kSuccess) {
      std::cerr << "Predict error " << status << std::endl;
      return false;
    }
    std::cout << Described(outputs);
  }
  return true;
}

int QuickStart(int argc, const char **argv) {
  if (argc < 2) {
    std::cerr << "Usage: " << argv[0] << " MODEL [INPUT.bin]" << std::endl;
    return -1;
  }

  // where and how to run
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::CPUDeviceInfo>());
  auto config = std::make_shared<mindspore::RunnerConfig>();
  config->SetContext(context);
  config->SetWorkersNum(kNumWorkers);

  // load and compile once, for all clients
  std::unique_ptr<mindspore::ModelParallelRunner> runner(new mindspore::ModelParallelRunner());
  const auto status = runner->Init(std::string(argv[1]), config);
  if (status != mindspore::kSuccess) {
    std::cerr << "Build model error " << status << std::endl;
    return -1;
  }
  const auto inputs = OwnInputs(runner.get());
  if (inputs.size() != 1 || inputs[0].DataType() != mindspore::DataType::kNumberTypeFloat32) {
    std::cerr << "The model must have one input of float32." << std::endl;
    return -1;
  }
  const auto data = InputData(argc > 2 ? argv[2] : nullptr, inputs[0].DataSize());
  if (data.empty() || data.size() != inputs[0].DataSize()) {
    std::cerr << "The input needs " << inputs[0].DataSize() << " bytes, got " << data.size()
              << std::endl;
    return -1;
  }

  // run
  std::vector<char> done(kNumClients);
  std::vector<std::thread> clients;
  for (int client = 0; client < kNumClients; ++client) {
    clients.emplace_back([&, client]() { done[client] = Run(runner.get(), data); });
  }
  for (auto &client : clients) {
    client.join();
  }
  return std::count(done.begin(), done.end(), false) == 0 ? 0 : -1;
}
}  // namespace

int main(int argc, const char **argv) { return QuickStart(argc, argv); }
