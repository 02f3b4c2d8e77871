// The errors of the protocol: those that a worker reports, and those that this side finds.
#ifndef MSLITE_SRC_WIRE_ERRORS_H_
#define MSLITE_SRC_WIRE_ERRORS_H_

#include <string>

#include "src/failure.h"

namespace mslite {
class Reader;

// What the body of an ERROR says: its detail follows the message, on lines of its own.
Failure ReadError(Reader *body);

// The other side does not keep to docs/wire.md, or the connection to it broke.
Failure WireFailure(const std::string &message);
// Memory, descriptors or threads are used up.
Failure ResourceFailure(const std::string &message);
// The worker process is gone.
Failure DeathFailure(const std::string &message);
// There was no answer in time.
Failure LateFailure();
// What was built before a fork is used in the child.
Failure ForkedFailure();
// What strerror says, from any thread.
std::string SystemWords(int error);
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_ERRORS_H_
