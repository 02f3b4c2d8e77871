// Everything that may be done at the same time, at the same time: for ThreadSanitizer above all.
#include <atomic>
#include <memory>
#include <vector>

#include "tests/models.h"

namespace {
using mindspore::DataType;
using mindspore::Model;
using mindspore::ModelParallelRunner;
using mindspore::MSTensor;
using mslite_test::Cpu;
using mslite_test::Dense;
using mslite_test::Fill;
using mslite_test::Floats;
using mslite_test::ModelFile;
using mslite_test::Runner;
using mslite_test::Six;

constexpr int kClients = 64;
constexpr int kRequests = 8;

void AskMany(ModelParallelRunner runner) {
  for (int i = 0; i < kRequests; ++i) {
    auto inputs = runner.GetInputs();
    inputs[0].SetShape({2, 3});
    Fill(Six(), inputs[0]);
    std::vector<MSTensor> outputs;
    CHECK_EQ(runner.Predict(inputs, &outputs).ToString(), mindspore::Status::OK().ToString());
    CHECK_EQ(Floats(outputs[0]), Dense(Six()));
  }
}

// What a runner gave is the input of another, while the first one is deleted.
void PassOn(ModelParallelRunner to) {
  std::vector<MSTensor> outputs;
  {
    ModelParallelRunner from = Runner("wide.mindir");
    auto inputs = from.GetInputs();
    Fill(std::vector<float>(1 << 20, 2.0f), inputs[0]);
    CHECK(from.Predict(inputs, &outputs) == mindspore::kSuccess);
  }
  std::vector<MSTensor> last;
  CHECK(to.Predict(outputs, &last) == mindspore::kSuccess);
  CHECK_EQ(Floats(last[0])[1 << 19], 2.0f);
}

// A model of its own, whose batch and weights change.
void BuildAndChange() {
  Model model;
  CHECK(model.UpdateConfig("ascend_context", {"variable_weights_list", "w"}).IsOk());
  CHECK(model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu()).IsOk());
  const std::vector<float> weights(12, 2.0f);
  MSTensor weight("w", DataType::kNumberTypeFloat32, {3, 4}, weights.data(), 48);
  CHECK(model.UpdateWeights(std::vector<std::vector<MSTensor>>{{weight}}).IsOk());
  for (int64_t rows : {1, 5}) {
    CHECK(model.Resize(model.GetInputs(), {{rows, 3}}).IsOk());
    Fill(std::vector<float>(static_cast<size_t>(rows) * 3, 1.0f), model.GetInputs()[0]);
    std::vector<MSTensor> outputs;
    CHECK(model.Predict(model.GetInputs(), &outputs).IsOk());
    CHECK_EQ(Floats(outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, 7.0f));
  }
}

void AllocateTensors() {
  const std::vector<float> numbers(1 << 16, 7.0f);
  for (int i = 0; i < 20; ++i) {
    MSTensor tensor("t", DataType::kNumberTypeFloat32, {1 << 16}, numbers.data(), 4 << 16);
    std::unique_ptr<MSTensor> copy(tensor.Clone());
    CHECK_EQ(Floats(*copy)[99], 7.0f);
  }
}

TEST(EverythingMayHappenAtOnce) {
  ModelParallelRunner runner = Runner("dense.mindir");
  ModelParallelRunner wide = Runner("wide.mindir");
  mslite_test::Threads threads;
  for (int i = 0; i < kClients; ++i) threads.Start([&] { AskMany(runner); });
  for (int i = 0; i < 2; ++i) {
    threads.Start([&] { PassOn(wide); });
    threads.Start(BuildAndChange);
    threads.Start(AllocateTensors);
  }
  threads.Join();
}
}  // namespace
