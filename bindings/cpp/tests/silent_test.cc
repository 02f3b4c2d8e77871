// Workers that do not answer: a request has a deadline, and without one the silence is noticed.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "include/api/model.h"
#include "include/api/model_parallel_runner.h"
#include "src/build_request.h"
#include "src/runner_impl.h"
#include "src/wire/frame.h"
#include "src/wire/pulse.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/live.h"
#include "tests/models.h"
#include "tests/support.h"

namespace {
using mindspore::MSTensor;
using mslite::Session;
using mslite_test::AwaitEnd;
using mslite_test::Cpu;
using mslite_test::Digits;
using mslite_test::DigitsRequest;
using mslite_test::FailureOf;
using mslite_test::ModelFile;
using mslite_test::WorkerOf;

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 2;
constexpr uint64_t kShortUs = 200000;

// While it is there, workers are looked after often; the present one has slow lanes, and goes.
class Attentive {
 public:
  Attentive() {
    if (const auto session = Session::Running()) {
      const pid_t worker = WorkerOf(session.get());
      kill(worker, SIGKILL);
      AwaitEnd(worker);
    }
    Set(20, 50, kNeverMs);  // a busy machine may keep one waiting that is well
  }
  ~Attentive() { Set(10000, 10000, 60000); }

  // From now on one that neither answers nor computes for so long is given up.
  static void GiveUpAfter(int silent_ms) { mslite::TheTimes().silent_ms = silent_ms; }

  static constexpr int kNeverMs = 60000;

