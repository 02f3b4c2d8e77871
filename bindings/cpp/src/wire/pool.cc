#include "src/wire/pool.h"

#include <algorithm>
#include <utility>

#include "src/wire/bodies.h"
#include "src/wire/errors.h"

namespace mslite {
constexpr size_t Pool::kMaxBlocks;
constexpr size_t Pool::kIdleBlocks;
constexpr uint64_t Pool::kIdleBytes;

namespace {
constexpr uint64_t kSmallest = 1 << 16;
}  // namespace

Pool::Pool(std::unique_ptr<BlockSource> source, uint64_t session)
    : session_(session), source_(std::move(source)) {}

Pool::~Pool() = default;

uint64_t Pool::Rounded(uint64_t size) {
  uint64_t step = kSmallest;
  while (step * 16 <= size) step *= 2;
  return std::min((size + step - 1) / step * step, kMaxBlock);
}

std::shared_ptr<Block> Pool::Take(uint64_t size, int64_t due_ns) {
  if (size > kMaxBlock) return nullptr;
  auto block = TakeIdle(size);
  if (block == nullptr) block = Make(Rounded(size), due_ns);
  return Shared(std::move(block));
}

std::shared_ptr<Block> Pool::TakeOnce(uint64_t size) {
  if (size > kMaxBlock) return nullptr;
  auto block = Make(Aligned(size), 0);
  if (block != nullptr) block->Condemn();
  return Shared(std::move(block));
}

std::shared_ptr<Block> Pool::Adopt(std::unique_ptr<Block> block) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    ++count_;
  }
  return Shared(std::move(block));
}

void Pool::Disown(uint32_t number) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    pending_.push_back(number);
  }
  FreePending();
}

// The smallest that fits and is not more than twice as large as a new one would be.
std::unique_ptr<Block> Pool::TakeIdle(uint64_t size) {
  const uint64_t most = 2 * Rounded(size);
  const std::lock_guard<std::mutex> guard(lock_);
  size_t best = idle_.size();
  for (size_t i = 0; i < idle_.size(); ++i) {
    const uint64_t has = idle_[i]->size();
    if (has < size || has > most || !idle_[i]->IsKnown(session_)) continue;
    if (best == idle_.size() || has < idle_[best]->size()) best = i;
  }
  if (best == idle_.size()) return nullptr;
  std::unique_ptr<Block> found = std::move(idle_[best]);
  idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(best));
  idle_bytes_ -= found->size();
  return found;
}

std::unique_ptr<Block> Pool::Make(uint64_t size, int64_t due_ns) {
  if (!Reserve()) {
    DropIdle();
    if (!Reserve()) return nullptr;
  }
  try {
    std::unique_ptr<Block> made = MakeAtWorker(size, due_ns);
    if (made == nullptr && idle() > 0) {
      DropIdle();  // what is kept for later is in the way now
      made = MakeAtWorker(size, due_ns);
    }
    if (made == nullptr) Unreserve();
    return made;
  } catch (...) {
    Unreserve();
    throw;
  }
}

std::unique_ptr<Block> Pool::MakeAtWorker(uint64_t size, int64_t due_ns) {
  std::unique_ptr<Block> made;
  try {
    const std::lock_guard<std::mutex> guard(source_lock_);
    made = source_->Make(size, due_ns);
  } catch (const Failure &failure) {
    if (failure.kind() != "ResourceError") throw;
  }
  FreePending();  // others may have had to leave some while the source was in use
  return made;
}

bool Pool::Reserve() {
  const std::lock_guard<std::mutex> guard(lock_);
  if (count_ >= kMaxBlocks) return false;
  ++count_;
  return true;
}

void Pool::Unreserve() {
  const std::lock_guard<std::mutex> guard(lock_);
  --count_;
}

std::shared_ptr<Block> Pool::Shared(std::unique_ptr<Block> block) {
  if (block == nullptr) return nullptr;
  const std::weak_ptr<Pool> pool = shared_from_this();
  const uint64_t generation = generation_;
  return std::shared_ptr<Block>(block.release(), [pool, generation](Block *back) {
    std::unique_ptr<Block> owned(back);
    // in a child of the process the pool may be locked, by a thread that is not there
    if (generation != Generation()) return;
    if (const auto still_there = pool.lock()) still_there->Return(std::move(owned));
  });
}

void Pool::Return(std::unique_ptr<Block> block) noexcept {
  Blocks gone;  // unmapped when the lock is not held any more
  try {
    const std::lock_guard<std::mutex> guard(lock_);
    if (models_ == 0 || block->is_condemned() || !block->IsKnown(session_)) {
      Retire(std::move(block), &gone);
    } else {
      idle_bytes_ += block->size();
      idle_.push_back(std::move(block));
    }
    while (idle_.size() > kIdleBlocks && idle_bytes_ > kIdleBytes) {
      std::unique_ptr<Block> oldest = std::move(idle_.front());
      idle_.erase(idle_.begin());
      idle_bytes_ -= oldest->size();
      Retire(std::move(oldest), &gone);
    }
  } catch (const std::bad_alloc &) {
    // the worker has it until the session ends
  }
  FreePending();
}

void Pool::Retire(std::unique_ptr<Block> block, Blocks *gone) {
  --count_;
  if (block->IsKnown(session_)) pending_.push_back(block->number());
  gone->push_back(std::move(block));
}

void Pool::AddModel() {
  const std::lock_guard<std::mutex> guard(lock_);
  ++models_;
}

void Pool::RemoveModel() noexcept {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (--models_ > 0) return;
  }
  DropIdle();
}

void Pool::DropIdle() noexcept {
  Blocks gone;
  try {
    const std::lock_guard<std::mutex> guard(lock_);
    for (auto &block : idle_) Retire(std::move(block), &gone);
    idle_.clear();
    idle_bytes_ = 0;
  } catch (const std::bad_alloc &) {
    // as in Return
  }
  FreePending();
}

// Whoever has the lane to the worker frees for all others, so that nobody has to wait for it.
void Pool::FreePending() noexcept {
  while (HasPending()) {
    const std::unique_lock<std::mutex> source(source_lock_, std::try_to_lock);
    if (!source.owns_lock()) return;
    std::vector<uint32_t> numbers;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      numbers.swap(pending_);
    }
    try {
      if (!numbers.empty()) source_->Free(numbers);
    } catch (...) {
      // the worker is gone, and the blocks with it
    }
  }
}

bool Pool::HasPending() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return !pending_.empty();
}

size_t Pool::idle() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return idle_.size();
}
}  // namespace mslite
