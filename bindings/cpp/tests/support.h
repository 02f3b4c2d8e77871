// What several tests need: the Failure of a call, files for a while, tensors that have an owner.
#ifndef MSLITE_TESTS_SUPPORT_H_
#define MSLITE_TESTS_SUPPORT_H_

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "include/api/types.h"
#include "src/failure.h"
#include "tests/check.h"

namespace mslite_test {
// The Failure of a call; fails the test when there is none.
template <typename Call>
mslite::Failure FailureOf(const Call &call) {
  try {
    call();
  } catch (const mslite::Failure &failure) {
    return failure;
  }
  throw Failed(__FILE__, __LINE__, "it did not fail");
}

// A file that is there while its object is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string &content) {
    char path[] = "/tmp/mslite-test-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK_EQ(write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    close(file);
    path_ = path;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

using Owned = std::unique_ptr<mindspore::MSTensor, void (*)(mindspore::MSTensor *)>;
inline Owned Own(mindspore::MSTensor *tensor) {
  return Owned(tensor,
               [](mindspore::MSTensor *gone) { mindspore::MSTensor::DestroyTensorPtr(gone); });
}
}  // namespace mslite_test
#endif  // MSLITE_TESTS_SUPPORT_H_
