// Tensors, and the small types around them.
#ifndef MINDSPORE_INCLUDE_API_TYPES_H
#define MINDSPORE_INCLUDE_API_TYPES_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "include/api/data_type.h"
#include "include/api/dual_abi_helper.h"
#include "include/api/format.h"
#include "include/api/visible.h"

namespace mindspore {
// What a model's file is. Run here: kMindIR and kONNX; others are refused when they are built.
enum ModelType : uint32_t {
  kMindIR = 0,
  kAIR = 1,
  kOM = 2,
  kONNX = 3,
  kMindIR_Lite = 4,
  kDataFlow = 5,
  kUnknownType = 0xFFFFFFFF,
};

enum QuantizationType : uint32_t {
  kNoQuant = 0,
  kWeightQuant = 1,
  kFullQuant = 2,
  kUnknownQuantType = 0xFFFFFFFF,
};

enum OptimizationLevel : uint32_t {
  kO0 = 0,
  kO2 = 2,
  kO3 = 3,
  kAuto = 4,
  kOptimizationType = 0xFFFFFFFF,
};

struct QuantParam {
  int bit_num;
  double scale;
  int32_t zero_point;
  double min;
  double max;
};

class Allocator;

// A tensor: name, type, shape and, perhaps, data.
//
// An MSTensor is a handle: copies are the same tensor, and what is written through one is seen
// through all. One thread at a time may change a tensor; any number may read it.
// Sizes are in bytes.
class MS_API MSTensor {
 public:
  class Impl;

  // The functions that return an MSTensor * leave it to the caller, who gives it to
  // DestroyTensorPtr; they return null, and say why on stderr, when something does not fit.

  // With a copy of the data, which must be as long as shape and type say; null and 0: no data.
  // Memory of accelerators cannot be had from here: a `device` other than "" or "cpu" is noted,
  // and the memory is the host's.
  static inline MSTensor *CreateTensor(const std::string &name, enum DataType type,
                                       const std::vector<int64_t> &shape, const void *data,
                                       size_t data_len, const std::string &device = "",
                                       int device_id = -1) noexcept;
  // A copy of `tensor`, which keeps its name.
  static inline MSTensor *CreateTensor(const std::string &name, const MSTensor &tensor,
                                       const std::string &device = "", int device_id = -1) noexcept;
  // On the caller's memory, without a copy. It is freed by free() with the last handle when the
  // tensor owns it; else it must live as long as the tensor.
  static inline MSTensor *CreateRefTensor(const std::string &name, enum DataType type,
                                          const std::vector<int64_t> &shape, const void *data,
                                          size_t data_len, bool own_data = true) noexcept;
  // On memory of an accelerator, which stays the caller's; invalid when it is too short.
  static inline MSTensor CreateDeviceTensor(const std::string &name, enum DataType type,
                                            const std::vector<int64_t> &shape, void *data,
                                            size_t data_len) noexcept;
  // The bytes of a file. Its name is the resolved path; no shape: one dim, as long as the file.
  static inline MSTensor *CreateTensorFromFile(
      const std::string &file, enum DataType type = mindspore::DataType::kNumberTypeUInt8,
      const std::vector<int64_t> &shape = {}) noexcept;
  // Texts in one tensor: their number and where each begins, as int32, then the bytes of all.
  static inline MSTensor *StringsToTensor(const std::string &name,
                                          const std::vector<std::string> &str);
  // The texts of such a tensor; none when it is not one.
  static inline std::vector<std::string> TensorToStrings(const MSTensor &tensor);
  static void DestroyTensorPtr(MSTensor *tensor) noexcept;

  MSTensor();                         // valid, without type, shape and data
  explicit MSTensor(std::nullptr_t);  // invalid: equal to nullptr
  explicit MSTensor(const std::shared_ptr<Impl> &impl);
  // With a copy of the data; invalid when it does not fit to type and shape.
  inline MSTensor(const std::string &name, enum DataType type, const std::vector<int64_t> &shape,
                  const void *data, size_t data_len);
  ~MSTensor();

  inline std::string Name() const;
  enum DataType DataType() const;
  // A dim of -1 is not known yet. Valid until the shape changes.
  const std::vector<int64_t> &Shape() const;
  // The product of the dims: 1 of a scalar, 0 while a dim is not known, -1 of an invalid tensor.
  int64_t ElementNum() const;
  // What the data takes; 0 while a dim is not known.
  size_t DataSize() const;

  // The data itself, not a copy; null when there is none. The memory lives as long as the tensor
  // has it, or this pointer.
  std::shared_ptr<const void> Data() const;
  // The data to write to. Where there is none, memory of DataSize() bytes is made first, with
  // whatever is in it. Null when the size is 0 or there is not enough memory.
  void *MutableData();
  // Takes memory of the caller, without a copy. It must have DataSize() bytes when it is used.
  // Owned memory must come from malloc() and is freed with the tensor, or when it is replaced;
  // else it stays the caller's, and must live while the tensor has it. Null: no data.
  void SetData(void *data, bool own_data = true);

  // A pointer to memory of an accelerator; it stays the caller's.
  void SetDeviceData(void *data);
  void *GetDeviceData();
  bool IsDevice() const;  // has such a pointer
  int GetDeviceId() const;
  inline std::string GetDevice() const;

  bool IsConst() const;

  // The data stays; it must fit to the new shape when it is used.
  void SetShape(const std::vector<int64_t> &shape);
  void SetDataType(enum DataType data_type);
  inline void SetTensorName(const std::string &name);
  void SetFormat(mindspore::Format format);
  mindspore::Format format() const;
  // Where MutableData() gets memory from; null: the library chooses.
  void SetAllocator(std::shared_ptr<Allocator> allocator);
  std::shared_ptr<Allocator> allocator() const;
  void SetQuantParams(std::vector<QuantParam> quant_params);
  std::vector<QuantParam> QuantParams() const;

