#include <atomic>
#include <fstream>
#include <memory>

#include "include/api/model_parallel_runner.h"
#include "src/build_request.h"
#include "src/failure.h"
#include "src/runner_impl.h"
#include "tests/models.h"

namespace {
using mindspore::ModelParallelRunner;
using mindspore::MSTensor;
using mindspore::RunnerConfig;
using mindspore::Status;
using mslite_test::Cpu;
using mslite_test::Dense;
using mslite_test::Fill;
using mslite_test::Floats;
using mslite_test::ModelFile;
using mslite_test::Runner;
using mslite_test::Six;

std::vector<float> Asked(ModelParallelRunner *runner, const std::vector<float> &x) {
  auto inputs = runner->GetInputs();
  inputs[0].SetShape({static_cast<int64_t>(x.size() / 3), 3});
  Fill(x, inputs[0]);
  std::vector<MSTensor> outputs;
  Status status = runner->Predict(inputs, &outputs);
  CHECK_EQ(status.ToString(), Status::OK().ToString());
  return Floats(outputs[0]);
}
}  // namespace

TEST(ARunnerComputesWhatItShould) {
  auto runner = Runner("dense.mindir");
  CHECK_EQ(Asked(&runner, Six()), Dense(Six()));
}

TEST(EveryCallGetsTensorsOfItsOwn) {
  auto runner = Runner("dense.mindir");
  CHECK(runner.GetInputs()[0] != runner.GetInputs()[0]);
  CHECK(runner.GetInputs()[0].Data() == nullptr);
  CHECK(runner.GetOutputs()[0].Shape() == (std::vector<int64_t>{2, 4}));
}

TEST(RequestsMayHaveAnySize) {
  auto runner = Runner("any.mindir");
  for (size_t rows : {1, 5, 2, 100}) {
    std::vector<float> x(3 * rows, 1.5f);
    CHECK_EQ(Asked(&runner, x), Dense(x));
  }
}

TEST(SixtyFourThreadsAskAtOnce) {
  auto runner = Runner("any.mindir");
  std::atomic<int> answered{0};
  mslite_test::Threads threads;
  for (int i = 0; i < 64; ++i) {
    threads.Start([&runner, &answered, i] {
      for (int turn = 0; turn < 10; ++turn) {
        std::vector<float> x(6, static_cast<float>(i * 100 + turn));
        CHECK_EQ(Asked(&runner, x), Dense(x));
        answered += 1;
      }
    });
  }
  threads.Join();
  CHECK_EQ(answered.load(), 640);
}

TEST(LargeTensorsOfManyThreadsDoNotMix) {
  auto runner = Runner("wide.mindir");
  mslite_test::Threads threads;
  for (int i = 0; i < 8; ++i) {
    threads.Start([&runner, i] {
      auto inputs = runner.GetInputs();
      std::vector<MSTensor> kept;
      for (int turn = 0; turn < 4; ++turn) {
        Fill(std::vector<float>(1 << 20, static_cast<float>(i * 10 + turn)), inputs[0]);
        std::vector<MSTensor> outputs;
        CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
        kept.push_back(outputs[0]);
      }
      for (int turn = 0; turn < 4; ++turn) {  // results stay what they were
        CHECK_EQ(Floats(kept[turn]),
                 std::vector<float>(1 << 20, static_cast<float>(i * 10 + turn)));
      }
    });
  }
  threads.Join();
}

TEST(OneInputMayServeManyRequestsAtOnce) {
  auto runner = Runner("wide.mindir");
  auto inputs = runner.GetInputs();
  Fill(std::vector<float>(1 << 20, 4.0f), inputs[0]);
  mslite_test::Threads threads;
  for (int i = 0; i < 4; ++i) {
    threads.Start([&runner, &inputs] {
      std::vector<MSTensor> outputs;
      CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
      CHECK_EQ(Floats(outputs[0])[1000], 4.0f);
    });
  }
  threads.Join();
}

TEST(GivenOutputsReceiveTheResultOrAreReplaced) {
  auto runner = Runner("dense.mindir");
  auto inputs = runner.GetInputs();
  Fill(Six(), inputs[0]);
  std::vector<float> y(8);
  auto outputs = runner.GetOutputs();
  outputs[0].SetData(y.data(), false);
  CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
  CHECK_EQ(y, Dense(Six()));
  // as the parallel sample has it: memory for 1001 numbers, whatever the model is
  outputs = runner.GetOutputs();
  outputs[0].SetShape({1, 1001});
  outputs[0].SetData(std::malloc(4004));
  CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
  CHECK_EQ(outputs[0].DataSize(), 32u);
  CHECK_EQ(Floats(outputs[0]), Dense(Six()));
}

