// What tests of models share: files, contexts, tensors with numbers in them.
#ifndef MSLITE_TESTS_MODELS_H_
#define MSLITE_TESTS_MODELS_H_

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/model_parallel_runner.h"
#include "tests/check.h"

namespace mslite_test {
// A file of the folder that tests/support/binding_models.py makes.
inline std::string ModelFile(const std::string &name) {
  const char *folder = std::getenv("MSLITE_MODELS");
  if (folder == nullptr) {
    SKIP("MSLITE_MODELS does not say where the models are");
  }
  return std::string(folder) + "/" + name;
}

inline std::string Contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

inline std::shared_ptr<mindspore::Context> Cpu() {
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::CPUDeviceInfo>());
  context->SetThreadNum(1);
  return context;
}

inline mindspore::Model Built(const std::string &name,
                              mindspore::ModelType type = mindspore::kMindIR) {
  mindspore::Model model;
  auto status = model.Build(ModelFile(name), type, Cpu());
  if (status != mindspore::kSuccess) {
    throw Failed(name.c_str(), 0, status.ToString());
  }
  return model;
}

inline mindspore::ModelParallelRunner Runner(const std::string &name) {
  auto config = std::make_shared<mindspore::RunnerConfig>();
  config->SetContext(Cpu());
  mindspore::ModelParallelRunner runner;
  auto status = runner.Init(ModelFile(name), config);
  if (status != mindspore::kSuccess) {
    throw Failed(name.c_str(), 0, status.ToString());
  }
  return runner;
}

inline void Fill(const std::vector<float> &values, mindspore::MSTensor tensor) {
  CHECK_EQ(tensor.DataSize(), values.size() * sizeof(float));
  auto *data = static_cast<float *>(tensor.MutableData());
  CHECK(data != nullptr);
  std::copy(values.begin(), values.end(), data);
}

inline std::vector<float> Floats(const mindspore::MSTensor &tensor) {
  auto data = tensor.Data();
  CHECK(data != nullptr);
  auto *first = static_cast<const float *>(data.get());
  return std::vector<float>(first, first + tensor.ElementNum());
}

// What the model "dense" makes of six numbers.
inline std::vector<float> Dense(const std::vector<float> &x) {
  std::vector<float> y;
  for (size_t row = 0; row + 2 < x.size(); row += 3) {
    y.insert(y.end(), 4, x[row] + x[row + 1] + x[row + 2] + 1);
  }
  return y;
}

inline const std::vector<float> &Six() {
  static const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  return six;
}
}  // namespace mslite_test
#endif  // MSLITE_TESTS_MODELS_H_
