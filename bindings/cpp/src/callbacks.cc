#include "src/callbacks.h"

#include <atomic>

#include "src/log.h"

namespace mslite {
void WarnOfCallBacks(const mindspore::MSKernelCallBack &before,
                     const mindspore::MSKernelCallBack &after) noexcept {
  static std::atomic<bool> is_said{false};
  if ((before != nullptr || after != nullptr) && !is_said.exchange(true)) {
    LogWarning(
        "callbacks before and after operators are not called: models run in another process");
  }
}
}  // namespace mslite
