// Frames: a header of 24 bytes and a body go over a connected socket, one message after the other.
#ifndef MSLITE_SRC_WIRE_FRAME_H_
#define MSLITE_SRC_WIRE_FRAME_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/wire/fields.h"

namespace mslite {
enum class Message : uint16_t {
  kError = 0,
  kPredict = 1,
  kReply = 2,
  kBuildFinish = 3,
  kExit = 4,
  kBuild = 5,
  kDescribe = 6,
  kResize = 7,
  kUpdateWeights = 8,
  kInfo = 9,
  kStatistics = 10,
  kCancel = 11,
  kClose = 12,
  kAllocate = 13,
  kFree = 14,
  kDerive = 15,
};

constexpr size_t kHeaderBytes = 24;
constexpr int kStallMs = 30000;  // for which a message may stand still once it has begun

struct Header {
  Message message = Message::kError;
  uint64_t request = 0;
  size_t size = 0;  // of the body
};

// Fills in the bytes that a Writer left free. Throws when the body is too long.
void WriteHeader(Writer *frame, Message message, uint64_t request);
// Throws a WireError when these 24 bytes are no header.
Header ReadHeader(const uint8_t *data);

// The other side ended the connection, or does not go on with it: no answer will come.
struct Lost {
  const char *what;  // such as "closed the connection"
  int error;         // of the system, or 0
};

// How a worker that does not answer is told from one that is busy; tests make it quicker.
struct PulseTimes {
  std::atomic<int> every_ms{10000};   // after which who waits for an answer looks after the worker
  std::atomic<int> ask_ms{10000};     // for it to say that it is there
  std::atomic<int> silent_ms{60000};  // after which one that does not, nor computes, is given up
};
PulseTimes &TheTimes() noexcept;

// What is asked while an answer does not begin.
class Patience {
 public:
  // Called now and then; throws what ends the wait.
  virtual void Check() = 0;

 protected:
  ~Patience() = default;
};

// A socket's recv() returns after every_ms without anything: then there is patience to ask.
void LimitReceiving(int socket) noexcept;

// Sends all bytes; throws Lost.
void SendAll(int socket, const uint8_t *data, size_t size);

// What comes over a socket, frame by frame. Throws Lost, or a WireError when it is no frame.
class Receiver {
 public:
  // Waits for as long as it takes for a frame to begin, and no longer than kStallMs within it. With
  // patience, which is asked every_ms, only until a time of NowNs(); 0: for ever.
  Header Receive(int socket, Patience *patience = nullptr, int64_t due_ns = 0);
  // Stays awake for so long in case that a frame begins; Receive() has it then. A processor that
  // sleeps takes longer to wake than a small answer to come.
  void Look(int socket, int64_t limit_ns);

  Reader body() const { return Reader(data_.data() + kHeaderBytes, size_ - kHeaderBytes); }

 private:
  void Begin(int socket, Patience *patience, int64_t due_ns);
  void More(int socket, size_t wanted);

  std::vector<uint8_t> data_;
  size_t size_ = 0;         // of what came
  bool has_begun_ = false;  // Look() found some
};

int64_t NowNs();

// poll() of one socket until a time of NowNs(), which signals of the program do not put off: 1 when
// it is ready, 0 when the time is over, -1 and errno.
int PolledUntil(int socket, short events, int64_t due_ns) noexcept;
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_FRAME_H_
