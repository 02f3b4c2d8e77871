#include "src/wire/fields.h"

#include <algorithm>

#include "src/failure.h"
#include "src/wire/errors.h"

namespace mslite {
namespace {
void CheckSize(const std::string &value, size_t most) {
  if (value.size() <= most) return;
  throw Failure(mindspore::kLiteParamInvalid, "InputError",
                "'" + value.substr(0, 99) + "...' cannot be sent to the worker: it has " +
                    std::to_string(value.size()) + " bytes, at most " + std::to_string(most) +
                    " can");
}
}  // namespace

bool IsUtf8(const std::string &text) {
  size_t at = 0;
  while (at < text.size()) {
    auto byte = [&](size_t ahead) { return static_cast<unsigned char>(text[at + ahead]); };
    unsigned char first = byte(0);
    size_t more = first < 0x80                    ? 0
                  : first >= 0xC2 && first < 0xE0 ? 1
                  : (first & 0xF0) == 0xE0        ? 2
                                                  : 3;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || at + more >= text.size()) {
      return false;
    }
    for (size_t i = 1; i <= more; ++i) {
      if ((byte(i) & 0xC0) != 0x80) {
        return false;
      }
    }
    bool is_odd = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                  (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
    if (is_odd) {
      return false;
    }
    at += more + 1;
  }
  return true;
}

void Writer::Number(uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) data_.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void Writer::Bytes(const void *data, size_t size) {
  const auto *bytes = static_cast<const uint8_t *>(data);
  if (size > 0) data_.insert(data_.end(), bytes, bytes + size);
}

void Writer::Blob(const void *data, size_t size) {
  U32(static_cast<uint32_t>(size));
  Bytes(data, size);
}

void Writer::Text(const std::string &value, size_t most) {
  CheckSize(value, most);
  if (!IsUtf8(value)) {
    throw Failure(mindspore::kLiteParamInvalid, "ValueError",
                  "'" + value.substr(0, 99) + "' cannot be sent to the worker: it is not UTF-8");
  }
  Blob(value.data(), value.size());
}

void Writer::Path(const std::string &value) {
  CheckSize(value, kMaxText);
  Blob(value.data(), value.size());
}

void Writer::Dims(const std::vector<int64_t> &dims) {
  if (dims.size() > kMaxDims) {
    throw Failure(mindspore::kLiteParamInvalid, "ShapeError",
                  "a shape has " + std::to_string(dims.size()) + " dims, at most " +
                      std::to_string(kMaxDims) + " can be sent to the worker");
  }
  U16(static_cast<uint16_t>(dims.size()));
  for (int64_t dim : dims) U64(static_cast<uint64_t>(dim));
}

const uint8_t *Reader::Take(size_t size, const char *what) {
  if (size > left()) {
    throw WireFailure(std::string("the worker's message ends inside ") + what + ": wanted " +
                      std::to_string(size) + " bytes at byte " + std::to_string(at_) +
                      ", there are " + std::to_string(left()));
  }
  const uint8_t *found = data_ + at_;
  at_ += size;
  return found;
}

uint64_t Reader::Number(size_t bytes, const char *what) {
  const uint8_t *raw = Take(bytes, what);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(raw[i]) << (8 * i);
  return value;
}

const uint8_t *Reader::Blob(const char *what, size_t most, size_t *size) {
  *size = U32(what);
  if (*size > most) {
    throw WireFailure(std::string(what) + " has " + std::to_string(*size) + " bytes, at most " +
                      std::to_string(most) + " are allowed");
  }
  return Take(*size, what);
}

std::string Reader::Text(const char *what, size_t most) {
  size_t size = 0;
  const uint8_t *raw = Blob(what, most, &size);
  return std::string(reinterpret_cast<const char *>(raw), size);
}

std::vector<int64_t> Reader::Dims(const char *what) {
  const size_t count = U16(what);
  if (count > kMaxDims) {
    throw WireFailure(std::string(what) + " has " + std::to_string(count) + " dims, at most " +
                      std::to_string(kMaxDims) + " are allowed");
  }
  std::vector<int64_t> dims(count);
  for (int64_t &dim : dims) dim = static_cast<int64_t>(U64(what));
  return dims;
}

uint32_t Reader::Count(const char *what, size_t bytes, uint32_t most) {
  const uint32_t count = U32(what);
  if (count > std::min<size_t>(most, left() / bytes)) {
    throw WireFailure("the worker's message announces " + std::to_string(count) + " " + what +
                      ", there is room for " + std::to_string(left() / bytes) + ", and at most " +
                      std::to_string(most) + " are allowed");
  }
  return count;
}
}  // namespace mslite
