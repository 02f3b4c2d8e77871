// The pieces that messages are made of: numbers, texts and lists, little-endian, without padding.
//
// Nothing that comes from the other side is believed: a length is compared with what is there, and
// with its limit, before anything is made of it.
#ifndef MSLITE_SRC_WIRE_FIELDS_H_
#define MSLITE_SRC_WIRE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mslite {
constexpr size_t kMaxText = size_t{1} << 20;
constexpr uint32_t kMaxItems = 1u << 16;
constexpr size_t kMaxBody = size_t{16} << 20;  // larger things travel in shared memory
constexpr size_t kMaxDims = 64;

// Whether the bytes are UTF-8 as the worker takes it: no overlong forms, no surrogates.
bool IsUtf8(const std::string &text);

// Appends fields after `head` bytes that are left free, for the header of a frame.
class Writer {
 public:
  explicit Writer(size_t head = 0) : head_(head), data_(head) {}

  void Clear() { data_.assign(head_, 0); }
  void U8(uint8_t value) { data_.push_back(value); }
  void U16(uint16_t value) { Number(value, 2); }
  void U32(uint32_t value) { Number(value, 4); }
  void U64(uint64_t value) { Number(value, 8); }
  void Bytes(const void *data, size_t size);
  void Blob(const void *data, size_t size);                     // a u32 length, then the bytes
  void Text(const std::string &value, size_t most = kMaxText);  // UTF-8 only
  void Path(const std::string &value);                          // any bytes
  void Dims(const std::vector<int64_t> &dims);

  uint8_t *data() { return data_.data(); }
  size_t size() const { return data_.size(); }
  size_t body_size() const { return data_.size() - head_; }

 private:
  void Number(uint64_t value, size_t bytes);

  size_t head_;
  std::vector<uint8_t> data_;
};

// Takes fields off the front of a message's body, which must outlive it. `what` names a field in
// errors, which are Failures of kind WireError.
class Reader {
 public:
  Reader(const void *data, size_t size) : data_(static_cast<const uint8_t *>(data)), size_(size) {}

  uint8_t U8(const char *what) { return *Take(1, what); }
  uint16_t U16(const char *what) { return static_cast<uint16_t>(Number(2, what)); }
  uint32_t U32(const char *what) { return static_cast<uint32_t>(Number(4, what)); }
  uint64_t U64(const char *what) { return Number(8, what); }
  int32_t I32(const char *what) { return static_cast<int32_t>(U32(what)); }
  // Bytes that lie in the message.
  const uint8_t *Take(size_t size, const char *what);
  // A u32 length and the bytes; whatever they are, for a worker's words should never fail.
  std::string Text(const char *what, size_t most = kMaxText);
  const uint8_t *Blob(const char *what, size_t most, size_t *size);
  std::vector<int64_t> Dims(const char *what);
  // A u32: how many of something follow, each of which takes at least `bytes`.
  uint32_t Count(const char *what, size_t bytes, uint32_t most = kMaxItems);

  size_t left() const { return size_ - at_; }

 private:
  uint64_t Number(size_t bytes, const char *what);

  const uint8_t *data_;
  size_t size_;
  size_t at_ = 0;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_FIELDS_H_
