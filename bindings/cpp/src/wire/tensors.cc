#include "src/wire/tensors.h"

#include <string>
#include <utility>

#include "src/wire/errors.h"

namespace mslite {
namespace {
constexpr size_t kMaxName = 4096;
constexpr uint64_t kMaxTensor = uint64_t{1} << 62;  // bytes, counting dims of 0 as 1

bool IsAnyRank(const std::vector<int64_t> &shape) { return shape.size() == 1 && shape[0] == -2; }

Failure BadTensor(const TensorInfo &info, const std::string &what) {
  return WireFailure("the worker's tensor '" + info.name + "' " + what);
}

TensorInfo ReadInfo(Reader *body) {
  TensorInfo info;
  info.name = body->Text("the name of a tensor", kMaxName);
  info.type = body->U16("the type of a tensor");
  info.shape = body->Dims("the shape of a tensor");
  const size_t item = ItemBytes(info.type);
  if (item == 0) {
    throw BadTensor(info,
                    "has elements of type " + std::to_string(info.type) + ", which is unknown");
  }
  uint64_t bytes = item;
  for (int64_t dim : info.shape) {
    if (dim < -1 && !IsAnyRank(info.shape)) {
      throw BadTensor(info, "has a dim of " + std::to_string(dim) + ", wanted -1 or more");
    }
    const uint64_t count = dim > 1 ? static_cast<uint64_t>(dim) : 1;
    if (count > kMaxTensor / bytes) throw BadTensor(info, "is larger than any can be");
    bytes *= count;
  }
  return info;
}
}  // namespace

size_t ItemBytes(uint16_t type) {
  switch (type) {
    case 30:  // bool
    case 32:  // int8
    case 37:  // uint8
      return 1;
    case 33:  // int16
    case 38:  // uint16
    case 42:  // float16
    case 45:  // bfloat16
      return 2;
    case 34:  // int32
    case 39:  // uint32
    case 43:  // float32
      return 4;
    case 35:  // int64
    case 40:  // uint64
    case 44:  // float64
    case 51:  // complex64
      return 8;
    case 52:  // complex128
      return 16;
    default:
      return 0;
  }
}

bool BytesOf(const TensorInfo &info, uint64_t *bytes) {
  *bytes = ItemBytes(info.type);
  bool is_empty = false;
  for (int64_t dim : info.shape) {
    if (dim < 0) return false;
    if (dim == 0) {
      is_empty = true;
    } else if (*bytes > kMaxTensor / static_cast<uint64_t>(dim)) {
      return false;
    } else {
      *bytes *= static_cast<uint64_t>(dim);
    }
  }
  const bool is_known = *bytes > 0;
  if (is_empty) *bytes = 0;
  return is_known;
}

void WriteTensor(Writer *out, const WireTensor &tensor) {
  out->Text(tensor.info.name, kMaxName);
  out->U16(tensor.info.type);
  out->Dims(tensor.info.shape);
  out->U8(tensor.where);
  if (tensor.where == WireTensor::kInFrame) {
    out->Blob(tensor.data, tensor.size);
  } else if (tensor.where == WireTensor::kInBlock) {
    out->U32(tensor.place.block);
    out->U64(tensor.place.offset);
    out->U64(tensor.place.size);
  }
}

WireTensor ReadTensor(Reader *body) {
  WireTensor tensor;
  tensor.info = ReadInfo(body);
  const uint8_t where = body->U8("the place of a tensor");
  if (where == WireTensor::kNowhere) return tensor;
  if (where == WireTensor::kInFrame) {
    tensor.data = body->Blob("the data of a tensor", kMaxBody, &tensor.size);
  } else if (where == WireTensor::kInBlock) {
    tensor.place.block = body->U32("the place of a tensor");
    tensor.place.offset = body->U64("the place of a tensor");
    tensor.place.size = body->U64("the place of a tensor");
    tensor.size = static_cast<size_t>(tensor.place.size);
  } else {
    throw BadTensor(tensor.info,
                    "has its data at place " + std::to_string(where) + ", wanted 0, 1 or 2");
  }
  tensor.where = static_cast<WireTensor::Where>(where);
  uint64_t wanted = 0;
  if (!BytesOf(tensor.info, &wanted) || wanted != tensor.size) {
    throw BadTensor(tensor.info, "came with " + std::to_string(tensor.size) +
                                     " bytes of data, which its shape does not have");
  }
  return tensor;
}

std::vector<WireTensor> ReadTensors(Reader *body, const char *what) {
  const uint32_t count = body->Count(what, kMinTensorBytes);
  std::vector<WireTensor> tensors;
  tensors.reserve(count);
  for (uint32_t i = 0; i < count; ++i) tensors.push_back(ReadTensor(body));
  return tensors;
}
}  // namespace mslite
