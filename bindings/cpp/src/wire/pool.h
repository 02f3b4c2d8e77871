// Blocks that are not in use now are kept for later: making one takes time for every page.
#ifndef MSLITE_SRC_WIRE_POOL_H_
#define MSLITE_SRC_WIRE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/wire/block.h"
#include "src/wire/link.h"

namespace mslite {
// Makes and frees blocks at the worker, over a lane of its own: a block lasts no longer than the
// lane over which it was made. One thread at a time.
class BlockSource {
 public:
  explicit BlockSource(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  virtual ~BlockSource() = default;

  // Until a time of NowNs(); 0: as long as it takes.
  virtual std::unique_ptr<Block> Make(uint64_t size, int64_t due_ns);
  virtual void Free(const std::vector<uint32_t> &numbers);

 private:
  Reader Ask(Message message, const std::function<void(Writer *)> &write, int64_t due_ns);

  std::shared_ptr<Link> link_;
  std::unique_ptr<Lane> lane_;
};

// Hands out blocks, which come back when the last one who has them lets go: from whatever thread,
// also after the session has gone. Least recently used ones are freed when many are idle.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  static constexpr size_t kMaxBlocks = 4096;              // of a session, at the worker
  static constexpr size_t kIdleBlocks = 8;                // that are kept, whatever their size
  static constexpr uint64_t kIdleBytes = 64 * (1 << 20);  // that are kept, however many blocks

  Pool(std::unique_ptr<BlockSource> source, uint64_t session);
  ~Pool();

  // A block of at least this size, with anything in it; null when there is no room for one. The
  // worker is waited for until a time of NowNs(); 0: as long as it takes.
  std::shared_ptr<Block> Take(uint64_t size, int64_t due_ns = 0);
  // The same, but new, and freed when it comes back: for what is large and seldom.
  std::shared_ptr<Block> TakeOnce(uint64_t size);
  // One that the worker made for an answer, which is ours from now on.
  std::shared_ptr<Block> Adopt(std::unique_ptr<Block> block);
  // One that the worker made and nobody here could open.
  void Disown(uint32_t number);
  // A model was built, whose requests will need blocks.
  void AddModel();
  // It is gone; with the last one goes what was kept for later.
  void RemoveModel() noexcept;
  // Frees all that nobody uses.
  void DropIdle() noexcept;

  size_t idle() const;
  // The size to ask for: one that is not outgrown at once, an eighth more at most if it is large.
  static uint64_t Rounded(uint64_t size);

 private:
  using Blocks = std::vector<std::unique_ptr<Block>>;

  std::unique_ptr<Block> TakeIdle(uint64_t size);
  std::unique_ptr<Block> Make(uint64_t size, int64_t due_ns);
  std::unique_ptr<Block> MakeAtWorker(uint64_t size, int64_t due_ns);
  bool Reserve();
  void Unreserve();
  std::shared_ptr<Block> Shared(std::unique_ptr<Block> block);
  void Return(std::unique_ptr<Block> block) noexcept;
  void Retire(std::unique_ptr<Block> block, Blocks *gone);  // the lock is held
  void FreePending() noexcept;
  bool HasPending() const;

  const uint64_t session_;
  const uint64_t generation_ = Generation();
  mutable std::mutex lock_;
  Blocks idle_;  // the most recently used one last
  uint64_t idle_bytes_ = 0;
  size_t count_ = 0;               // of blocks that the worker has for us
  size_t models_ = 0;              // without any, nothing is kept for later
  std::vector<uint32_t> pending_;  // numbers to be freed there
  std::mutex source_lock_;
  std::unique_ptr<BlockSource> source_;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_POOL_H_
