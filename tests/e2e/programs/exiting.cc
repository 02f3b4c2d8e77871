// Returns from main, or exits, while threads are inside of Predict; prints the worker's process id.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/model_parallel_runner.h"

namespace {
// never deleted: threads go on to use it until the process is gone
mindspore::ModelParallelRunner &runner = *new mindspore::ModelParallelRunner;
mindspore::Model model;  // destroyed at exit
std::atomic<int> answered{0};

void Ask() {
  while (true) {
    auto inputs = runner.GetInputs();
    std::memset(inputs[0].MutableData(), 0, inputs[0].DataSize());
    std::vector<mindspore::MSTensor> outputs;
    if (runner.Predict(inputs, &outputs) == mindspore::kSuccess) {
      answered += 1;
    }
  }
}
}  // namespace

int main(int argc, char **argv) {
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::CPUDeviceInfo>());
  std::string path = argc > 2 ? argv[1] : "";
  std::string way = argc > 2 ? argv[2] : "";
  auto status = model.Build(path, mindspore::kMindIR, context);
  if (status == mindspore::kSuccess) {
    status = runner.Init(path);
  }
  if (status != mindspore::kSuccess) {
    std::cerr << status << std::endl;
    return 1;
  }
  std::cout << model.GetModelInfo("current_pid") << std::endl;
  for (int i = 0; i < 8; ++i) {
    std::thread(Ask).detach();
  }
  while (answered < 100) {
    std::this_thread::yield();
  }
  if (way == "exit") {
    std::exit(0);
  }
  if (way == "quick_exit") {
    std::quick_exit(0);
  }
  if (way == "abort") {
    std::abort();
  }
  return 0;
}
