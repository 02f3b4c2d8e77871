#include "src/tensor_impl.h"

#include <limits>
#include <utility>

#include "src/wire/tensors.h"

namespace mindspore {
size_t ElementSize(enum DataType type) {
  if (type == DataType::kObjectTypeString) return 1;  // counted by bytes; see string_tensor.cc
  const auto number = static_cast<int64_t>(type);
  if (number < 0 || number > std::numeric_limits<uint16_t>::max()) return 0;
  return mslite::ItemBytes(static_cast<uint16_t>(number));
}

std::string ShapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (const int64_t dim : shape) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
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
