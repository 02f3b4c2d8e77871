// One connection of a session, for one request at a time.
#ifndef MSLITE_SRC_WIRE_LANE_H_
#define MSLITE_SRC_WIRE_LANE_H_

#include <cstdint>
#include <limits>

#include "src/wire/block.h"
#include "src/wire/descriptor.h"
#include "src/wire/fields.h"
#include "src/wire/frame.h"

namespace mslite {
class Lane {
 public:
  // Takes a connection on which both sides have greeted.
  explicit Lane(Descriptor socket);
  ~Lane();
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  // Where the body of the next request is written to; empty.
  Writer *Begin();
  // Sends it and waits for the answer, whose body is valid until the next Begin(). Throws the
  // Failure that the worker answered with, after which the lane is free again. Anything else that
  // it throws, Lost or a WireError or what `wait` says, leaves it of no more use.
  struct Wait {
    Patience *patience = nullptr;
    int64_t due_ns = 0;  // of NowNs(); 0: never
    bool stays_awake = false;
  };
  Reader Ask(Message message, uint64_t request, const Wait &wait);
  // The answer made sense: the lane is free again.
  void Accept() { is_free_ = true; }

  bool is_free() const { return is_free_; }
  const LaneLife &life() const { return life_; }

 private:
  Descriptor socket_;
  Writer out_{kHeaderBytes};
  Receiver in_;
  LaneLife life_;
  bool is_free_ = true;
  int64_t took_ns_ = std::numeric_limits<int64_t>::max();  // for the last answer to come
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_LANE_H_