TEST(MemoryMadeByMallocIsTakenOver) {
  auto runner = Runner("dense.mindir");
  auto inputs = runner.GetInputs();
  auto *data = static_cast<float *>(std::malloc(inputs[0].DataSize()));
  std::copy(Six().begin(), Six().end(), data);
  inputs[0].SetData(data);
  std::vector<MSTensor> outputs;
  CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
  CHECK_EQ(Floats(outputs[0]), Dense(Six()));
}

TEST(ASecondInitChangesNothing) {
  auto runner = Runner("dense.mindir");
  CHECK(runner.Init(ModelFile("wide.mindir")) == mindspore::kSuccess);
  CHECK(runner.Init("/no/such/file") == mindspore::kSuccess);
  CHECK_EQ(Asked(&runner, Six()), Dense(Six()));
}

TEST(InitMayBeTriedAgainAndSaysWhatWasWrong) {
  ModelParallelRunner runner;
  Status missing = runner.Init(ModelFile("nothing.mindir"));
  CHECK_EQ(missing.StatusCode(), mindspore::kLiteError);
  CHECK_CONTAINS(missing.ToString(), "nothing.mindir");
  Status garbage = runner.Init(ModelFile("garbage.mindir"));
  CHECK_EQ(garbage.StatusCode(), mindspore::kLiteError);
  CHECK_CONTAINS(garbage.ToString(), "garbage.mindir");
  CHECK_EQ(runner.Init(nullptr, 0).StatusCode(), mindspore::kLiteError);
  auto config = std::make_shared<RunnerConfig>();
  config->SetWorkersNum(-1);
  CHECK_EQ(runner.Init(ModelFile("dense.mindir"), config).StatusCode(), mindspore::kLiteError);
  CHECK(runner.GetInputs().empty());
  CHECK(runner.Init(ModelFile("dense.mindir")) == mindspore::kSuccess);
  CHECK_EQ(Asked(&runner, Six()), Dense(Six()));
}

TEST(PredictNeedsARunnerInputsAndOutputs) {
  ModelParallelRunner empty;
  std::vector<MSTensor> outputs;
  CHECK_EQ(empty.Predict({}, &outputs).StatusCode(), mindspore::kLiteNullptr);
  CHECK(empty.GetInputs().empty());
  CHECK(empty.GetOutputs().empty());
  auto runner = Runner("dense.mindir");
  CHECK_EQ(runner.Predict(runner.GetInputs(), nullptr).StatusCode(), mindspore::kLiteNullptr);
  CHECK_EQ(runner.Predict({}, &outputs).StatusCode(), mindspore::kLiteError);
  Status unfilled = runner.Predict(runner.GetInputs(), &outputs);
  CHECK_EQ(unfilled.StatusCode(), mindspore::kLiteInputTensorError);
  CHECK_CONTAINS(unfilled.ToString(), "has no data");
}

TEST(AModelInMemoryFindsItsWeights) {
  std::string bytes = mslite_test::Contents(ModelFile("net_graph.mindir"));
  for (const char *section : {"model_file", "model_File"}) {
    auto config = std::make_shared<RunnerConfig>();
    config->SetContext(Cpu());
    config->SetConfigInfo(section, {{"mindir_path", ModelFile("net_graph.mindir")}});
    ModelParallelRunner runner;
    std::string given = bytes;
    Status status = runner.Init(given.data(), given.size(), config);
    CHECK_EQ(status.ToString(), Status::OK().ToString());
    given.assign(given.size(), 'x');  // the caller's again
    CHECK_EQ(Asked(&runner, Six()), Dense(Six()));
  }
}

TEST(DeadlinesAndQueuesAreEntriesOfSectionParallel) {
  auto config = std::make_shared<RunnerConfig>();
  config->SetContext(Cpu());
  config->SetConfigInfo("parallel", {{"queue_size", "nonsense"}});
  Status status = ModelParallelRunner().Init(ModelFile("dense.mindir"), config);
  CHECK_CONTAINS(status.ToString(), "[parallel] queue_size");
  config->SetConfigInfo("parallel", {{"queue_size", "5"}, {"timeout_s", "120"}});
  ModelParallelRunner runner;
  CHECK(runner.Init(ModelFile("dense.mindir"), config) == mindspore::kSuccess);
  CHECK_EQ(Asked(&runner, Six()), Dense(Six()));
}

