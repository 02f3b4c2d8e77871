// The bytes of a tensor, wherever they lie.
//
// Four kinds: on the heap; lent or given by the user (SetData); from an allocator of the user
// (SetAllocator); a piece of a block that is shared with the worker, which a request refers to
// instead of copying. Whoever needs the bytes holds a shared_ptr<Memory>: a tensor, the pointer
// that Data() gave out, a request under way. With the last of them they go: freed, left to the
// user, or back to the session that the block is from.
#ifndef MSLITE_SRC_MEMORY_H_
#define MSLITE_SRC_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mindspore {
class Allocator;
}  // namespace mindspore

namespace mslite {
class Session;
class Block;  // wire/block.h: memory that both processes have mapped

class Memory {
 public:
  static constexpr size_t kUnknownSize = static_cast<size_t>(-1);

  // On the heap, aligned to 64 bytes, zeroed; null when there is not enough.
  static std::shared_ptr<Memory> OnHeap(size_t size);
  // The user's; freed by free() when it is `owned`. Nobody told us how long it is.
  static std::shared_ptr<Memory> OfUser(void *data, bool owned);
  // From the user's allocator. Null when it has not enough.
  static std::shared_ptr<Memory> OfAllocator(std::shared_ptr<mindspore::Allocator> allocator,
                                             size_t size);
  // A piece of a block; null when it is not within it.
  static std::shared_ptr<Memory> InBlock(std::shared_ptr<Block> block, uint64_t offset,
                                         size_t size);
  // For a tensor of `size` bytes: in a block when `session` (or, without one, that of the process)
  // is up and the size is worth it, else on the heap. Null when there is not enough.
  static std::shared_ptr<Memory> For(size_t size, const std::shared_ptr<Session> &session);

  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  void *data() const { return data_; }
  size_t size() const { return size_; }
  bool is_users() const { return kind_ == Kind::kUsers; }
  void SetOwned(bool owned) { is_owned_ = owned; }                // of the user's: freed here?
  const std::shared_ptr<Block> &block() const { return block_; }  // null: not shared
  uint64_t offset() const { return offset_; }                     // within the block

 private:
  enum class Kind { kHeap, kUsers, kAllocator, kBlock };
  Memory(Kind kind, size_t size) : kind_(kind), size_(size) {}
  static std::shared_ptr<Memory> Empty(Kind kind, size_t size);

  Kind kind_;
  size_t size_;
  void *data_ = nullptr;
  bool is_owned_ = false;
  std::shared_ptr<mindspore::Allocator> allocator_;
  std::shared_ptr<Block> block_;
  uint64_t offset_ = 0;
};
}  // namespace mslite
#endif  // MSLITE_SRC_MEMORY_H_
