// How tensors are made. Whatever does not fit gives null, and words on stderr.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "include/api/types.h"
#include "src/failure.h"
#include "src/log.h"
#include "src/tensor_impl.h"

namespace mindspore {
namespace {
using ImplPtr = std::shared_ptr<MSTensor::Impl>;

constexpr size_t kMaxCopied = size_t{2000} << 20;  // the interface's own limit

mslite::Failure Unfit(const std::string &words) {
  return mslite::Failure(kLiteParamInvalid, "InputError", words);
}

std::string Shown(const MSTensor::Impl &tensor) {
  return "tensor '" + tensor.name + "' of type " + std::to_string(static_cast<int>(tensor.type)) +
         " and shape " + ShapeText(tensor.shape);
}

// What `make` gives; null, and words, for what it throws.
template <typename Make>
ImplPtr Made(const char *function, Make make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc &) {
    mslite::LogError(std::string(function) + ": there is not enough memory");
  } catch (const std::exception &error) {
    mslite::LogError(std::string(function) + ": " + error.what());
  }
  return nullptr;
}

MSTensor *OnHeap(const ImplPtr &impl) noexcept {
  return impl == nullptr ? nullptr : new (std::nothrow) MSTensor(impl);
}

void Fill(MSTensor::Impl *tensor, const void *data, size_t size) {
  tensor->memory = mslite::Memory::For(size, nullptr);
  if (tensor->memory == nullptr) throw std::bad_alloc();
  std::memcpy(tensor->memory->data(), data, size);
}

ImplPtr Copied(const std::vector<char> &name, enum DataType type, const std::vector<int64_t> &shape,
               const void *data, size_t size) {
  auto tensor = std::make_shared<MSTensor::Impl>(CharToString(name), type, shape);
  if (data == nullptr && size == 0) return tensor;
  if (data == nullptr || size == 0) {
    throw Unfit(Shown(*tensor) +
                (data == nullptr ? " got a size without data" : " got data without a size") +
                "; give both, or null and 0 for a tensor without data");
  }
  if (size != tensor->DataSize()) {
    throw Unfit(Shown(*tensor) + " takes " + std::to_string(tensor->DataSize()) +
                " bytes of data, got " + std::to_string(size));
  }
  if (size > kMaxCopied) {
    throw Unfit(Shown(*tensor) + " has " + std::to_string(size) + " bytes, at most " +
                std::to_string(kMaxCopied) +
                " are copied; make it without data and fill MutableData(), or use "
                "CreateRefTensor");
  }
  Fill(tensor.get(), data, size);
  return tensor;
}

ImplPtr Cloned(const ImplPtr &from) {
  if (from == nullptr) throw Unfit("the tensor is invalid, there is nothing to copy");
  auto tensor = std::make_shared<MSTensor::Impl>(*from);
  tensor->memory = nullptr;
  tensor->is_result = false;
  const size_t size = from->DataSize();
  if (from->memory == nullptr || size == 0) return tensor;
  if (from->memory->size() < size) {
    throw Unfit(Shown(*from) + " takes " + std::to_string(size) + " bytes, its data has only " +
                std::to_string(from->memory->size()) + "; the shape was changed after the data");
  }
  Fill(tensor.get(), from->memory->data(), size);
  return tensor;
}

void NoteDevice(const std::vector<char> &device) {
  const std::string name = CharToString(device);
  if (name.empty() || name == "cpu") return;
  mslite::LogWarning("CreateTensor: memory of device '" + name +
                     "' cannot be had in this process; the tensor is in the host's memory");
}

// A descriptor that is closed when its time is over.
class File {
 public:
  explicit File(const std::string &path) : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

mslite::Failure Unread(const std::string &path, const std::string &why) {
  return mslite::Failure(kLiteFileError, "FileError", "cannot read '" + path + "': " + why);
}

void ReadAll(const File &file, const std::string &path, void *data, size_t size) {
  auto *at = static_cast<char *>(data);
  while (size > 0) {
    const ssize_t got = read(file.number(), at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Unread(path, std::strerror(errno));
    if (got == 0) throw Unread(path, "it became shorter meanwhile");
    at += got;
    size -= static_cast<size_t>(got);
  }
}

ImplPtr FromFile(const std::string &path, enum DataType type, std::vector<int64_t> shape) {
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) throw Unread(path, std::strerror(errno));
  const File file(resolved);
  struct stat facts;
  if (file.number() < 0 || fstat(file.number(), &facts) != 0) {
    throw Unread(path, std::strerror(errno));
  }
  if (!S_ISREG(facts.st_mode)) throw Unread(path, "it is no regular file");
  if (shape.empty()) shape = {static_cast<int64_t>(facts.st_size)};
  auto tensor = std::make_shared<MSTensor::Impl>(resolved, type, shape);
  const auto size = static_cast<size_t>(facts.st_size);
  if (size != tensor->DataSize()) {
    throw Unfit(Shown(*tensor) + " takes " + std::to_string(tensor->DataSize()) +
                " bytes, the file has " + std::to_string(size));
  }
  if (size == 0) return tensor;
  if (tensor->MutableData() == nullptr) throw std::bad_alloc();
  ReadAll(file, path, tensor->memory->data(), size);
  return tensor;
}
}  // namespace

MSTensor::MSTensor(const std::vector<char> &name, enum DataType type,
                   const std::vector<int64_t> &shape, const void *data, size_t data_len)
    : impl_(Made("MSTensor", [&] { return Copied(name, type, shape, data, data_len); })) {}

MSTensor *MSTensor::CreateTensor(const std::vector<char> &name, enum DataType type,
                                 const std::vector<int64_t> &shape, const void *data,
                                 size_t data_len, const std::vector<char> &device, int) noexcept {
  return OnHeap(Made("CreateTensor", [&] {
    NoteDevice(device);
    return Copied(name, type, shape, data, data_len);
  }));
}

MSTensor *MSTensor::CreateTensor(const std::vector<char> &, const MSTensor &tensor,
                                 const std::vector<char> &device, int) noexcept {
  return OnHeap(Made("CreateTensor", [&] {
    NoteDevice(device);
    if (tensor.IsDevice()) {
      throw Unfit("the data of tensor '" + tensor.impl_->name +
                  "' is on an accelerator, which this process cannot copy from");
    }
    return Cloned(tensor.impl_);
  }));
}

MSTensor *MSTensor::CreateRefTensor(const std::vector<char> &name, enum DataType type,
                                    const std::vector<int64_t> &shape, const void *data,
                                    size_t data_len, bool own_data) noexcept {
  return OnHeap(Made("CreateRefTensor", [&] {
    auto tensor = std::make_shared<Impl>(CharToString(name), type, shape);
    if (data == nullptr) return tensor;
    if (data_len < tensor->DataSize()) {
      throw Unfit(Shown(*tensor) + " takes " + std::to_string(tensor->DataSize()) +
                  " bytes of data, got " + std::to_string(data_len));
    }
    tensor->memory = mslite::Memory::OfUser(const_cast<void *>(data), own_data);
    if (tensor->memory == nullptr) throw std::bad_alloc();
    return tensor;
  }));
}

MSTensor MSTensor::CreateDeviceTensor(const std::vector<char> &name, enum DataType type,
                                      const std::vector<int64_t> &shape, void *data,
                                      size_t data_len) noexcept {
  return MSTensor(Made("CreateDeviceTensor", [&] {
    auto tensor = std::make_shared<Impl>(CharToString(name), type, shape);
    if (data_len < tensor->DataSize()) {
      throw Unfit(Shown(*tensor) + " takes " + std::to_string(tensor->DataSize()) +
                  " bytes of data, got " + std::to_string(data_len));
    }
    tensor->device_data = data;
    return tensor;
  }));
}

MSTensor *MSTensor::CreateTensorFromFile(const std::vector<char> &file, enum DataType type,
                                         const std::vector<int64_t> &shape) noexcept {
  return OnHeap(
      Made("CreateTensorFromFile", [&] { return FromFile(CharToString(file), type, shape); }));
}

void MSTensor::DestroyTensorPtr(MSTensor *tensor) noexcept { delete tensor; }

MSTensor *MSTensor::Clone() const {
  return OnHeap(Made("MSTensor::Clone", [&] { return Cloned(impl_); }));
}
}  // namespace mindspore
