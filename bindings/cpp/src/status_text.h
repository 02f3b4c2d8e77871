#ifndef MSLITE_SRC_STATUS_TEXT_H_
#define MSLITE_SRC_STATUS_TEXT_H_

#include "include/api/status.h"

namespace mslite {
// What a code means, in a few words.
const char *MeaningOf(enum mindspore::StatusCode code);
}  // namespace mslite
#endif  // MSLITE_SRC_STATUS_TEXT_H_
