// The test vectors of the protocol (tests/remote/wire/vectors), as their README describes them;
// MSLITE_VECTORS is their folder.
#ifndef MSLITE_TESTS_VECTORS_H_
#define MSLITE_TESTS_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/fields.h"

namespace mslite_test {
struct Field {
  std::vector<uint8_t> bytes;
  std::string type;
  std::string name;
  std::string value;  // as it stands in the file
};

// One greeting or frame.
struct Part {
  std::string side;  // "client" or "worker"
  std::vector<Field> fields;
  std::string verdict;
  std::string reason;

  bool Has(const std::string &name) const;
  const Field &Of(const std::string &name) const;
  uint64_t Number(const std::string &name) const;
  std::string Text(const std::string &name) const;          // of a text or a blob
  std::vector<uint8_t> Raw(const std::string &name) const;  // of bytes
  std::vector<int64_t> Dims(const std::string &name) const;
  std::vector<uint8_t> Encoded() const;
  std::vector<uint8_t> Body() const;  // what comes after the header of a frame
};

struct Vector {
  std::string name;
  std::vector<Part> parts;
};

// All of them, by name, or those whose names begin so; skips the test where there is no folder.
std::vector<Vector> Vectors(const std::string &prefix = "");
Vector VectorOf(const std::string &name);
// The bytes of everything that a Writer holds.
std::vector<uint8_t> Written(mslite::Writer *out);
std::string Hex(const std::vector<uint8_t> &bytes);
}  // namespace mslite_test
#endif  // MSLITE_TESTS_VECTORS_H_
