// The lanes of a session: as many as there are requests at once, kept for the next ones.
#ifndef MSLITE_SRC_WIRE_LANES_H_
#define MSLITE_SRC_WIRE_LANES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "src/wire/block.h"
#include "src/wire/lane.h"
#include "src/wire/link.h"

namespace mslite {
class Lanes {
 public:
  explicit Lanes(std::shared_ptr<Link> link) : link_(std::move(link)) {}

  // A lane that nobody else uses, until a time of NowNs(), 0: never; throws a Failure.
  std::unique_ptr<Lane> Take(int64_t due_ns);
  // Closes it instead where its request was not answered.
  void GiveBack(std::unique_ptr<Lane> lane) noexcept;
  // Whether at most one is in use; others may take some while this is asked.
  bool IsAlone() const { return in_use_.load() <= 1; }
  Link &link() { return *link_; }

 private:
  std::shared_ptr<Link> link_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Lane>> idle_;
  std::atomic<int> in_use_{0};
};

// A request: its lane, and the blocks that the worker uses for it.
class Call {
 public:
  // The answer must be there at a time of NowNs(); 0: whenever it comes.
  explicit Call(Lanes *lanes, int64_t due_ns = 0)
      : lanes_(lanes), due_ns_(due_ns), lane_(lanes->Take(due_ns)) {}
  // Blocks of a request that was not answered are condemned: the worker may still be at them.
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  Writer *Begin() { return lane_->Begin(); }
  void Lend(std::shared_ptr<Block> block) { lent_.push_back(std::move(block)); }
  // The answer; throws a Failure.
  Reader Ask(Message message);
  // The answer made sense.
  void Accept() { lane_->Accept(); }
  const LaneLife &life() const { return lane_->life(); }
  int64_t due_ns() const { return due_ns_; }

 private:
  Lanes *lanes_;
  const int64_t due_ns_;
  std::unique_ptr<Lane> lane_;
  std::vector<std::shared_ptr<Block>> lent_;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_LANES_H_
