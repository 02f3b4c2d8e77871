#include "src/wire/frame.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "src/failure.h"
#include "src/wire/errors.h"

namespace mslite {
namespace {
constexpr uint32_t kMagic = 0x464c534d;  // "MSLF"
constexpr size_t kChunk = size_t{1} << 15;
constexpr uint16_t kLastMessage = 14;

// False when nothing happened for so long.
bool IsReady(int socket, short events) {
  const int found = PolledUntil(socket, events, NowNs() + int64_t{kStallMs} * 1000000);
  if (found < 0) throw Lost{"cannot be waited for", errno};
  return found > 0;
}

// The bytes that came; -1: none yet, where `flags` say not to wait.
ssize_t Received(int socket, uint8_t *to, size_t most, int flags) {
  for (;;) {
    const ssize_t got = recv(socket, to, most, flags);
    if (got > 0) return got;
    if (got == 0) throw Lost{"closed the connection", 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return -1;
    if (errno != EINTR) throw Lost{"broke the connection", errno};
  }
}
}  // namespace

void WriteHeader(Writer *frame, Message message, uint64_t request) {
  const size_t size = frame->body_size();
  if (size > kMaxBody) {
    throw Failure(mindspore::kLiteParamInvalid, "InputError",
                  "a request of " + std::to_string(size) + " bytes cannot be sent, at most " +
                      std::to_string(kMaxBody) + " can");
  }
  uint8_t *to = frame->data();
  const auto put = [&to](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) *to++ = static_cast<uint8_t>(value >> (8 * i));
  };
  put(kMagic, 4);
  put(static_cast<uint16_t>(message), 2);
  put(0, 2);
  put(request, 8);
  put(size, 8);
}

Header ReadHeader(const uint8_t *data) {
  Reader fields(data, kHeaderBytes);
  const uint32_t magic = fields.U32("a frame");
  const uint16_t message = fields.U16("a frame");
  const uint16_t reserved = fields.U16("a frame");
  const uint64_t request = fields.U64("a frame");
  const uint64_t size = fields.U64("a frame");
  if (magic != kMagic) {
    throw WireFailure("what the worker sent begins with " + std::to_string(magic) +
                      ", wanted the magic number of a frame");
  }
  if (message > kLastMessage) {
    throw WireFailure("the worker sent message " + std::to_string(message) +
                      ", which there is none of");
  }
  if (reserved != 0) {
    throw WireFailure("bytes 6 and 7 of the worker's frame are " + std::to_string(reserved) +
                      ", wanted 0");
  }
  if (size > kMaxBody) {
    throw WireFailure("the worker announced a body of " + std::to_string(size) +
                      " bytes, at most " + std::to_string(kMaxBody) + " are allowed");
  }
  Header header;
  header.message = static_cast<Message>(message);
  header.request = request;
  header.size = static_cast<size_t>(size);
  return header;
}

PulseTimes &TheTimes() noexcept {
  static PulseTimes times;
  return times;
}

void LimitReceiving(int socket) noexcept {
  const int every_ms = TheTimes().every_ms;
  const timeval limit = {every_ms / 1000, every_ms % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void SendAll(int socket, const uint8_t *data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      data += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!IsReady(socket, POLLOUT)) throw Lost{"does not read what is sent to it", 0};
    } else if (errno != EINTR) {
      throw Lost{"broke the connection", errno};
    }
  }
}

void Receiver::More(int socket, size_t wanted) {
  while (size_ < wanted) {
    if (!IsReady(socket, POLLIN)) throw Lost{"stopped within an answer", 0};
    // by what came, not by what was announced: words alone must not cost memory
    const size_t most = std::max(kChunk, std::min(size_, wanted - size_));
    if (data_.size() < size_ + most) data_.resize(size_ + most);
    const ssize_t got = Received(socket, data_.data() + size_, most, MSG_DONTWAIT);
    if (got > 0) size_ += static_cast<size_t>(got);
  }
}

void Receiver::Begin(int socket, Patience *patience, int64_t due_ns) {
  size_ = 0;
  if (data_.size() < kChunk) data_.resize(kChunk);
  for (;;) {
    int found = 1;
    if (due_ns != 0) {  // without a deadline recv() is enough, whose own limit is every_ms
      const int64_t next_ns = NowNs() + int64_t{TheTimes().every_ms} * 1000000;
      found = PolledUntil(socket, POLLIN, std::min(due_ns, next_ns));
    }
    if (found < 0) throw Lost{"cannot be waited for", errno};
    const ssize_t got = found == 0 ? -1 : Received(socket, data_.data(), data_.size(), 0);
    if (got > 0) {
      size_ = static_cast<size_t>(got);
      return;
    }
    if (patience == nullptr) throw Lost{"stopped within an answer", 0};
    if (due_ns != 0 && NowNs() >= due_ns) throw LateFailure();
    patience->Check();
  }
}

Header Receiver::Receive(int socket, Patience *patience, int64_t due_ns) {
  if (!has_begun_) Begin(socket, patience, due_ns);
  has_begun_ = false;
  More(socket, kHeaderBytes);
  const Header header = ReadHeader(data_.data());
  More(socket, kHeaderBytes + header.size);
  if (size_ > kHeaderBytes + header.size) {
    throw WireFailure("the worker sent " + std::to_string(size_ - kHeaderBytes - header.size) +
                      " bytes more than its answer has");
  }
  return header;
}

void Receiver::Look(int socket, int64_t limit_ns) {
  const int64_t end_ns = NowNs() + limit_ns;
  if (data_.size() < kChunk) data_.resize(kChunk);
  do {
    const ssize_t got = Received(socket, data_.data(), data_.size(), MSG_DONTWAIT);
    if (got > 0) {
      size_ = static_cast<size_t>(got);
      has_begun_ = true;
      return;
    }
    sched_yield();  // the other side may need this very processor
  } while (NowNs() < end_ns);
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int PolledUntil(int socket, short events, int64_t due_ns) noexcept {
  constexpr int64_t kMostMs = 1000 * 1000;
  for (;;) {
    // rounded up, so that it does not look again and again within the last millisecond
    const int64_t left_ms = (due_ns - NowNs() + 999999) / 1000000;
    pollfd one = {socket, events, 0};
    const int found =
        poll(&one, 1, static_cast<int>(std::max<int64_t>(0, std::min(left_ms, kMostMs))));
    if (found > 0 || (found < 0 && errno != EINTR)) return found;
    if (NowNs() >= due_ns) return 0;
  }
}
}  // namespace mslite
