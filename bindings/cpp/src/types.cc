// What can be asked of a tensor and set; how it is made is in tensor_factories.cc.
#include "include/api/types.h"

#include <cstring>
#include <exception>
#include <utility>

#include "src/log.h"
#include "src/tensor_impl.h"
#include "src/version.h"

namespace mindspore {
namespace {
// Leaked on purpose: a thread may look at a tensor while the process exits.
const std::vector<int64_t> &NoShape() {
  static const auto *shape = new std::vector<int64_t>();
  return *shape;
}
}  // namespace

MSTensor::MSTensor() : impl_(std::make_shared<Impl>()) {}
MSTensor::MSTensor(std::nullptr_t) {}
MSTensor::MSTensor(const std::shared_ptr<Impl> &impl) : impl_(impl) {}
MSTensor::~MSTensor() = default;

std::vector<char> MSTensor::CharName() const {
  return impl_ == nullptr ? std::vector<char>() : StringToChar(impl_->name);
}

enum DataType MSTensor::DataType() const {
  return impl_ == nullptr ? mindspore::DataType::kTypeUnknown : impl_->type;
}

const std::vector<int64_t> &MSTensor::Shape() const {
  return impl_ == nullptr ? NoShape() : impl_->shape;
}

int64_t MSTensor::ElementNum() const { return impl_ == nullptr ? -1 : ElementCount(impl_->shape); }

size_t MSTensor::DataSize() const { return impl_ == nullptr ? 0 : impl_->DataSize(); }

std::shared_ptr<const void> MSTensor::Data() const {
  if (impl_ == nullptr || impl_->memory == nullptr) return nullptr;
  return {impl_->memory, impl_->memory->data()};
}

void *MSTensor::MutableData() {
  if (impl_ == nullptr) return nullptr;
  try {
    return impl_->MutableData();
  } catch (const std::exception &error) {  // of an allocator of the user
    mslite::LogError("MSTensor::MutableData: " + std::string(error.what()));
    return nullptr;
  }
}

void MSTensor::SetData(void *data, bool own_data) {
  if (impl_ == nullptr) return;
  auto &memory = impl_->memory;
  if (data != nullptr && memory != nullptr && memory->data() == data) {
    // The same memory once more: letting go of it first would free it.
    memory->SetOwned(own_data);
  } else {
    memory = data == nullptr ? nullptr : mslite::Memory::OfUser(data, own_data);
  }
  impl_->is_result = false;
}

void MSTensor::SetDeviceData(void *data) {
  if (impl_ != nullptr) impl_->device_data = data;
}
void *MSTensor::GetDeviceData() { return impl_ == nullptr ? nullptr : impl_->device_data; }
bool MSTensor::IsDevice() const { return impl_ != nullptr && impl_->device_data != nullptr; }
int MSTensor::GetDeviceId() const { return impl_ == nullptr ? -1 : impl_->device_id; }
std::vector<char> MSTensor::GetDeviceChar() const {
  return impl_ == nullptr ? std::vector<char>() : StringToChar(impl_->device);
}

bool MSTensor::IsConst() const { return false; }  // weights are not given out as tensors

void MSTensor::SetShape(const std::vector<int64_t> &shape) {
  if (impl_ != nullptr) impl_->shape = shape;
}
void MSTensor::SetDataType(enum DataType data_type) {
  if (impl_ != nullptr) impl_->type = data_type;
}
void MSTensor::SetTensorName(const std::vector<char> &name) {
  if (impl_ != nullptr) impl_->name = CharToString(name);
}

void MSTensor::SetFormat(mindspore::Format format) {
  if (impl_ != nullptr) impl_->format = format;
}
mindspore::Format MSTensor::format() const {
  return impl_ == nullptr ? DEFAULT_FORMAT : impl_->format;
}

void MSTensor::SetAllocator(std::shared_ptr<Allocator> allocator) {
  if (impl_ != nullptr) impl_->allocator = std::move(allocator);
}
std::shared_ptr<Allocator> MSTensor::allocator() const {
  return impl_ == nullptr ? nullptr : impl_->allocator;
}

void MSTensor::SetQuantParams(std::vector<QuantParam> quant_params) {
  if (impl_ != nullptr) impl_->quant_params = std::move(quant_params);
}
std::vector<QuantParam> MSTensor::QuantParams() const {
  return impl_ == nullptr ? std::vector<QuantParam>() : impl_->quant_params;
}

bool MSTensor::operator==(std::nullptr_t) const { return impl_ == nullptr; }
bool MSTensor::operator!=(std::nullptr_t) const { return impl_ != nullptr; }
bool MSTensor::operator==(const MSTensor &tensor) const { return impl_ == tensor.impl_; }
bool MSTensor::operator!=(const MSTensor &tensor) const { return impl_ != tensor.impl_; }

Key::Key(const char *dec_key, size_t key_len) {
  if (dec_key == nullptr || key_len > max_key_len) {
    mslite::LogError("Key: got " + std::string(dec_key == nullptr ? "no key" : "a key of ") +
                     (dec_key == nullptr ? "" : std::to_string(key_len) + " bytes") +
                     ", wanted 16, 24 or 32 bytes; the key stays empty");
    return;
  }
  std::memcpy(key, dec_key, key_len);
  len = key_len;
}

std::vector<char> CharVersion() {
  return StringToChar(std::string("MindSpore Lite ") + mslite::kVersion);
}
}  // namespace mindspore
