// What is behind an MSTensor. All handles that are copies of each other have the same one.
#ifndef MSLITE_SRC_TENSOR_IMPL_H_
#define MSLITE_SRC_TENSOR_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "include/api/types.h"
#include "src/memory.h"

namespace mindspore {
class MSTensor::Impl {
 public:
  Impl() = default;
  Impl(std::string name, enum DataType type, std::vector<int64_t> shape);

  size_t DataSize() const;  // elements times their size; 0 when a dim is open
  void *MutableData();      // makes memory where there is none, or too little of ours

  std::string name;
  enum DataType type = DataType::kTypeUnknown;
  std::vector<int64_t> shape;
  enum Format format = DEFAULT_FORMAT;
  std::vector<QuantParam> quant_params;
  std::shared_ptr<Allocator> allocator;
  void *device_data = nullptr;
  std::string device;
  int device_id = -1;

  std::shared_ptr<mslite::Memory> memory;  // null: no data
  std::weak_ptr<mslite::Session> session;  // where its memory should be from; may have gone
  bool is_result = false;  // `memory` is what a Predict gave; the next one does not write into it
};

// The number of bytes of an element; 0 for types that have none.
size_t ElementSize(enum DataType type);
// The product of the dims; 0 when one of them is open, or when it is more than can be counted.
int64_t ElementCount(const std::vector<int64_t> &shape);
// What such a tensor takes, in bytes; 0 as above.
size_t SizeOf(enum DataType type, const std::vector<int64_t> &shape);
// As "[2,3]", for messages.
std::string ShapeText(const std::vector<int64_t> &shape);
}  // namespace mindspore
#endif  // MSLITE_SRC_TENSOR_IMPL_H_
