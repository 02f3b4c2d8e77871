// Texts in a tensor: int32 their number, int32 where each begins (from the start of the data), then
// the bytes of all, one after the other. The tensor has one dim, the number of bytes.
#include <cstring>
#include <exception>
#include <limits>

#include "include/api/types.h"
#include "src/log.h"
#include "src/tensor_impl.h"

namespace mindspore {
namespace {
// The data may be anywhere, aligned or not.
int32_t NumberAt(const char *data, size_t index) {
  int32_t number;
  std::memcpy(&number, data + index * sizeof(number), sizeof(number));
  return number;
}

void Append(std::vector<char> *to, int32_t number) {
  const size_t at = to->size();
  to->resize(at + sizeof(number));
  std::memcpy(to->data() + at, &number, sizeof(number));
}

// False when there is more than an int32 can hold.
bool Pack(const std::vector<std::vector<char>> &texts, std::vector<char> *packed) {
  size_t size = sizeof(int32_t) * (1 + texts.size());
  for (const auto &text : texts) size += text.size();
  if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return false;
  packed->reserve(size);
  Append(packed, static_cast<int32_t>(texts.size()));
  size_t begin = sizeof(int32_t) * (1 + texts.size());
  for (const auto &text : texts) {
    Append(packed, static_cast<int32_t>(begin));
    begin += text.size();
  }
  for (const auto &text : texts) packed->insert(packed->end(), text.begin(), text.end());
  return true;
}

// False when the bytes are no packed texts: every number is checked before it is used.
bool Unpack(const char *data, size_t size, std::vector<std::vector<char>> *texts) {
  if (size < sizeof(int32_t)) return false;
  const int32_t count = NumberAt(data, 0);
  if (count < 0 || static_cast<size_t>(count) > size / sizeof(int32_t) - 1) return false;
  const auto number = static_cast<size_t>(count);
  size_t begin = sizeof(int32_t) * (1 + number);
  for (size_t i = 0; i < number; ++i) {
    const int32_t here = NumberAt(data, 1 + i);
    if (here < 0 || static_cast<size_t>(here) < begin) return false;
    begin = static_cast<size_t>(here);
    const int64_t next = i + 1 < number ? NumberAt(data, 2 + i) : static_cast<int64_t>(size);
    if (next < here || next > static_cast<int64_t>(size)) return false;
    texts->emplace_back(data + here, data + next);
  }
  return true;
}
}  // namespace

MSTensor *MSTensor::CharStringsToTensor(const std::vector<char> &name,
                                        const std::vector<std::vector<char>> &str) {
  try {
    std::vector<char> packed;
    if (Pack(str, &packed)) {
      return CreateTensor(name, mindspore::DataType::kObjectTypeString,
                          {static_cast<int64_t>(packed.size())}, packed.data(), packed.size(), {},
                          -1);
    }
    mslite::LogError("StringsToTensor: the texts have 2 GiB or more in all");
  } catch (const std::exception &error) {
    mslite::LogError(std::string("StringsToTensor: ") + error.what());
  }
  return nullptr;
}

std::vector<std::vector<char>> MSTensor::TensorToStringChars(const MSTensor &tensor) {
  try {
    std::vector<std::vector<char>> texts;
    const auto data = tensor.Data();
    if (data != nullptr && tensor.DataType() == mindspore::DataType::kObjectTypeString &&
        tensor.impl_->memory->size() >= tensor.DataSize() &&
        Unpack(static_cast<const char *>(data.get()), tensor.DataSize(), &texts)) {
      return texts;
    }
    mslite::LogError("TensorToStrings: the tensor '" + tensor.Name() + "' holds no texts");
  } catch (const std::exception &error) {
    mslite::LogError(std::string("TensorToStrings: ") + error.what());
  }
  return {};
}
}  // namespace mindspore