  // Another tensor with a copy of everything; for DestroyTensorPtr.
  MSTensor *Clone() const;

  bool operator==(std::nullptr_t) const;  // is it invalid?
  bool operator!=(std::nullptr_t) const;
  bool operator==(const MSTensor &tensor) const;  // the same tensor, not only the same values
  bool operator!=(const MSTensor &tensor) const;

  const std::shared_ptr<Impl> impl() const { return impl_; }

 private:
  static MSTensor *CreateTensor(const std::vector<char> &name, enum DataType type,
                                const std::vector<int64_t> &shape, const void *data,
                                size_t data_len, const std::vector<char> &device,
                                int device_id) noexcept;
  static MSTensor *CreateTensor(const std::vector<char> &name, const MSTensor &tensor,
                                const std::vector<char> &device, int device_id) noexcept;
  static MSTensor *CreateRefTensor(const std::vector<char> &name, enum DataType type,
                                   const std::vector<int64_t> &shape, const void *data,
                                   size_t data_len, bool own_data) noexcept;
  static MSTensor CreateDeviceTensor(const std::vector<char> &name, enum DataType type,
                                     const std::vector<int64_t> &shape, void *data,
                                     size_t data_len) noexcept;
  static MSTensor *CreateTensorFromFile(const std::vector<char> &file, enum DataType type,
                                        const std::vector<int64_t> &shape) noexcept;
  static MSTensor *CharStringsToTensor(const std::vector<char> &name,
                                       const std::vector<std::vector<char>> &str);
  static std::vector<std::vector<char>> TensorToStringChars(const MSTensor &tensor);
  MSTensor(const std::vector<char> &name, enum DataType type, const std::vector<int64_t> &shape,
           const void *data, size_t data_len);
  std::vector<char> CharName() const;
  std::vector<char> GetDeviceChar() const;
  void SetTensorName(const std::vector<char> &name);

  std::shared_ptr<Impl> impl_;
};

// Bytes on the heap. A handle: copies are the same bytes.
class MS_API Buffer {
 public:
  Buffer();
  Buffer(const void *data, size_t data_len);  // a copy
  ~Buffer();

  const void *Data() const;
  void *MutableData();
  size_t DataSize() const;

  // False when there is not enough memory; then it is as before. New bytes are zeros.
  bool ResizeData(size_t data_len);
  bool SetData(const void *data, size_t data_len);  // a copy

  Buffer Clone() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// A key to decrypt a model with, of 16, 24 or 32 bytes.
struct MS_API Key {
  const size_t max_key_len = 32;
  size_t len = 0;
  unsigned char key[32] = {0};
  Key() {}
  explicit Key(const char *dec_key, size_t key_len);  // one that is too long is left empty
};

constexpr char kDecModeAesGcm[] = "AES-GCM";

struct MSCallBackParam {
  std::string node_name;
  std::string node_type;
  double execute_time;
};

using MSKernelCallBack =
    std::function<bool(const std::vector<MSTensor> & /* inputs */,
                       const std::vector<MSTensor> & /* outputs */, const MSCallBackParam &)>;

MS_API std::vector<char> CharVersion();
inline std::string Version() { return CharToString(CharVersion()); }

MSTensor *MSTensor::CreateTensor(const std::string &name, enum DataType type,
                                 const std::vector<int64_t> &shape, const void *data,
                                 size_t data_len, const std::string &device,
                                 int device_id) noexcept {
  return CreateTensor(StringToChar(name), type, shape, data, data_len, StringToChar(device),
                      device_id);
}
MSTensor *MSTensor::CreateTensor(const std::string &name, const MSTensor &tensor,
                                 const std::string &device, int device_id) noexcept {
  return CreateTensor(StringToChar(name), tensor, StringToChar(device), device_id);
}
MSTensor *MSTensor::CreateRefTensor(const std::string &name, enum DataType type,
                                    const std::vector<int64_t> &shape, const void *data,
                                    size_t data_len, bool own_data) noexcept {
  return CreateRefTensor(StringToChar(name), type, shape, data, data_len, own_data);
}
MSTensor MSTensor::CreateDeviceTensor(const std::string &name, enum DataType type,
                                      const std::vector<int64_t> &shape, void *data,
                                      size_t data_len) noexcept {
  return CreateDeviceTensor(StringToChar(name), type, shape, data, data_len);
}
MSTensor *MSTensor::CreateTensorFromFile(const std::string &file, enum DataType type,
                                         const std::vector<int64_t> &shape) noexcept {
  return CreateTensorFromFile(StringToChar(file), type, shape);
}
MSTensor *MSTensor::StringsToTensor(const std::string &name, const std::vector<std::string> &str) {
  return CharStringsToTensor(StringToChar(name), VectorStringToChar(str));
}
std::vector<std::string> MSTensor::TensorToStrings(const MSTensor &tensor) {
  return VectorCharToString(TensorToStringChars(tensor));
}
MSTensor::MSTensor(const std::string &name, enum DataType type, const std::vector<int64_t> &shape,
                   const void *data, size_t data_len)
    : MSTensor(StringToChar(name), type, shape, data, data_len) {}
std::string MSTensor::Name() const { return CharToString(CharName()); }
std::string MSTensor::GetDevice() const { return CharToString(GetDeviceChar()); }
void MSTensor::SetTensorName(const std::string &name) { SetTensorName(StringToChar(name)); }
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_TYPES_H
