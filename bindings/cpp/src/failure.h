// A fault inside the library: thrown within it, turned into a Status at the public border.
#ifndef MSLITE_SRC_FAILURE_H_
#define MSLITE_SRC_FAILURE_H_

#include <stdexcept>
#include <string>
#include <utility>

#include "include/api/status.h"

namespace mslite {
class Failure : public std::runtime_error {
 public:
  // `kind` is the name that docs/wire.md gives to such an error, as "InputError".
  Failure(enum mindspore::StatusCode code, std::string kind, const std::string &message)
      : std::runtime_error(message), code_(code), kind_(std::move(kind)) {}

  enum mindspore::StatusCode code() const { return code_; }
  const std::string &kind() const { return kind_; }

 private:
  enum mindspore::StatusCode code_;
  std::string kind_;
};
}  // namespace mslite
#endif  // MSLITE_SRC_FAILURE_H_
