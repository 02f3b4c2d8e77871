// Memory that this process and its worker share.
//
// The worker makes a block and sends its number; this side maps it. A block is good for requests
// until it is freed there, or until the lane closes over which it was made: then the mapping stays
// valid, but the worker does not know the block any more, and what is in it must be copied.
#ifndef MSLITE_SRC_WIRE_BLOCK_H_
#define MSLITE_SRC_WIRE_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace mslite {
constexpr uint64_t kAlignment = 64;  // of whatever is placed in a block
constexpr uint64_t kMaxBlock = uint64_t{1} << 36;

// The size, rounded up so that something else can follow.
constexpr uint64_t Aligned(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

// How a worker describes a block: its number, the descriptor that it has there, its size.
struct Made {
  uint32_t block = 0;
  uint32_t descriptor = 0;
  uint64_t size = 0;
};

// Whether the lane is open over which blocks were made; the lane and they share it.
using LaneLife = std::shared_ptr<std::atomic<bool>>;

class Block {
 public:
  // Maps what a worker made; throws a Failure.
  Block(uint32_t worker_pid, const Made &made, uint64_t session, LaneLife life);
  ~Block();
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  uint32_t number() const { return number_; }
  uint8_t *data() const { return data_; }
  size_t size() const { return size_; }
  // Whether the worker of this session still knows the block.
  bool IsKnown(uint64_t session) const { return session_ == session && life_->load(); }
  // A request that may still use it has failed: nobody else should have it.
  void Condemn() { is_condemned_.store(true); }
  bool is_condemned() const { return is_condemned_.load(); }

 private:
  uint32_t number_;
  uint8_t *data_ = nullptr;
  size_t size_;
  uint64_t session_;  // the serial number of the Session
  LaneLife life_;
  std::atomic<bool> is_condemned_{false};
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_BLOCK_H_
