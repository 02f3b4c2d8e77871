// Two threads, one group of two models on Ascend: the calls of the original's sample, in its order
// and with its habits. Models are found by their names in the working directory; one context serves
// all; the second model is given the first one's inputs and its filled outputs.
#include "include/api/model_group.h"

#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace {
const char kFirst[] = "path_to_model1";
const char kSecond[] = "path_to_model2";
std::mutex printing;

void Fill(std::vector<mindspore::MSTensor> inputs) {
  for (auto input : inputs) {
    std::memset(input.MutableData(), 0, input.DataSize());
  }
}

bool Said(const char *what, const mindspore::Status &status) {
  if (status != mindspore::kSuccess) {
    std::cerr << what << " error " << status << std::endl;
  }
  return status == mindspore::kSuccess;
}

void Work(const std::shared_ptr<mindspore::ModelGroup> &group,
          const std::shared_ptr<mindspore::Context> &context) {
  group->AddModel(std::vector<std::string>{kFirst, kSecond});
  group->CalMaxSizeOfWorkspace(mindspore::kMindIR, context);  // nothing is left for the later one

  mindspore::Model first;
  mindspore::Model second;
  if (!Said("Build 1", first.Build(kFirst, mindspore::kMindIR, context)) ||
      !Said("Build 2", second.Build(kSecond, mindspore::kMindIR, context))) {
    return;
  }
  auto inputs = first.GetInputs();
  Fill(inputs);
  std::vector<mindspore::MSTensor> outputs;
  Said("Predict 1", first.Predict(inputs, &outputs));
  Said("Predict 2", second.Predict(inputs, &outputs));
  std::lock_guard<std::mutex> guard(printing);
  for (const auto &output : outputs) {
    std::cout << output.Name() << " " << output.DataSize() << " bytes, the first number is "
              << *static_cast<const float *>(output.Data().get()) << std::endl;
  }
}
}  // namespace

int main() {
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::AscendDeviceInfo>());
  auto group = std::make_shared<mindspore::ModelGroup>();
  std::thread one(Work, group, context);
  std::thread other(Work, group, context);
  one.join();
  other.join();
  return mindspore::kSuccess;
}
