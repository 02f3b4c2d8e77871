// What the program around the library may do to its process.
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/wire/descriptor.h"
#include "src/wire/frame.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/live.h"

namespace {
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
    const auto session = mslite::Session::Current();
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
    const auto session = mslite::Session::Current();
    const uint32_t model = session->Build(DigitsRequest()).model;
    const auto row = Scores(session->Predict(model, {Digits(1, 0.01f)})[0]);
    for (int i = 0; i < 20; ++i) {
      CHECK(AreRows(session->Predict(model, {Digits(3000, 0.01f)})[0], row));
    }
  }));
}
}  // namespace
