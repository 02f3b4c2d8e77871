#include "src/wire/block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "src/wire/errors.h"

// Linux has had them since 3.17, the C library's headers only where all of GNU is asked for.
#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 0x0001
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_GROW 0x0004
#endif

namespace mslite {
namespace {
const char *Remedy(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return "close files, or allow more of them (ulimit -n)";
    case ENOENT:
    case ESRCH:
      return "the worker has ended, or runs in another container";
    case EACCES:
    case EPERM:
      return "the worker must run as the same user";
    default:
      return "free memory, send smaller requests, or fewer at once";
  }
}

Failure Unusable(const char *what, int error) {
  return ResourceFailure(std::string("shared memory of the worker cannot be ") + what + ": " +
                         SystemWords(error) + "; " + Remedy(error));
}

// The worker may have ended, and its process id be another's by now.
void CheckIsMeant(int file, const Made &made) {
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(file, F_GET_SEALS);
  struct stat facts = {};
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file, &facts) != 0 ||
      static_cast<uint64_t>(facts.st_size) != made.size) {
    throw WireFailure("what the worker shared is not the memory that it told of");
  }
}

struct File {
  ~File() {
    if (number >= 0) close(number);
  }
  int number;
};
}  // namespace

Block::Block(uint32_t worker_pid, const Made &made, uint64_t session, LaneLife life)
    : number_(made.block),
      size_(static_cast<size_t>(made.size)),
      session_(session),
      life_(std::move(life)) {
  if (made.block == 0 || made.size == 0 || made.size > kMaxBlock) {
    throw WireFailure("the worker told of block " + std::to_string(made.block) + " of " +
                      std::to_string(made.size) + " bytes, which cannot be");
  }
  const std::string path =
      "/proc/" + std::to_string(worker_pid) + "/fd/" + std::to_string(made.descriptor);
  const File file = {open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY)};
  if (file.number < 0) throw Unusable("opened", errno);
  CheckIsMeant(file.number, made);
  // all pages now: the first request would pay for each of them otherwise
  void *const mapped =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.number, 0);
  if (mapped == MAP_FAILED) throw Unusable("mapped", errno);
  data_ = static_cast<uint8_t *>(mapped);
}

Block::~Block() { munmap(data_, size_); }
}  // namespace mslite
