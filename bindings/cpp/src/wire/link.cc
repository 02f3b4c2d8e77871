#include "src/wire/link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "src/wire/errors.h"

namespace mslite {
namespace {
constexpr int kStartMs = 120000;  // for a worker to start; imports from a cold disk take a while
constexpr int kGoneMs = 2000;     // between the first and the last sign that a process has ended

std::string Because(const Lost &lost) {
  return lost.error == 0 ? lost.what : lost.what + (": " + SystemWords(lost.error));
}

// Of who waits for a short time only.
class NoPatience : public Patience {
 public:
  void Check() override {}
};

uint64_t NextSerial() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

// A worker that was started and did not greet.
Failure NotStarted(const std::string &command, WorkerProcess *process, const Lost &lost) {
  const std::string ending = process->Ending(kGoneMs);
  process->Kill();
  const bool has_exited = ending.find("exit status") == 0;
  const std::string what =
      ending.empty() ? Because(lost) : "ended before it answered (" + ending + ")";
  return Failure(
      has_exited ? mindspore::kLiteNotSupport : mindspore::kCoreFailed,
      has_exited ? "EngineUnavailableError" : "WorkerDiedError",
      "the worker was started by '" + command + "' but " + what +
          "; what it said is on stderr. Is it Python 3.11 or newer, with mslite installed? "
          "Try '" +
          command + "' in a terminal: it should miss nothing but descriptor 3");
}
}  // namespace

std::shared_ptr<Link> Link::Start() {
  const std::vector<std::string> command = WorkerCommand();
  auto ends = Descriptor::Pair();
  const auto process = WorkerProcess::Start(command, ends.second);
  ends.second.Close();  // else its end would not be seen
  try {
    const Welcome welcome = Greet(ends.first.number(), Token{}, kStartMs);
    return std::make_shared<Link>(std::move(ends.first), welcome, process);
  } catch (const Lost &lost) {
    throw NotStarted(Joined(command), process.get(), lost);
  } catch (const Failure &failure) {
    process->Kill();
    throw Failure(failure.code(), failure.kind(),
                  "the worker that was started by '" + Joined(command) +
                      "' cannot be used: " + failure.what());
  } catch (...) {
    process->Kill();
    throw;
  }
}

std::shared_ptr<Link> Link::Attach(const std::string &path) {
  try {
    Descriptor keeper = Connected(path);
    const Welcome welcome = Greet(keeper.number(), Token{}, kGreetingMs);
    return std::make_shared<Link>(std::move(keeper), welcome, nullptr);
  } catch (const Lost &lost) {
    throw Failure(mindspore::kLiteNotSupport, "EngineUnavailableError",
                  "MSLITE_SOCKET is '" + path + "', but the worker there " + Because(lost) +
                      "; start one by 'mslite worker --socket " + path +
                      " --stay', or unset MSLITE_SOCKET");
  }
}

Link::Link(Descriptor keeper, const Welcome &welcome, std::shared_ptr<WorkerProcess> process)
    : serial_(NextSerial()),
      keeper_(std::move(keeper)),
      welcome_(welcome),
      process_(std::move(process)),
      pulse_(welcome.pid) {}

std::unique_ptr<Lane> Link::Opened(int limit_ms) {
  Descriptor socket = Connected(welcome_.address);
  Greet(socket.number(), welcome_.token, limit_ms);
  return std::unique_ptr<Lane>(new Lane(std::move(socket)));
}

std::unique_ptr<Lane> Link::OpenLane(int64_t due_ns) {
  if (is_over_.load()) throw Death();
  try {
    // rounded up, so that a greeting without an answer is late
    const int64_t left_ms = due_ns == 0 ? kGreetingMs : (due_ns - NowNs()) / 1000000 + 1;
    return Opened(static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(left_ms, kGreetingMs))));
  } catch (const Lost &lost) {
    if (due_ns != 0 && NowNs() >= due_ns && !IsOver(0)) throw LateFailure();
    throw Explained(lost);
  } catch (const Failure &failure) {
    // it took us once: so it is ending, or gone and another one is there
    if (failure.kind() == "WireError" && IsOver(0)) throw Death();
    throw;
  }
}

std::unique_ptr<Block> Link::OpenBlock(const Made &made, const LaneLife &life) {
  try {
    return std::unique_ptr<Block>(new Block(pid(), made, serial_, life));
  } catch (const Failure &) {
    if (IsOver(0)) throw Death();
    throw;
  }
}

Failure Link::Explained(const Lost &lost) {
  if (IsOver(kGoneMs)) return Death();
  return WireFailure("the worker process " + std::to_string(pid()) + " " + Because(lost) +
                     ", though it still runs; try again, or end it");
}

// The first connection ends with the worker, however that ends.
bool Link::IsOver(int limit_ms) noexcept {
  if (is_over_.load()) return true;
  const int ready = PolledUntil(keeper_.number(), POLLIN, NowNs() + int64_t{limit_ms} * 1000000);
  if (ready > 0) is_over_.store(true);  // nothing is ever said over it: it can only be the end
  return ready > 0;
}

void Link::Check() {
  const std::unique_lock<std::mutex> asking(asking_, std::try_to_lock);
  if (!asking.owns_lock()) return;
  if (is_over_.load()) throw Death();
  pulse_.Begin();
  if (Answers()) return pulse_.Heard();
  const int64_t silent_ms = pulse_.SilentMs();
  if (silent_ms < TheTimes().silent_ms) return;
  GiveUp(silent_ms);
  throw Death();
}

// True also where it cannot be asked, which says nothing about it. The lock is held.
bool Link::Answers() {
  const int ask_ms = TheTimes().ask_ms;
  const int64_t due_ns = NowNs() + int64_t{ask_ms} * 1000000;
  try {
    if (ask_lane_ == nullptr) ask_lane_ = Opened(ask_ms);
    Writer *const out = ask_lane_->Begin();
    out->U32(0);
    out->Text("pid");
    NoPatience none;
    ask_lane_->Ask(Message::kInfo, NextRequest(), {&none, due_ns, false});
    ask_lane_->Accept();
    return true;
  } catch (const Lost &) {
    ask_lane_.reset();
    return false;
  } catch (const Failure &failure) {
    ask_lane_.reset();
    return failure.kind() != "RequestTimeoutError";
  }
}

void Link::GiveUp(int64_t silent_ms) {
  silent_ms_.store(silent_ms);
  is_over_.store(true);
  if (process_ != nullptr) process_->Kill();  // which ends one that is stopped, too
}

Failure Link::Death() {
  const int64_t silent_ms = silent_ms_.load();
  if (silent_ms > 0) {
    return DeathFailure("the worker process " + std::to_string(pid()) + " did not answer for " +
                        std::to_string(silent_ms / 1000) +
                        " s, nor did it compute, and was given up; build the model again");
  }
  const std::string ending = process_ == nullptr ? "" : process_->Ending(kGoneMs);
  return DeathFailure("the worker process " + std::to_string(pid()) + " is gone" +
                      (ending.empty() ? "" : " (" + ending + ")") +
                      ", and with it what was built there; build the model again");
}
}  // namespace mslite