 private:
  static void Set(int every_ms, int ask_ms, int silent_ms) {
    mslite::TheTimes().every_ms = every_ms;
    mslite::TheTimes().ask_ms = ask_ms;
    mslite::TheTimes().silent_ms = silent_ms;
  }
};

// The inputs of loop.onnx: a number of turns, and two numbers.
void FillLoop(int64_t turns, const std::vector<MSTensor> &inputs) {
  MSTensor number = inputs[0];
  std::memcpy(number.MutableData(), &turns, sizeof(turns));
  mslite_test::Fill({3, 4}, inputs[1]);
}

TEST(AStoppedWorkerIsGivenUpWithoutADeadline) {
  Attentive attentive;
  const auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  CHECK_EQ(session->Predict(model, {Digits(1, 0.1f)}).size(), 1u);
  const pid_t worker = WorkerOf(session.get());
  kill(worker, SIGSTOP);
  Attentive::GiveUpAfter(300);
  mslite_test::Threads threads;
  for (int i = 0; i < 3; ++i) {
    threads.Start([&] {
      const auto failure = FailureOf([&] {
        for (;;) session->Predict(model, {Digits(1, 0.1f)});  // it does not stop at once
      });
      CHECK_EQ(failure.kind(), std::string("WorkerDiedError"));
      CHECK_EQ(failure.code(), mindspore::kCoreFailed);
      CHECK_CONTAINS(failure.what(), "did not answer for");
    });
  }
  threads.Join();
  AwaitEnd(worker);
  Attentive::GiveUpAfter(Attentive::kNeverMs);
  const auto next = Session::Current();
  const auto again = next->Build(DigitsRequest()).model;
  CHECK_EQ(next->Predict(again, {Digits(1, 0.1f)}).size(), 1u);
  next->Close(again);
}

TEST(AStoppedWorkerDoesNotHoldARequestBeyondItsDeadline) {
  const auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  const pid_t worker = WorkerOf(session.get());
  kill(worker, SIGSTOP);
  mslite::CallOptions options;
  options.timeout_us = kShortUs;
  for (int64_t digits : {1, 1, 1000}) {  // over a lane that is there, a new one, and with memory
    const auto failure = FailureOf([&] {
      for (;;) session->Predict(model, {Digits(digits, 0.1f)}, options);  // it may still run
    });
    CHECK_EQ(failure.code(), mindspore::kMDTimeOut);
    CHECK_EQ(failure.kind(), std::string("RequestTimeoutError"));
  }
  kill(worker, SIGCONT);
  CHECK_EQ(session->Predict(model, {Digits(1, 0.1f)}).size(), 1u);
  session->Close(model);
}

TEST(AModelsPredictEndsByItsTimeoutAndTheNextOneWorks) {
  Attentive attentive;  // one that computes is not taken for dead
  mindspore::Model model;
  CHECK(model.UpdateConfig("parallel", {"timeout_s", "4"}) == mindspore::kSuccess);
  CHECK(model.Build(ModelFile("loop.onnx"), mindspore::kONNX, Cpu()) == mindspore::kSuccess);
  std::vector<MSTensor> outputs;
  FillLoop(kEndless, model.GetInputs());
  Attentive::GiveUpAfter(1000);
  const mindspore::Status late = model.Predict(model.GetInputs(), &outputs);
  Attentive::GiveUpAfter(Attentive::kNeverMs);
  CHECK_EQ(late.StatusCode(), mindspore::kMDTimeOut);
  CHECK_CONTAINS(late.ToString(), "timeout_s");
  FillLoop(3, model.GetInputs());
  mindspore::Status next = model.Predict(model.GetInputs(), &outputs);
  while (next.StatusCode() == mindspore::kMDTimeOut) {  // on a busy machine
    next = model.Predict(model.GetInputs(), &outputs);
  }
  CHECK(next == mindspore::kSuccess);
  CHECK_EQ(mslite_test::Floats(outputs[0])[1], 4.0f);
}

TEST(ARunnersPredictEndsByItsTimeoutAndTheNextOneWorks) {
  auto config = std::make_shared<mindspore::RunnerConfig>();
  config->SetContext(Cpu());
  config->SetConfigInfo("parallel", {{"timeout_s", "0.2"}});
  mindspore::ModelParallelRunnerImpl runner;  // the public Init takes every file for MindIR
  const auto shared = runner.shared();
  shared->Init([] { return mslite::OfFile(ModelFile("loop.onnx"), mindspore::kONNX); }, config);
  std::vector<MSTensor> outputs;
  const auto inputs = shared->Inputs();
  FillLoop(kEndless, inputs);
  CHECK_EQ(FailureOf([&] { shared->Predict(inputs, &outputs); }).code(), mindspore::kMDTimeOut);
  FillLoop(3, inputs);
  for (bool is_late = true; is_late;) {  // more than once on a busy machine
    try {
      shared->Predict(inputs, &outputs);
      is_late = false;
    } catch (const mslite::Failure &failure) {
      CHECK_EQ(failure.code(), mindspore::kMDTimeOut);
    }
  }
  CHECK_EQ(mslite_test::Floats(outputs[0])[1], 4.0f);
}

TEST(ATimeoutThatIsNoTimeIsRefused) {
  for (const char *text : {"soon", "-1", "", "1 s", "nan"}) {
    mindspore::Model model;
    CHECK(model.UpdateConfig("parallel", {"timeout_s", text}) == mindspore::kSuccess);
    const auto status = model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu());
    CHECK_CONTAINS(status.ToString(), "[parallel] timeout_s");
  }
}

TEST(TheWorkerSaysHowLongARequestMayTake) {
  const std::pair<const char *, uint64_t> cases[] = {
      {"0", 0}, {"1e-9", 1}, {" 1.5 ", 1500000}, {"1e99", 1000000000000000}};
  for (const auto &one : cases) {
    mslite::BuildRequest request = mslite::OfFile(ModelFile("dense.mindir"), mindspore::kMindIR);
    mslite::AddContext(*Cpu(), &request);
    request.config = {{"parallel", {{"timeout_s", one.first}}}};
    const auto session = mslite::Session::Current();
    const uint32_t model = session->Build(request).model;
    CHECK_EQ(session->TimeoutUs(model), one.second);
    session->Close(model);
  }
}

TEST(TheKernelTellsWhetherAProcessComputes) {
  const auto own = static_cast<uint32_t>(getpid());
  const int64_t before = mslite::CpuTicks(own);
  CHECK(before >= 0);
  while (mslite::CpuTicks(own) == before) {
  }
  CHECK_EQ(mslite::CpuTicks(0x7ffffff0), -1);
}
}  // namespace
