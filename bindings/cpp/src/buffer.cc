#include <cstring>
#include <new>
#include <stdexcept>

#include "include/api/types.h"

namespace mindspore {
class Buffer::Impl {
 public:
  std::vector<unsigned char> bytes;
};

Buffer::Buffer() : impl_(std::make_shared<Impl>()) {}

Buffer::Buffer(const void *data, size_t data_len) : Buffer() { SetData(data, data_len); }

Buffer::~Buffer() = default;

const void *Buffer::Data() const { return impl_->bytes.data(); }
void *Buffer::MutableData() { return impl_->bytes.data(); }
size_t Buffer::DataSize() const { return impl_->bytes.size(); }

bool Buffer::ResizeData(size_t data_len) {
  try {
    impl_->bytes.resize(data_len);
    return true;
  } catch (const std::bad_alloc &) {
    return false;
  } catch (const std::length_error &) {
    return false;
  }
}

bool Buffer::SetData(const void *data, size_t data_len) {
  if (data == nullptr && data_len != 0) return false;
  try {
    const auto *first = static_cast<const unsigned char *>(data);
    std::vector<unsigned char> bytes(first, first + data_len);  // `data` may be our own
    impl_->bytes.swap(bytes);
    return true;
  } catch (const std::bad_alloc &) {
    return false;
  } catch (const std::length_error &) {
    return false;
  }
}

Buffer Buffer::Clone() const { return Buffer(Data(), DataSize()); }
}  // namespace mindspore
