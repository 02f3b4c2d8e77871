#include "tests/fake_worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "src/wire/link.h"
#include "src/wire/session_state.h"
#include "tests/check.h"
#include "tests/vectors.h"

namespace mslite_test {
using mslite::Header;
using mslite::Message;
using mslite::Writer;

SharedFile::SharedFile(uint64_t size, bool is_sealed)
    : file_(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)), size_(size) {
  CHECK(file_ >= 0);
  CHECK_EQ(ftruncate(file_, static_cast<off_t>(size)), 0);
  if (is_sealed) {
    CHECK_EQ(fcntl(file_, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }
}

SharedFile::~SharedFile() { close(file_); }

mslite::Made SharedFile::made(uint32_t number) const {
  mslite::Made made;
  made.block = number;
  made.descriptor = static_cast<uint32_t>(file_);
  made.size = size_;
  return made;
}

Bytes Frame(Message message, uint64_t request, const std::function<void(Writer *)> &write) {
  Writer out(mslite::kHeaderBytes);
  if (write) write(&out);
  mslite::WriteHeader(&out, message, request);
  return Written(&out);
}

FakeWorker::FakeWorker(Answer answer)
    : answer_(std::move(answer)), listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  socklen_t size = sizeof(name.sun_family);  // the kernel chooses an abstract name
  CHECK_EQ(bind(listener_, reinterpret_cast<sockaddr *>(&name), size), 0);
  CHECK_EQ(listen(listener_, 64), 0);
  size = sizeof(name);
  CHECK_EQ(getsockname(listener_, reinterpret_cast<sockaddr *>(&name), &size), 0);
  mslite::Welcome welcome;
  welcome.pid = static_cast<uint32_t>(getpid());
  welcome.address =
      "@" + std::string(name.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  auto ends = mslite::Descriptor::Pair();
  keeper_ = std::move(ends.second);
  const auto link = std::make_shared<mslite::Link>(std::move(ends.first), welcome, nullptr);
  session_ = std::make_shared<mslite::Session>(
      std::unique_ptr<mslite::Session::State>(new mslite::Session::State(link)));
  accepting_ = std::thread([this] { Accept(); });
}

FakeWorker::~FakeWorker() {
  session_.reset();  // its lanes close, and the threads end
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  for (auto &thread : threads_) thread.join();
  close(listener_);
}

void FakeWorker::Die() { keeper_.Close(); }

void FakeWorker::Accept() {
  for (;;) {
    const int lane = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (lane < 0) return;
    ++lanes_;
    threads_.emplace_back([this, lane] {
      try {
        Serve(lane);
      } catch (const mslite::Lost &) {
        // the client left
      }
      close(lane);
    });
  }
}

void FakeWorker::Serve(int lane) {
  uint8_t hello[32];
  if (recv(lane, hello, sizeof(hello), MSG_WAITALL) != sizeof(hello)) return;
  Writer welcome;
  welcome.Bytes("MSLITE\r\n", 8);
  welcome.U16(2);
  welcome.U16(0);
  welcome.U32(0);
  welcome.Bytes(hello + 16, 16);
  welcome.U32(static_cast<uint32_t>(getpid()));
  welcome.U32(0);
  mslite::SendAll(lane, welcome.data(), welcome.size());
  mslite::Receiver in;
  for (;;) {
    const Header header = in.Receive(lane);
    const Bytes bytes = answer_(header, in.body());
    if (bytes.empty()) return;
    mslite::SendAll(lane, bytes.data(), bytes.size());
  }
}
}  // namespace mslite_test
