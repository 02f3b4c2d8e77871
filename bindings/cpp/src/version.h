#ifndef MSLITE_SRC_VERSION_H_
#define MSLITE_SRC_VERSION_H_

namespace mslite {
// That of the Python package; a test holds both together.
constexpr char kVersion[] = "0.1.0";
}  // namespace mslite
#endif  // MSLITE_SRC_VERSION_H_
