#include "src/wire/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

#include "src/wire/errors.h"

namespace mslite {
namespace {
// The lowest number that a socket has. 0 to 2 are free where the program closed its stdio, and what
// it, or we, print there would be sent to the worker; 3 is the worker's own in its process.
constexpr int kFirst = 4;

struct Register {
  std::mutex lock;
  std::vector<int> numbers;
};

std::atomic<uint64_t> generation{1};

Register &TheRegister() {
  // never destroyed: threads may be at work while the process exits
  static Register *const made = new Register;
  return *made;
}

void BeforeFork() { TheRegister().lock.lock(); }
void AfterForkInParent() { TheRegister().lock.unlock(); }
void AfterForkInChild() {
  for (int number : TheRegister().numbers) close(number);
  TheRegister().numbers.clear();
  generation.fetch_add(1);
  TheRegister().lock.unlock();
}

// Registers the handlers once; called before the first socket is made.
void PrepareForForks() {
  static const bool done = [] {
    TheRegister();
    if (pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild) != 0) {
      throw ResourceFailure("what to do on fork() cannot be registered: out of memory");
    }
    return true;
  }();
  static_cast<void>(done);
}

Failure NoSocket(int error) {
  return ResourceFailure("no socket can be had: " + SystemWords(error) +
                         "; close files, or allow more (ulimit -n)");
}

// The same socket under a number that is high enough; -1 and errno when there is none. Closes the
// one that it was given.
int Raised(int low) {
  const int high = low < 0 || low >= kFirst ? low : fcntl(low, F_DUPFD_CLOEXEC, kFirst);
  if (high != low) {
    const int error = errno;
    close(low);
    errno = error;
  }
  return high;
}
}  // namespace

uint64_t Generation() noexcept { return generation.load(std::memory_order_relaxed); }

// The lock is held.
Descriptor Descriptor::Registered(int number) {
  Descriptor made;
  made.number_ = number;
  made.generation_ = Generation();
  TheRegister().numbers.push_back(number);
  return made;
}

Descriptor Descriptor::Socket() {
  PrepareForForks();
  const std::lock_guard<std::mutex> guard(TheRegister().lock);
  TheRegister().numbers.reserve(TheRegister().numbers.size() + 1);
  const int number = Raised(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (number < 0) throw NoSocket(errno);
  return Registered(number);
}

std::pair<Descriptor, Descriptor> Descriptor::Pair() {
  PrepareForForks();
  const std::lock_guard<std::mutex> guard(TheRegister().lock);
  TheRegister().numbers.reserve(TheRegister().numbers.size() + 2);
  int low[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) != 0) throw NoSocket(errno);
  const int one = Raised(low[0]);
  const int one_error = errno;
  const int other = Raised(low[1]);
  if (one < 0 || other < 0) {
    const int error = one < 0 ? one_error : errno;
    if (one >= 0) close(one);
    if (other >= 0) close(other);
    throw NoSocket(error);
  }
  Descriptor first = Registered(one);
  return {std::move(first), Registered(other)};
}

void Descriptor::Close() noexcept {
  // in a child the number is closed already, and may be somebody else's
  if (number_ < 0 || generation_ != Generation()) return;
  Register &all = TheRegister();
  const std::lock_guard<std::mutex> guard(all.lock);
  all.numbers.erase(std::remove(all.numbers.begin(), all.numbers.end(), number_),
                    all.numbers.end());
  close(number_);
  number_ = -1;
}
}  // namespace mslite
