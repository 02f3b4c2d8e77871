// What a Session holds.
#ifndef MSLITE_SRC_WIRE_SESSION_STATE_H_
#define MSLITE_SRC_WIRE_SESSION_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/wire/lanes.h"
#include "src/wire/link.h"
#include "src/wire/pool.h"
#include "src/wire/session.h"
#include "src/wire/tensors.h"

namespace mslite {
struct Session::State {
  explicit State(const std::shared_ptr<Link> &connected)
      : link(connected),
        lanes(connected),
        pool(std::make_shared<Pool>(std::unique_ptr<BlockSource>(new BlockSource(connected)),
                                    connected->serial())) {}

  // Tensors as they are sent. What lies in a block that the worker knows is referred to; what is
  // small goes into the frame; the rest is copied into a block, which is lent to the call.
  std::vector<WireTensor> Placed(const std::vector<Filled> &tensors, Call *call, bool once);

  // How much room the outputs of a model that are not sent in the frame will need; 0: none.
  uint64_t RoomFor(uint32_t model);
  void SetRoom(uint32_t model, uint64_t bytes);
  // A model that was built is there until it is forgotten; idle blocks go with the last one.
  void Remember(uint32_t model);
  void Forget(uint32_t model);

  const std::shared_ptr<Link> link;
  Lanes lanes;
  const std::shared_ptr<Pool> pool;

 private:
  std::mutex lock_;
  std::map<uint32_t, uint64_t> rooms_;  // of the models that are there
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_SESSION_STATE_H_
