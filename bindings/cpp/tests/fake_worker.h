// A worker that says what a test has it say.
#ifndef MSLITE_TESTS_FAKE_WORKER_H_
#define MSLITE_TESTS_FAKE_WORKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/wire/block.h"
#include "src/wire/descriptor.h"
#include "src/wire/fields.h"
#include "src/wire/frame.h"
#include "src/wire/session.h"

namespace mslite_test {
using Bytes = std::vector<uint8_t>;

// Memory as a worker makes it, sealed; this process is both sides.
class SharedFile {
 public:
  explicit SharedFile(uint64_t size, bool is_sealed = true);
  ~SharedFile();
  SharedFile(const SharedFile &) = delete;
  SharedFile &operator=(const SharedFile &) = delete;

  mslite::Made made(uint32_t number) const;

 private:
  int file_;
  uint64_t size_;
};

// What the worker does with a request: the bytes to send; none at all close the connection.
using Answer = std::function<Bytes(const mslite::Header &, mslite::Reader)>;

class FakeWorker {
 public:
  explicit FakeWorker(Answer answer);
  ~FakeWorker();

  // A session at it; made once.
  std::shared_ptr<mslite::Session> session() const { return session_; }
  // Ends the first connection, as the end of the process does.
  void Die();
  int lanes() const { return lanes_.load(); }

 private:
  void Accept();
  void Serve(int lane);

  Answer answer_;
  int listener_;
  mslite::Descriptor keeper_;
  std::shared_ptr<mslite::Session> session_;
  std::atomic<int> lanes_{0};
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

// A whole frame.
Bytes Frame(mslite::Message message, uint64_t request,
            const std::function<void(mslite::Writer *)> &write = nullptr);
}  // namespace mslite_test
#endif  // MSLITE_TESTS_FAKE_WORKER_H_
