// The border of the library: whatever is thrown inside it becomes a Status.
#ifndef MSLITE_SRC_BORDER_H_
#define MSLITE_SRC_BORDER_H_

#include <exception>
#include <new>
#include <utility>

#include "include/api/status.h"
#include "src/failure.h"
#include "src/log.h"

namespace mslite {
// Runs `act`, which returns nothing, and returns how it ended.
template <class Act>
mindspore::Status Guarded(const Act &act) noexcept {
  try {
    act();
    return mindspore::kSuccess;
  } catch (const Failure &failure) {
    return mindspore::Status(failure.code(), failure.what());
  } catch (const std::bad_alloc &) {
    return mindspore::Status(mindspore::kLiteMemoryFailed, "there is not enough memory");
  } catch (const std::exception &error) {
    return mindspore::Status(mindspore::kCoreFailed, error.what());
  }
}

// What a function that returns something else than a Status does about a failure.
template <class Value, class Act>
Value OrElse(Value otherwise, const Act &act) {
  Value found = std::move(otherwise);
  const mindspore::Status status = Guarded([&] { found = act(); });
  if (status.IsError()) LogError(status.ToString());
  return found;
}
}  // namespace mslite
#endif  // MSLITE_SRC_BORDER_H_
