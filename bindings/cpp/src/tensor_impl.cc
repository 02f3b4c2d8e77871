#include "src/tensor_impl.h"

#include <limits>
#include <utility>

namespace mindspore {
namespace {
constexpr int kComplex64 = 51;  // docs/wire.md; DataType has no names for them
constexpr int kComplex128 = 52;
}  // namespace

size_t ElementSize(enum DataType type) {
  switch (static_cast<int>(type)) {
    case static_cast<int>(DataType::kObjectTypeString):  // counted by bytes; see string_tensor.cc
    case static_cast<int>(DataType::kNumberTypeBool):
    case static_cast<int>(DataType::kNumberTypeInt8):
    case static_cast<int>(DataType::kNumberTypeUInt8):
      return 1;
    case static_cast<int>(DataType::kNumberTypeInt16):
    case static_cast<int>(DataType::kNumberTypeUInt16):
    case static_cast<int>(DataType::kNumberTypeFloat16):
    case static_cast<int>(DataType::kNumberTypeBFloat16):
      return 2;
    case static_cast<int>(DataType::kNumberTypeInt32):
    case static_cast<int>(DataType::kNumberTypeUInt32):
    case static_cast<int>(DataType::kNumberTypeFloat32):
      return 4;
    case static_cast<int>(DataType::kNumberTypeInt64):
    case static_cast<int>(DataType::kNumberTypeUInt64):
    case static_cast<int>(DataType::kNumberTypeFloat64):
    case kComplex64:
      return 8;
    case kComplex128:
      return 16;
    default:
      return 0;
  }
}

int64_t ElementCount(const std::vector<int64_t> &shape) {
  // Zeros first: a shape with one has no elements, however large its other dims are.
  for (const int64_t dim : shape) {
    if (dim <= 0) return 0;
  }
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (count > std::numeric_limits<int64_t>::max() / dim) return 0;
    count *= dim;
  }
  return count;
}

size_t SizeOf(enum DataType type, const std::vector<int64_t> &shape) {
  const size_t element = ElementSize(type);
  const auto count = static_cast<size_t>(ElementCount(shape));
  if (element == 0 || count > std::numeric_limits<size_t>::max() / element) return 0;
  return count * element;
}

MSTensor::Impl::Impl(std::string name, enum DataType type, std::vector<int64_t> shape)
    : name(std::move(name)), type(type), shape(std::move(shape)) {}

size_t MSTensor::Impl::DataSize() const { return SizeOf(type, shape); }

void *MSTensor::Impl::MutableData() {
  if (memory != nullptr && memory->is_users()) return memory->data();
  const size_t size = DataSize();
  if (size == 0) return nullptr;
  if (memory == nullptr || memory->size() < size) {
    memory = allocator != nullptr ? mslite::Memory::OfAllocator(allocator, size)
                                  : mslite::Memory::For(size, session.lock());
    is_result = false;
  }
  return memory == nullptr ? nullptr : memory->data();
}
}  // namespace mindspore
