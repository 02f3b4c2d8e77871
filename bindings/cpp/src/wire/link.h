// The connection with a worker: who it is, whether it lives, and how further lanes are opened.
#ifndef MSLITE_SRC_WIRE_LINK_H_
#define MSLITE_SRC_WIRE_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "src/failure.h"
#include "src/wire/block.h"
#include "src/wire/descriptor.h"
#include "src/wire/frame.h"
#include "src/wire/greeting.h"
#include "src/wire/lane.h"
#include "src/wire/pulse.h"
#include "src/wire/worker_process.h"

namespace mslite {
// Any number of threads may be in here at once.
class Link : public Patience {
 public:
  // Starts a worker; throws a Failure.
  static std::shared_ptr<Link> Start();
  // The session at a worker that listens on a path; throws a Failure.
  static std::shared_ptr<Link> Attach(const std::string &path);

  // `keeper` carries nothing: the worker sees by its end that this process has gone. `process` is
  // null where the worker is no child of ours.
  Link(Descriptor keeper, const Welcome &welcome, std::shared_ptr<WorkerProcess> process);

  // Tells this session from all others of the process.
  uint64_t serial() const { return serial_; }
  uint32_t pid() const { return welcome_.pid; }
  uint64_t NextRequest() { return next_request_.fetch_add(1); }
  // Whether this process opened it, not one that it was forked from.
  bool is_ours() const { return generation_ == Generation(); }
  // False as soon as the worker has ended, whichever thread noticed.
  bool IsAlive() noexcept { return !IsOver(0); }

  // Both throw a Failure, of kind WorkerDiedError where the worker is gone. A lane is opened until
  // a time of NowNs(), 0: as long as a greeting takes.
  std::unique_ptr<Lane> OpenLane(int64_t due_ns = 0);
  std::unique_ptr<Block> OpenBlock(const Made &made, const LaneLife &life);
  // The error for a user who got no answer.
  Failure Explained(const Lost &lost);
  // Asks the worker over a lane of its own whether it is there, unless another thread does. One
  // that has not answered for long, and did not compute either, is given up: throws its Death.
  void Check() override;

 private:
  bool IsOver(int limit_ms) noexcept;
  Failure Death();
  std::unique_ptr<Lane> Opened(int limit_ms);
  bool Answers();
  void GiveUp(int64_t silent_ms);

  const uint64_t generation_ = Generation();
  const uint64_t serial_;
  Descriptor keeper_;
  const Welcome welcome_;
  const std::shared_ptr<WorkerProcess> process_;
  std::atomic<uint64_t> next_request_{1};
  std::atomic<bool> is_over_{false};
  Pulse pulse_;
  std::mutex asking_;                  // held while the worker is asked
  std::unique_ptr<Lane> ask_lane_;     // under that lock
  std::atomic<int64_t> silent_ms_{0};  // for which it was silent when it was given up
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_LINK_H_
