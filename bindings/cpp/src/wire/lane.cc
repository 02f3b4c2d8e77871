#include "src/wire/lane.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "src/wire/errors.h"

namespace mslite {
namespace {
constexpr int64_t kQuickNs = 200000;  // an answer that takes no longer is awaited awake
}  // namespace

Lane::Lane(Descriptor socket)
    : socket_(std::move(socket)), life_(std::make_shared<std::atomic<bool>>(true)) {
  LimitReceiving(socket_.number());
}

Lane::~Lane() { life_->store(false); }

Writer *Lane::Begin() {
  out_.Clear();
  return &out_;
}

Reader Lane::Ask(Message message, uint64_t request, const Wait &wait) {
  WriteHeader(&out_, message, request);
  is_free_ = false;
  SendAll(socket_.number(), out_.data(), out_.size());
  const int64_t start_ns = NowNs();
  if (wait.stays_awake && took_ns_ < kQuickNs) in_.Look(socket_.number(), 2 * took_ns_);
  const Header header = in_.Receive(socket_.number(), wait.patience, wait.due_ns);
  took_ns_ = NowNs() - start_ns;
  Reader body = in_.body();
  if (header.request != request) {
    // request 0: its last words on this connection
    if (header.request == 0 && header.message == Message::kError) throw ReadError(&body);
    throw WireFailure("the worker answered request " + std::to_string(header.request) +
                      ", wanted the answer to " + std::to_string(request));
  }
  if (header.message == Message::kError) {
    const Failure told = ReadError(&body);
    is_free_ = true;
    throw told;
  }
  const Message wanted = message == Message::kBuild ? Message::kBuildFinish : Message::kReply;
  if (header.message != wanted) {
    throw WireFailure("the worker answered request " + std::to_string(request) + " with message " +
                      std::to_string(static_cast<int>(header.message)) + ", wanted " +
                      std::to_string(static_cast<int>(wanted)));
  }
  return body;
}
}  // namespace mslite
