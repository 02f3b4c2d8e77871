#include <utility>

#include "src/wire/bodies.h"
#include "src/wire/errors.h"
#include "src/wire/pool.h"

namespace mslite {
Reader BlockSource::Ask(Message message, const std::function<void(Writer *)> &write,
                        int64_t due_ns) {
  if (lane_ == nullptr || !lane_->is_free()) lane_ = link_->OpenLane(due_ns);
  write(lane_->Begin());
  try {
    return lane_->Ask(message, link_->NextRequest(), {link_.get(), due_ns, false});
  } catch (const Lost &lost) {
    lane_.reset();
    throw link_->Explained(lost);
  }
}

std::unique_ptr<Block> BlockSource::Make(uint64_t size, int64_t due_ns) {
  Reader body = Ask(Message::kAllocate, [size](Writer *out) { out->U64(size); }, due_ns);
  const std::vector<Made> made = ReadMade(&body);
  if (made.size() != 1 || made[0].size < size) {
    throw WireFailure("the worker made something else than the block of " + std::to_string(size) +
                      " bytes that was asked for");
  }
  lane_->Accept();
  try {
    return link_->OpenBlock(made[0], lane_->life());
  } catch (const Failure &) {
    Free({made[0].block});  // nobody else would
    throw;
  }
}

void BlockSource::Free(const std::vector<uint32_t> &numbers) {
  Ask(Message::kFree, [&numbers](Writer *out) { WriteFree(out, numbers); }, 0);
  lane_->Accept();
}
}  // namespace mslite
