// The session of this process: Session::Current and Session::Running.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "src/wire/session_state.h"

namespace mslite {
namespace {
// A child of the process has another one: nothing of the parent's is touched in it.
struct Process {
  explicit Process(const Process *before) : parent(before) {}

  const Process *const parent;  // kept in reach, so that what it holds does not count as leaked
  const uint64_t generation = Generation();
  std::mutex starting;  // held while a worker starts, which takes seconds
  std::mutex lock;      // held for `session` alone
  std::shared_ptr<Session> session;
};

// Never destroyed: threads may be inside a request while the process exits.
Process &ThisProcess() {
  static std::atomic<Process *> known{nullptr};
  Process *found = known.load();
  while (found == nullptr || found->generation != Generation()) {
    std::unique_ptr<Process> fresh(new Process(found));
    if (known.compare_exchange_strong(found, fresh.get())) found = fresh.release();
  }
  return *found;
}

std::shared_ptr<Link> Connect() {
  const char *const path = std::getenv("MSLITE_SOCKET");
  return path == nullptr || *path == '\0' ? Link::Start() : Link::Attach(path);
}
}  // namespace

std::shared_ptr<Session> Session::Running() noexcept {
  std::shared_ptr<Session> session;
  try {
    Process &process = ThisProcess();
    const std::lock_guard<std::mutex> guard(process.lock);
    session = process.session;
  } catch (const std::exception &) {
    return nullptr;
  }
  if (session != nullptr && !session->state_->link->IsAlive()) return nullptr;
  return session;
}

std::shared_ptr<Session> Session::Current() {
  if (auto session = Running()) return session;
  Process &process = ThisProcess();
  const std::lock_guard<std::mutex> one_at_a_time(process.starting);
  if (auto session = Running()) return session;
  auto session = std::make_shared<Session>(std::unique_ptr<State>(new State(Connect())));
  std::shared_ptr<Session> before = session;
  {
    const std::lock_guard<std::mutex> guard(process.lock);
    process.session.swap(before);
  }
  return session;  // the one before goes now, unless a model still has it
}
}  // namespace mslite
