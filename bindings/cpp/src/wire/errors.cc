#include "src/wire/errors.h"

#include <cstdint>
#include <system_error>

#include "src/wire/fields.h"

namespace mslite {
Failure ReadError(Reader *body) {
  const int32_t code = body->I32("an error's code");
  const std::string kind = body->Text("an error's kind");
  std::string message = body->Text("an error's message");
  const std::string detail = body->Text("an error's detail");
  if (!detail.empty()) message += "\n" + detail;
  // an error is no success, whatever the other side says
  const auto status = code == 0
                          ? mindspore::kLiteError
                          : static_cast<enum mindspore::StatusCode>(static_cast<uint32_t>(code));
  return Failure(status, kind, message);
}

Failure WireFailure(const std::string &message) {
  return Failure(mindspore::kMDNetWorkError, "WireError", message);
}

Failure ResourceFailure(const std::string &message) {
  return Failure(mindspore::kLiteMemoryFailed, "ResourceError", message);
}

Failure DeathFailure(const std::string &message) {
  return Failure(mindspore::kCoreFailed, "WorkerDiedError", message);
}

Failure LateFailure() {
  return Failure(mindspore::kMDTimeOut, "RequestTimeoutError",
                 "the worker did not answer within timeout_s; the request was cancelled. Allow "
                 "more time, or send less at once");
}

Failure ForkedFailure() {
  return Failure(mindspore::kLiteUninitializedObj, "ClosedError",
                 "the model was built before this process was forked, and stays with the parent; "
                 "build it again in the child");
}

std::string SystemWords(int error) { return std::generic_category().message(error); }
}  // namespace mslite
