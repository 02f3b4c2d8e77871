// Tensors on the wire: what they are stands in the frame, their bytes there or in a block.
#ifndef MSLITE_SRC_WIRE_TENSORS_H_
#define MSLITE_SRC_WIRE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/wire/fields.h"
#include "src/wire/session.h"

namespace mslite {
constexpr size_t kInlineBytes = size_t{16} << 10;  // up to here the frame is quicker than a block
constexpr size_t kInlineTotal = kMaxBody / 2;      // of a message; the rest is for names and dims
constexpr size_t kMinTensorBytes = 9;              // that a tensor takes in a message

// Where in which block some bytes are. Block 0: nowhere.
struct Place {
  uint32_t block = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A tensor as it stands in a message.
struct WireTensor {
  enum Where : uint8_t { kNowhere = 0, kInFrame = 1, kInBlock = 2 };

  TensorInfo info;
  Where where = kNowhere;
  const void *data = nullptr;  // in the frame: they are not copied
  size_t size = 0;
  Place place;  // in a block
};

void WriteTensor(Writer *out, const WireTensor &tensor);
// Its sizes agree with each other afterwards; throws a WireError.
WireTensor ReadTensor(Reader *body);
std::vector<WireTensor> ReadTensors(Reader *body, const char *what);

// Bytes of an element of this type (docs/wire.md); 0: there is no such type.
size_t ItemBytes(uint16_t type);
// Bytes of a tensor; false when a dim is open, when there is no such type, or none can be so large.
bool BytesOf(const TensorInfo &info, uint64_t *bytes);
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_TENSORS_H_
