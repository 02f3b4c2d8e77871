// How workers begin and end, and what is left of them: real ones.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "src/failure.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/live.h"
#include "tests/support.h"

namespace {
using mslite::Failure;
using mslite::Session;
using mslite_test::AreRows;
using mslite_test::AwaitEnd;
using mslite_test::Digits;
using mslite_test::DigitsRequest;
using mslite_test::FailureOf;
using mslite_test::OpenFiles;
using mslite_test::PassesInChild;
using mslite_test::Scores;
using mslite_test::WorkerOf;

size_t Sockets() {
  const auto files = OpenFiles(getpid());
  return static_cast<size_t>(std::count_if(
      files.begin(), files.end(), [](const std::string &one) { return one.find("socket:") == 0; }));
}

TEST(SixtyFourThreadsRunAtOnce) {
  const auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back(Scores(session->Predict(model, {Digits(1, 0.1f * static_cast<float>(i))})[0]));
  }
  const auto shared = session->Allocate(70 * mslite_test::kDigitBytes);
  const auto for_all = Digits(70, 0.3f, shared);  // several requests may read one input
  mslite_test::Threads threads;
  for (int i = 0; i < 64; ++i) {
    threads.Start([&, i] {
      const auto own = Digits(i % 2 == 0 ? 1 : 70, 0.1f * static_cast<float>(i % 4));
      for (int j = 0; j < 3; ++j) {
        CHECK(AreRows(session->Predict(model, {own})[0], rows[static_cast<size_t>(i % 4)]));
        CHECK(AreRows(session->Predict(model, {for_all})[0], rows[3]));
      }
    });
  }
  threads.Join();
  session->Close(model);
}

TEST(RequestsUnderWayFailWhenTheWorkerIsKilledAndTheNextOneIsAnother) {
  auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  const auto kept = session->Predict(model, {Digits(1000, 0.1f)});
  const pid_t worker = WorkerOf(session.get());
  std::atomic<int> answered{0};
  mslite_test::Threads threads;
  for (int i = 0; i < 4; ++i) {
    threads.Start([&] {
      const Failure failure = FailureOf([&] {
        for (;;) {
          session->Predict(model, {Digits(100, 0.1f)});
          ++answered;
        }
      });
      CHECK_EQ(failure.kind(), std::string("WorkerDiedError"));
      CHECK_EQ(failure.code(), mindspore::kCoreFailed);
      CHECK_CONTAINS(failure.what(),
                     "process " + std::to_string(worker) + " is gone (killed by signal 9)");
    });
  }
  while (answered.load() < 4) std::this_thread::yield();
  kill(worker, SIGKILL);
  threads.Join();
  CHECK_EQ(waitpid(worker, nullptr, WNOHANG), -1);  // it was reaped
  std::vector<float> row = Scores(kept[0]);         // memory of the dead worker can still be read
  row.resize(10);
  CHECK(AreRows(kept[0], row));
  const auto next = Session::Current();
  CHECK(next != session);
  const auto again = next->Build(DigitsRequest()).model;
  CHECK(AreRows(next->Predict(again, {Digits(1, 0.1f)})[0], row));
  CHECK_EQ(FailureOf([&] { session->Predict(model, {Digits(1, 0.1f)}); }).kind(),
           std::string("WorkerDiedError"));
  session->Close(model);
  // what the old worker shared is copied for the new one
  CHECK_EQ(next->Predict(again, {Digits(70, 0.1f, kept[0].memory)}).size(), 1u);
  next->Close(again);
}

TEST(AWorkerThatDiesUnseenIsNoticedByTheNextWhoNeedsOne) {
  const auto session = Session::Current();
  const pid_t worker = WorkerOf(session.get());
  kill(worker, SIGKILL);
  AwaitEnd(worker);  // and is reaped, though nobody asked
  CHECK(Session::Running() == nullptr);
  CHECK(WorkerOf(Session::Current().get()) != worker);
}

TEST(NothingIsLeftOfAWorkerThatDied) {
  const auto use = [] {
    const auto session = Session::Current();
    const auto model = session->Build(DigitsRequest()).model;
    session->Predict(model, {Digits(1000, 0.1f)});
    return WorkerOf(session.get());
  };
  pid_t worker = use();
  const size_t before = OpenFiles(getpid()).size();
  for (int i = 0; i < 2; ++i) {
    kill(worker, SIGKILL);
    AwaitEnd(worker);
    worker = use();
  }
  CHECK_EQ(OpenFiles(getpid()).size(), before);
}

TEST(AChildOfTheProcessHasAWorkerOfItsOwn) {
  const auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  const pid_t worker = WorkerOf(session.get());
  const auto shared = session->Allocate(100000);
  CHECK(PassesInChild([&] {
    CHECK_EQ(Sockets(), 0u);
    const Failure failure = FailureOf([&] { session->Predict(model, {Digits(1, 0.1f)}); });
    CHECK_CONTAINS(failure.what(), "forked");
    CHECK(session->Allocate(100000) == nullptr);
    session->Close(model);
    CHECK(Session::Running() == nullptr);
    const auto own = Session::Current();
    CHECK(WorkerOf(own.get()) != worker);
    const auto other = own->Build(DigitsRequest()).model;
    CHECK_EQ(own->Predict(other, {Digits(300, 0.1f, shared)}).size(), 1u);
  }));
  CHECK_EQ(session->Predict(model, {Digits(1, 0.1f)}).size(), 1u);
  session->Close(model);
}

