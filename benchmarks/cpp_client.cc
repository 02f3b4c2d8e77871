// A side of benchmarks/cpp.py: a ModelParallelRunner, used by as many threads as it is told to.
//
// Run: cpp_client MODEL. Every line "CLIENTS SECONDS" on stdin is answered by one on stdout:
// requests per second, and the median time of a request in microseconds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "include/api/context.h"
#include "include/api/model_parallel_runner.h"

namespace {
using Clock = std::chrono::steady_clock;

double Microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// One client: its own tensors, filled once; a request after the other until the time is over.
std::vector<double> Ask(mindspore::ModelParallelRunner *runner, Clock::time_point end) {
  auto inputs = runner->GetInputs();
  for (auto &input : inputs) {
    auto *data = static_cast<float *>(input.MutableData());
    std::fill(data, data + input.ElementNum(), 1.0f);
  }
  std::vector<double> times;
  auto start = Clock::now();
  do {
    std::vector<mindspore::MSTensor> outputs;
    auto status = runner->Predict(inputs, &outputs);
    if (status != mindspore::kSuccess) {
      std::cerr << status << std::endl;
      std::exit(1);
    }
    auto now = Clock::now();
    times.push_back(Microseconds(now - start));
    start = now;
  } while (start < end);
  return times;
}

void Burst(mindspore::ModelParallelRunner *runner, size_t clients, double seconds) {
  auto start = Clock::now();
  auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::vector<double>> times(clients);
  std::vector<std::thread> threads;
  for (auto &mine : times) {
    threads.emplace_back([&mine, runner, end] { mine = Ask(runner, end); });
  }
  for (auto &thread : threads) {
    thread.join();
  }
  double wall = Microseconds(Clock::now() - start) / 1e6;
  std::vector<double> all;
  for (const auto &mine : times) {
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  std::cout << static_cast<double>(all.size()) / wall << " " << all[all.size() / 2] << std::endl;
}
}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "usage: cpp_client MODEL" << std::endl;
    return 2;
  }
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::CPUDeviceInfo>());
  auto config = std::make_shared<mindspore::RunnerConfig>();
  config->SetContext(context);
  mindspore::ModelParallelRunner runner;
  auto status = runner.Init(argv[1], config);
  if (status != mindspore::kSuccess) {
    std::cerr << status << std::endl;
    return 1;
  }
  size_t clients = 0;
  double seconds = 0;
  while (std::cin >> clients >> seconds) {
    Burst(&runner, clients, seconds);
  }
  return 0;
}
