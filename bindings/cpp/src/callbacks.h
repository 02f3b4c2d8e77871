// Callbacks around operators: taken, since programs pass them, but there are no operators to see.
#ifndef MSLITE_SRC_CALLBACKS_H_
#define MSLITE_SRC_CALLBACKS_H_

#include "include/api/types.h"

namespace mslite {
// Says once per process that they are not called, when some are given.
void WarnOfCallBacks(const mindspore::MSKernelCallBack &before,
                     const mindspore::MSKernelCallBack &after) noexcept;
}  // namespace mslite
#endif  // MSLITE_SRC_CALLBACKS_H_