TEST(AForkWhileAWorkerStartsDoesNoHarm) {
#ifdef __SANITIZE_THREAD__
  SKIP("ThreadSanitizer takes no new threads for those that a fork left behind");
#endif
  CHECK(PassesInChild([] {
    std::atomic<bool> is_there{false};
    std::thread starting([&] {
      Session::Current();
      is_there = true;
    });
    while (!is_there.load() && Sockets() == 0) std::this_thread::yield();
    const bool passed = PassesInChild([] {
      CHECK_EQ(Sockets(), 0u);
      CHECK(Session::Current() != nullptr);
    });
    starting.join();
    CHECK(passed);
  }));
}

TEST(AWorkerDoesNotOutliveItsHost) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  CHECK(PassesInChild([&] {
    const pid_t worker = WorkerOf(Session::Current().get());
    CHECK_EQ(write(ends[1], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
  }));
  pid_t worker = 0;
  CHECK_EQ(read(ends[0], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
  close(ends[0]);
  close(ends[1]);
  AwaitEnd(worker);
}

TEST(AWorkerInheritsNothingButItsSocket) {
  CHECK(PassesInChild([] {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);  // as a server's sockets: without close-on-exec
    const auto ours = OpenFiles(getpid());
    const auto theirs = OpenFiles(WorkerOf(Session::Current().get()));
    for (const auto &file : ours) {
      CHECK(file.find("pipe:") != 0 ||
            std::find(theirs.begin(), theirs.end(), file) == theirs.end());
    }
  }));
}

TEST(AProgramMayExitWhileThreadsPredict) {
  CHECK(PassesInChild([] {
    const auto session = Session::Current();
    const auto model = session->Build(DigitsRequest()).model;
    std::atomic<int> answered{0};
    for (int i = 0; i < 4; ++i) {
      std::thread([&answered, session, model] {
        try {
          for (;;) {
            session->Predict(model, {Digits(100, 0.1f)});
            ++answered;
          }
        } catch (...) {
          std::abort();  // nothing fails while the process goes
        }
      }).detach();
    }
    while (answered.load() < 8) std::this_thread::yield();
    std::exit(0);
  }));
}

TEST(WithoutARuntimeTheErrorSaysWhereItWasLookedFor) {
  CHECK(PassesInChild([] {
    unsetenv("MSLITE_PYTHON");
    setenv("PATH", "/nowhere", 1);
    const Failure failure = FailureOf([] { Session::Current(); });
    CHECK_EQ(failure.code(), mindspore::kLiteNotSupport);
    CHECK_CONTAINS(failure.what(), "MSLITE_PYTHON is not set");
    CHECK_CONTAINS(failure.what(), "no 'mslite' on PATH");
  }));
}

TEST(ARuntimeThatCannotBeStartedIsNamed) {
  CHECK(PassesInChild([] {
    setenv("MSLITE_PYTHON", "/no/such/python", 1);
    const Failure failure = FailureOf([] { Session::Current(); });
    CHECK_EQ(failure.code(), mindspore::kLiteNotSupport);
    CHECK_CONTAINS(failure.what(), "/no/such/python -P -m mindspore_lite worker --fd 3");
    setenv("MSLITE_PYTHON", "/bin/false", 1);
    const Failure ended = FailureOf([] { Session::Current(); });
    CHECK_EQ(ended.code(), mindspore::kLiteNotSupport);
    CHECK_CONTAINS(ended.what(), "exit status 1");
    CHECK_CONTAINS(ended.what(), "Is it Python 3.11 or newer, with mslite installed?");
    CHECK_EQ(Sockets(), 0u);
  }));
}

TEST(ASettingAttachesToAWorkerThatListens) {
  const std::string python = mslite_test::Setting("MSLITE_PYTHON");
  CHECK(PassesInChild([&] {
    char folder[] = "/tmp/mslite-test-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    const std::string path = std::string(folder) + "/worker.sock";
    setenv("MSLITE_SOCKET", path.c_str(), 1);
    const Failure failure = FailureOf([] { Session::Current(); });
    CHECK_CONTAINS(failure.what(), "MSLITE_SOCKET is '" + path + "'");

    const std::string command =
        "exec '" + python + "' -P -m mindspore_lite worker --stay --socket " + path;
    FILE *const worker = popen(command.c_str(), "r");
    char line[512];
    CHECK(fgets(line, sizeof(line), worker) != nullptr);
    const auto session = Session::Current();
    const pid_t pid = WorkerOf(session.get());
    CHECK_CONTAINS(line, "mslite worker " + std::to_string(pid) + " listens");
    const auto model = session->Build(DigitsRequest()).model;
    CHECK_EQ(session->Predict(model, {Digits(1000, 0.1f)}).size(), 1u);
    kill(pid, SIGKILL);
    CHECK_EQ(FailureOf([&] {
               for (;;) session->Predict(model, {Digits(1, 0.1f)});
             }).kind(),
             std::string("WorkerDiedError"));
    pclose(worker);
    unlink(path.c_str());
    rmdir(folder);
  }));
}
}  // namespace
