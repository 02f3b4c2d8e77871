// What the program around the library may do to its process.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/failure.h"
#include "src/wire/descriptor.h"
#include "src/wire/frame.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/live.h"
#include "tests/models.h"

namespace {
using mindspore::Model;
using mindspore::ModelParallelRunner;
using mindspore::MSTensor;
using mslite::Failure;
using mslite::Session;
using mslite_test::AreRows;
using mslite_test::Digits;
using mslite_test::DigitsRequest;
using mslite_test::PassesInChild;
using mslite_test::Scores;

// A signal at every millisecond, which breaks into whatever waits.
void StartSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  CHECK_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  const itimerval often = {{0, 1000}, {0, 1000}};
  CHECK_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
}

// A folder that PATH begins with, in it a program of these words; without words a folder.
class Path {
 public:
  explicit Path(const std::string &words) {
    CHECK(mkdtemp(&folder_[0]) != nullptr);
    const std::string program = folder_ + "/mslite";
    if (words.empty()) {
      CHECK_EQ(mkdir(program.c_str(), 0700), 0);
    } else {
      std::ofstream(program) << words;
      CHECK_EQ(chmod(program.c_str(), 0700), 0);
    }
    unsetenv("MSLITE_PYTHON");
    setenv("PATH", (folder_ + ":/usr/bin:/bin").c_str(), 1);
  }
  ~Path() {
    remove((folder_ + "/mslite").c_str());
    remove(folder_.c_str());
  }

  std::string Complaint() const {
    try {
      Session::Current();
    } catch (const Failure &failure) {
      return failure.what();
    }
    return "";
  }

 private:
  std::string folder_ = "/tmp/mslite-path-XXXXXX";
};

TEST(AProgramThatIsNoWorkerIsNamed) {
  CHECK(PassesInChild([] {
    const Path path(
        "#!/bin/sh\nprintf 'something else, of at least forty bytes of words' >&3\n"
        "exec sleep 60\n");
    CHECK_CONTAINS(path.Complaint(), "is no worker of mslite");
    CHECK_CONTAINS(path.Complaint(), "/mslite worker --fd 3'");
  }));
}

TEST(AFolderOnPathIsNoProgram) {
  CHECK(PassesInChild([] { CHECK_CONTAINS(Path("").Complaint(), "no 'mslite' on PATH"); }));
}

TEST(SocketsNeverHaveTheNumbersOfClosedStdio) {
  CHECK(PassesInChild([] {
    for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(number);
    const mslite::Descriptor single = mslite::Descriptor::Socket();
    const auto pair = mslite::Descriptor::Pair();
    // 3 is what a worker's socket becomes in its process
    CHECK(single.number() > 3 && pair.first.number() > 3 && pair.second.number() > 3);
  }));
}

TEST(AProgramThatPrintsToAClosedStderrDoesNotSpeakToTheWorker) {
  CHECK(PassesInChild([] {
    close(STDERR_FILENO);
    const auto session = Session::Current();
    const uint32_t model = session->Build(DigitsRequest()).model;
    CHECK(write(STDERR_FILENO, "words", 5) < 0);
    CHECK_EQ(session->Predict(model, {Digits(1, 0.01f)}).size(), size_t{1});
  }));
}

TEST(SignalsDoNotPutOffTheEndOfAWait) {
  CHECK(PassesInChild([] {
    StartSignals();
    const auto ends = mslite::Descriptor::Pair();
    const int64_t due_ns = mslite::NowNs() + 20 * 1000000;
    CHECK_EQ(mslite::PolledUntil(ends.first.number(), POLLIN, due_ns), 0);
    CHECK(mslite::NowNs() >= due_ns);
  }));
}

TEST(SignalsDoNotBreakBuildAndPredict) {
  CHECK(PassesInChild([] {
    StartSignals();
    const auto session = Session::Current();
    const uint32_t model = session->Build(DigitsRequest()).model;
    const auto row = Scores(session->Predict(model, {Digits(1, 0.01f)})[0]);
    for (int i = 0; i < 20; ++i) {  // each takes some 40 ms, and as many signals
      CHECK(AreRows(session->Predict(model, {Digits(200, 0.01f)})[0], row));
    }
  }));
}

// Whatever the parent's threads were in the middle of when it was forked.
TEST(WhatAParentIsAtRefusesToRunInAChild) {
  Model model = mslite_test::Built("wide.mindir");
  mslite_test::Fill(std::vector<float>(1 << 20, 1.0f), model.GetInputs()[0]);
  ModelParallelRunner runner = mslite_test::Runner("dense.mindir");
  const auto inputs = runner.GetInputs();
  std::atomic<bool> is_done{false};
  mslite_test::Threads threads;
  threads.Start([&] {
    std::vector<MSTensor> outputs;
    while (!is_done) CHECK(model.Predict(model.GetInputs(), &outputs) == mindspore::kSuccess);
  });
  threads.Start([&] {
    while (!is_done) runner.GetInputs();
  });
  bool has_passed = true;
  for (int i = 0; i < 10 && has_passed; ++i) {
    has_passed = PassesInChild([&] {
      alarm(600);
      std::vector<MSTensor> outputs;
      CHECK_EQ(model.Predict(inputs, &outputs).StatusCode(), mindspore::kLiteUninitializedObj);
      CHECK_EQ(runner.Predict(inputs, &outputs).StatusCode(), mindspore::kLiteUninitializedObj);
      CHECK(model.GetInputs().empty() && runner.GetInputs().empty());
      CHECK_CONTAINS(runner.Init(mslite_test::ModelFile("dense.mindir")).ToString(), "forked");
    });
  }
  is_done = true;
  threads.Join();
  CHECK(has_passed);
}

TEST(ObjectsMadeBeforeAForkMayBeBuiltInTheChild) {
  Model model;
  auto *const runner = new ModelParallelRunner;
  const std::string path = mslite_test::ModelFile("dense.mindir");
  CHECK(PassesInChild([&] {
    CHECK(model.Build(path, mindspore::kMindIR, mslite_test::Cpu()) == mindspore::kSuccess);
    CHECK(runner->Init(path) == mindspore::kSuccess);
    CHECK_EQ(runner->GetInputs().size(), size_t{1});
    delete runner;  // which closes it, as it is this process's
  }));
  delete runner;
}
}  // namespace
