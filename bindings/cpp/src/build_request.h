// A Context as the settings that a BUILD carries; what is wrong with it is told before anything is sent.
#ifndef MSLITE_SRC_BUILD_REQUEST_H_
#define MSLITE_SRC_BUILD_REQUEST_H_

#include <string>

#include "include/api/context.h"
#include "src/wire/session.h"

namespace mslite {
// Adds the settings of a context, and of its device `info`. Throws Failure (kLiteError) for a
// context that cannot be used.
void AddContext(const mindspore::Context &context, BuildRequest *request);

// The path of a model file for a worker whose directory is another. Throws Failure (kLiteError)
// when there is no such file, or it cannot be read.
std::string ModelPath(const std::string &path);

// Takes entries of the section "parallel", as timeout_s=0.5, for settings of a runner: the API has
// no functions for them.
void MoveParallelEntries(BuildRequest *request);
}  // namespace mslite
#endif  // MSLITE_SRC_BUILD_REQUEST_H_
