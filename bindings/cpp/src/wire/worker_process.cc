#include "src/wire/worker_process.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "src/failure.h"
#include "src/wire/errors.h"
#include "src/wire/spawn_actions.h"

namespace mslite {
namespace {
using Child = std::shared_ptr<WorkerProcess>;

void *AwaitChild(void *given) {
  const std::unique_ptr<Child> child(static_cast<Child *>(given));
  (*child)->Await();
  return nullptr;
}

// A thread that nobody waits for, and that takes no signals of the program.
int StartReaper(const Child &child) {
  std::unique_ptr<Child> held(new Child(child));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, AwaitChild, held.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) held.release();
  return error;
}
}  // namespace

std::shared_ptr<WorkerProcess> WorkerProcess::Start(const std::vector<std::string> &command,
                                                    const Descriptor &socket) {
  SpawnActions actions(socket.number());
  std::vector<char *> words;
  for (const auto &word : command) words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, words[0], actions.files(), actions.attributes(), words.data(), environ);
  if (error != 0) {
    throw Failure(mindspore::kLiteNotSupport, "EngineUnavailableError",
                  "the worker cannot be started by '" + Joined(command) +
                      "': " + SystemWords(error) +
                      "; set MSLITE_PYTHON to the Python interpreter that mslite is installed "
                      "for, or put the command 'mslite' on PATH");
  }
  const auto child = std::make_shared<WorkerProcess>(pid);
  const int failed = StartReaper(child);
  if (failed != 0) {
    child->Kill();
    child->Await();
    throw ResourceFailure("no thread can be had to look after the worker: " + SystemWords(failed));
  }
  return child;
}

std::string WorkerProcess::Ending(int limit_ms) {
  std::unique_lock<std::mutex> guard(lock_);
  ended_.wait_for(guard, std::chrono::milliseconds(limit_ms), [this] { return has_ended_; });
  return ending_;
}

void WorkerProcess::Kill() {
  const std::lock_guard<std::mutex> guard(lock_);
  if (!has_ended_) kill(pid_, SIGKILL);  // not reaped yet: the number is no one else's
}

void WorkerProcess::Await() {
  siginfo_t facts = {};
  int found;
  do {
    found = waitid(P_PID, static_cast<id_t>(pid_), &facts, WEXITED | WNOWAIT);
  } while (found != 0 && errno == EINTR);
  const std::lock_guard<std::mutex> guard(lock_);
  // where the program ignores SIGCHLD, or waits for all children, nothing is left for us
  if (found == 0 && waitpid(pid_, nullptr, 0) == pid_) {
    ending_ = (facts.si_code == CLD_EXITED ? "exit status " : "killed by signal ") +
              std::to_string(facts.si_status);
  }
  has_ended_ = true;
  ended_.notify_all();
}
}  // namespace mslite
