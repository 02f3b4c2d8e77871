// Sockets of this process, which a child of it must not keep.
//
// A worker sees by the end of its first connection that the process it serves has gone. fork()
// would leave that connection open in the child: so all sockets are registered here, and closed in
// every child as its first deed. The lock of the register is held around every fork, and never
// while anything is waited for; no other lock of the library may be touched in a child, as a thread
// that is not there may hold it. Whatever was made before a fork is told from what is made
// afterwards by its Generation().
#ifndef MSLITE_SRC_WIRE_DESCRIPTOR_H_
#define MSLITE_SRC_WIRE_DESCRIPTOR_H_

#include <cstdint>
#include <utility>

namespace mslite {
// How often this process, and those that it was forked from, have been.
uint64_t Generation() noexcept;

// A socket, closed on exec, on fork and when this goes. Its number is none that stdio has, open or
// not, nor one that a child's socket is given.
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { Close(); }
  Descriptor(Descriptor &&other) noexcept { *this = std::move(other); }
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number_, other.number_);
    std::swap(generation_, other.generation_);
    return *this;
  }

  // A new Unix stream socket; throws a ResourceError.
  static Descriptor Socket();
  // Two that are connected.
  static std::pair<Descriptor, Descriptor> Pair();

  int number() const { return number_; }  // -1: none
  void Close() noexcept;

 private:
  static Descriptor Registered(int number);

  int number_ = -1;
  uint64_t generation_ = 0;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_DESCRIPTOR_H_
