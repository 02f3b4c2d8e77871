#include "src/wire/lanes.h"

#include <utility>

namespace mslite {
std::unique_ptr<Lane> Lanes::Take(int64_t due_ns) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (!idle_.empty()) {
      std::unique_ptr<Lane> lane = std::move(idle_.back());
      idle_.pop_back();
      ++in_use_;
      return lane;
    }
  }
  std::unique_ptr<Lane> lane = link_->OpenLane(due_ns);
  ++in_use_;
  return lane;
}

void Lanes::GiveBack(std::unique_ptr<Lane> lane) noexcept {
  --in_use_;
  if (!lane->is_free()) return;
  try {
    const std::lock_guard<std::mutex> guard(lock_);
    idle_.push_back(std::move(lane));
  } catch (const std::bad_alloc &) {
    // the next request opens another one
  }
}

Call::~Call() {
  if (!lane_->is_free()) {
    for (const auto &block : lent_) block->Condemn();
  }
  lanes_->GiveBack(std::move(lane_));
}

Reader Call::Ask(Message message) {
  try {
    // only one at a time: threads that stay awake are in the way of those that work
    const bool stays_awake = message == Message::kPredict && lanes_->IsAlone();
    Link &link = lanes_->link();
    return lane_->Ask(message, link.NextRequest(), {&link, due_ns_, stays_awake});
  } catch (const Lost &lost) {
    throw lanes_->link().Explained(lost);
  }
}
}  // namespace mslite
