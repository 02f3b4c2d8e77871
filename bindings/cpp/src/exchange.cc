#include "src/exchange.h"

#include <cstdint>
#include <cstring>

#include "src/failure.h"
#include "src/tensor_impl.h"
#include "src/wire/block.h"
#include "src/wire/tensors.h"

namespace mslite {
namespace {
using mindspore::MSTensor;
using mindspore::ShapeText;

Failure WrongTensor(const std::string &message) {
  return Failure(mindspore::kLiteInputTensorError, "InputError", message);
}

// Bytes that the wire has for a tensor of this type and shape; throws where it has none.
template <class Called>
size_t BytesToSend(const MSTensor::Impl &tensor, const Called &called) {
  const auto number = static_cast<int64_t>(tensor.type);
  if (number < 0 || number > UINT16_MAX || ItemBytes(static_cast<uint16_t>(number)) == 0) {
    throw WrongTensor(called() + " has data type " + std::to_string(number) +
                      ", which no model takes; "
                      "wanted a number type, as kNumberTypeFloat32");
  }
  uint64_t bytes = 0;
  if (!BytesOf({"", static_cast<uint16_t>(number), tensor.shape}, &bytes)) {
    throw WrongTensor(called() + " has shape " + ShapeText(tensor.shape) +
                      " and no size in bytes; give it "
                      "its dims by SetShape, or Resize the model");
  }
  if (bytes > kMaxBlock) {
    throw WrongTensor(called() + " has " + std::to_string(bytes) + " bytes, at most " +
                      std::to_string(kMaxBlock) + " can be sent to the worker");
  }
  return static_cast<size_t>(bytes);
}

Filled Content(const MSTensor &tensor, const std::string &what, size_t index) {
  auto impl = tensor.impl();
  if (impl == nullptr) {
    throw WrongTensor(what + " " + std::to_string(index) + " is an invalid tensor (nullptr)");
  }
  auto called = [&] { return what + " " + std::to_string(index) + " '" + impl->name + "'"; };
  if (impl->device_data != nullptr) {
    throw Failure(mindspore::kLiteNotSupport, "EngineUnavailableError",
                  called() +
                      " has device memory (SetDeviceData), which is not supported; set host "
                      "memory with SetData");
  }
  Filled filled;
  filled.size = BytesToSend(*impl, called);
  filled.info = {impl->name, static_cast<uint16_t>(impl->type), impl->shape};
  if (filled.size == 0) {
    return filled;  // a tensor without elements has no bytes
  }
  filled.memory = impl->memory;
  if (filled.memory == nullptr || filled.memory->data() == nullptr) {
    throw WrongTensor(called() + " has no data; fill MutableData(), or SetData");
  }
  if (!filled.memory->is_users() && filled.memory->size() < filled.size) {
    throw WrongTensor(called() + " has " + std::to_string(filled.memory->size()) +
                      " bytes, its shape " + ShapeText(impl->shape) + " needs " +
                      std::to_string(filled.size) +
                      "; call MutableData() after SetShape and fill it again");
  }
  return filled;
}
}  // namespace

MSTensor EmptyTensor(const TensorInfo &info, const std::shared_ptr<Session> &session) {
  auto type = static_cast<enum mindspore::DataType>(info.type);
  auto impl = std::make_shared<MSTensor::Impl>(info.name, type, info.shape);
  impl->format = mindspore::NCHW;
  impl->session = session;
  return MSTensor(impl);
}

std::vector<MSTensor> EmptyTensors(const std::vector<TensorInfo> &infos,
                                   const std::shared_ptr<Session> &session) {
  std::vector<MSTensor> tensors;
  for (const auto &info : infos) {
    tensors.push_back(EmptyTensor(info, session));
  }
  return tensors;
}

std::vector<Filled> Contents(const std::vector<MSTensor> &tensors, const std::string &what) {
  std::vector<Filled> found;
  found.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    found.push_back(Content(tensors[i], what, i));
  }
  return found;
}

void Bind(const Filled &result, MSTensor *tensor) {
  auto impl = tensor->impl();
  impl->type = static_cast<enum mindspore::DataType>(result.info.type);
  impl->shape = result.info.shape;
  impl->memory = result.memory;
  impl->is_result = true;
}

bool CopyInto(const Filled &result, const MSTensor &given) {
  auto impl = given.impl();
  bool has_room = impl != nullptr && impl->memory != nullptr && impl->memory->data() != nullptr &&
                  !impl->is_result && result.size != 0 && impl->DataSize() == result.size &&
                  (impl->memory->is_users() || impl->memory->size() >= result.size);
  if (!has_room) {
    return false;
  }
  std::memcpy(impl->memory->data(), result.memory->data(), result.size);
  impl->type = static_cast<enum mindspore::DataType>(result.info.type);
  impl->shape = result.info.shape;
  return true;
}
}  // namespace mslite
