// What a BUILD carries, from what the user gave; what is wrong is told before anything is sent.
#ifndef MSLITE_SRC_BUILD_REQUEST_H_
#define MSLITE_SRC_BUILD_REQUEST_H_

#include <cstdint>
#include <string>

#include "include/api/context.h"
#include "src/wire/session.h"

namespace mslite {
// A request for a model file, or for the bytes of one. Throw Failure (kLiteError) when there are
// none.
BuildRequest OfFile(const std::string &path, mindspore::ModelType type);
BuildRequest OfContent(const void *data, size_t size, mindspore::ModelType type);

// Adds the settings of a context. Throws Failure (kLiteError) for one that cannot be used.
void AddContext(const mindspore::Context &context, BuildRequest *request);
}  // namespace mslite
#endif  // MSLITE_SRC_BUILD_REQUEST_H_