TEST(RunnersOfOneNameAreOneModelOfTheWorker) {
  auto config = std::make_shared<RunnerConfig>();
  config->SetContext(Cpu());
  config->SetConfigInfo("service", {{"name", "dense"}});
  ModelParallelRunner first;
  CHECK(first.Init(ModelFile("dense.mindir"), config) == mindspore::kSuccess);
  {
    ModelParallelRunner second;
    CHECK(second.Init(ModelFile("dense.mindir"), config) == mindspore::kSuccess);
    CHECK_EQ(Asked(&second, Six()), Dense(Six()));
  }
  CHECK_EQ(Asked(&first, Six()), Dense(Six()));  // it has lost nothing with the second
  Status status = ModelParallelRunner().Init(ModelFile("net_graph.mindir"), config);
  CHECK_CONTAINS(status.ToString(), "the name 'dense', version 1, belongs to");
}

TEST(ARequestMayHaveAPriority) {
  ModelParallelRunner runner = Runner("dense.mindir");
  auto inputs = runner.GetInputs();
  inputs[0].SetShape({2, 3});
  Fill(Six(), inputs[0]);
  for (int32_t priority : {-100, 0, 100}) {
    std::vector<MSTensor> outputs;
    CHECK(runner.PredictWithPriority(inputs, &outputs, priority) == mindspore::kSuccess);
    CHECK_EQ(outputs.size(), size_t{1});
  }
  for (int32_t priority : {-101, 101, 256}) {
    std::vector<MSTensor> outputs;
    const Status status = runner.PredictWithPriority(inputs, &outputs, priority);
    CHECK_EQ(status.StatusCode(), mindspore::kLiteParamInvalid);
    CHECK_CONTAINS(status.ToString(), "must be -100 to 100, but got " + std::to_string(priority));
  }
}

TEST(DeletingARunnerWaitsForCallsInside) {
  for (int turn = 0; turn < 5; ++turn) {
    auto *runner = new ModelParallelRunner(Runner("wide.mindir"));
    std::atomic<int> inside{0};
    mslite_test::Threads threads;
    for (int i = 0; i < 4; ++i) {
      auto inputs = runner->GetInputs();
      Fill(std::vector<float>(1 << 20, 2.0f), inputs[0]);
      threads.Start([runner, inputs, &inside] {
        std::vector<MSTensor> outputs;
        ModelParallelRunner own = *runner;  // a handle: the runner goes with the last of them
        inside += 1;
        CHECK(own.Predict(inputs, &outputs) == mindspore::kSuccess);
        CHECK_EQ(Floats(outputs[0])[7], 2.0f);
      });
    }
    while (inside < 4) std::this_thread::yield();
    delete runner;
    threads.Join();
  }
}

// What it made would stay in the worker, and be nobody's.
TEST(AnInitThatComesAfterTheDeletionMakesNothing) {
  auto impl = std::make_unique<mindspore::ModelParallelRunnerImpl>();
  const auto shared = impl->shared();  // as a call that is inside has it
  impl.reset();
  const auto request = [] { return mslite::OfFile(ModelFile("dense.mindir"), mindspore::kMindIR); };
  CHECK_THROWS(shared->Init(request, nullptr), mslite::Failure);
  CHECK(shared->Inputs().empty());
}

TEST(ResultsOutliveTheirRunner) {
  std::vector<MSTensor> outputs;
  {
    auto runner = Runner("wide.mindir");
    auto inputs = runner.GetInputs();
    Fill(std::vector<float>(1 << 20, 6.0f), inputs[0]);
    CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
  }
  CHECK_EQ(Floats(outputs[0])[99], 6.0f);
}

TEST(TheUsersContextIsNotWrittenTo) {
  auto context = std::make_shared<mindspore::Context>();
  context->MutableDeviceInfo().push_back(std::make_shared<mindspore::CPUDeviceInfo>());
  auto config = std::make_shared<RunnerConfig>();
  config->SetContext(context);
  ModelParallelRunner runner;
  CHECK(runner.Init(ModelFile("dense.mindir"), config) == mindspore::kSuccess);
  CHECK_EQ(context->GetThreadNum(), 0);
  CHECK_EQ(context->MutableDeviceInfo()[0]->GetProvider(), "");
}
