// Where a model runs, and with what.
#ifndef MINDSPORE_INCLUDE_API_CONTEXT_H
#define MINDSPORE_INCLUDE_API_CONTEXT_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "include/api/dual_abi_helper.h"
#include "include/api/types.h"

namespace mindspore {
enum DelegateMode {
  kNoDelegate = 0,
  kCoreML = 1,
  kNNAPI = 2,
};

enum DeviceType {
  kCPU = 0,
  kGPU = 1,
  kKirinNPU = 2,
  kAscend = 3,
  kAscend910 = 4,
  kAscend310 = 5,
  kCustomDevice = 6,
  kAllDevice = 7,
  kInvalidDeviceType = 100,
};

class Allocator;
class AbstractDelegate;
class Delegate;
class DeviceInfoContext;

// Settings for Model::Build and ModelParallelRunner::Init, which read them and never write to them.
// Copies share their state. Not to be changed by one thread while another one uses it.
class MS_API Context {
 public:
  struct Data;
  Context();
  ~Context();

  void SetThreadNum(int32_t thread_num);  // of an operator; 0: as suits the machine
  int32_t GetThreadNum() const;

  void SetInterOpParallelNum(int32_t parallel_num);  // operators at once; 0: as suits the machine
  int32_t GetInterOpParallelNum() const;

  // 0: threads may run on every core, 1: on big ones first, 2: on little ones first.
  void SetThreadAffinity(int mode);
  int GetThreadAffinityMode() const;
  // The cores to run on; counts before the mode.
  void SetThreadAffinity(const std::vector<int> &core_list);
  std::vector<int32_t> GetThreadAffinityCoreList() const;

  inline void SetGroupInfoFile(std::string group_info_file);
  inline std::string GetGroupInfoFile() const;

  // The first device is the one that runs the model. A reference to the list itself.
  std::vector<std::shared_ptr<DeviceInfoContext>> &MutableDeviceInfo();

  // Not supported: setters change nothing and say so on stderr, getters return the default.
  void SetEnableParallel(bool is_parallel);
  bool GetEnableParallel() const;
  void SetBuiltInDelegate(DelegateMode mode);
  DelegateMode GetBuiltInDelegate() const;
  void set_delegate(const std::shared_ptr<AbstractDelegate> &delegate);
  std::shared_ptr<AbstractDelegate> get_delegate() const;
  void SetDelegate(const std::shared_ptr<Delegate> &delegate);
  std::shared_ptr<Delegate> GetDelegate() const;
  void SetMultiModalHW(bool float_mode);
  bool GetMultiModalHW() const;

 private:
  void SetGroupInfoFile(const std::vector<char> &group_info_file);
  std::vector<char> GetGroupInfoFileChar() const;

  std::shared_ptr<Data> data_;
};

// One device of a Context; owned by a shared_ptr.
class MS_API DeviceInfoContext : public std::enable_shared_from_this<DeviceInfoContext> {
 public:
  struct Data;
  DeviceInfoContext();
  virtual ~DeviceInfoContext();

  virtual enum DeviceType GetDeviceType() const = 0;

  // The same device as a T; null when it is of another type.
  template <class T>
  std::shared_ptr<T> Cast() {
    static_assert(std::is_base_of<DeviceInfoContext, T>::value, "T is no device info");
    if (GetDeviceType() != T().GetDeviceType()) return nullptr;
    return std::static_pointer_cast<T>(shared_from_this());
  }

  // Which runtime of the device to use, as "ge" or "tensorrt"; "": the usual one.
  inline void SetProvider(const std::string &provider);
  inline std::string GetProvider() const;
  inline void SetProviderDevice(const std::string &device);
  inline std::string GetProviderDevice() const;

  void SetAllocator(const std::shared_ptr<Allocator> &allocator);
  std::shared_ptr<Allocator> GetAllocator() const;

 protected:
  void SetProvider(const std::vector<char> &provider);
  std::vector<char> GetProviderChar() const;
  void SetProviderDevice(const std::vector<char> &device);
  std::vector<char> GetProviderDeviceChar() const;

  std::shared_ptr<Data> data_;
};

// Whichever device there is.
class MS_API AutoDeviceInfo : public DeviceInfoContext {
 public:
  enum DeviceType GetDeviceType() const override { return kAllDevice; }
};

class MS_API CPUDeviceInfo : public DeviceInfoContext {
 public:
  enum DeviceType GetDeviceType() const override { return kCPU; }

  void SetEnableFP16(bool is_fp16);
  bool GetEnableFP16() const;
};

// Not supported: building a model for it fails.
class MS_API KirinNPUDeviceInfo : public DeviceInfoContext {
 public:
  enum DeviceType GetDeviceType() const override { return kKirinNPU; }

  void SetEnableFP16(bool is_fp16);
  bool GetEnableFP16() const;
  void SetFrequency(int frequency);  // 1 saves power .. 4 runs as fast as it can
  int GetFrequency() const;
};

class MS_API GPUDeviceInfo : public DeviceInfoContext {
 public:
  enum DeviceType GetDeviceType() const override { return kGPU; }

  void SetDeviceID(uint32_t device_id);
  uint32_t GetDeviceID() const;

  // Which process of a group that MPI started this is, and of how many; 0 and 1 without MPI.
  int GetRankID() const;
  int GetGroupSize() const;

  // "enforce_fp32" or "preferred_fp16"; others are refused, with words on stderr.
  // The same setting as EnableFP16.
  inline void SetPrecisionMode(const std::string &precision_mode);
  inline std::string GetPrecisionMode() const;
  void SetEnableFP16(bool is_fp16);
  bool GetEnableFP16() const;

  // Not supported: setters change nothing and say so on stderr, getters return false or null.
  void SetEnableGLTexture(bool is_enable_gl_texture);
  bool GetEnableGLTexture() const;
  void SetGLContext(void *gl_context);
  void *GetGLContext() const;
  void SetGLDisplay(void *gl_display);
  void *GetGLDisplay() const;

 private:
  void SetPrecisionMode(const std::vector<char> &precision_mode);
  std::vector<char> GetPrecisionModeChar() const;
};

// Texts are "" until they are set.
class MS_API AscendDeviceInfo : public DeviceInfoContext {
 public:
  enum DeviceType GetDeviceType() const override { return kAscend; }

  void SetDeviceID(uint32_t device_id);
  uint32_t GetDeviceID() const;
  void SetRankID(uint32_t rank_id);
  uint32_t GetRankID() const;

  inline void SetInsertOpConfigPath(const std::string &cfg_path);
  inline std::string GetInsertOpConfigPath() const;

  inline void SetInputFormat(const std::string &format);  // "NCHW", "NHWC" or "ND"
  inline std::string GetInputFormat() const;

  inline void SetInputShape(const std::string &shape);  // as "x:1,3,224,224;y:1,10"
  inline std::string GetInputShape() const;
  void SetInputShapeMap(const std::map<int, std::vector<int>> &shape);  // by an input's place
  std::map<int, std::vector<int>> GetInputShapeMap() const;

  void SetDynamicBatchSize(const std::vector<size_t> &dynamic_batch_size);
  inline std::string GetDynamicBatchSize() const;  // joined by commas

  inline void SetDynamicImageSize(const std::string &dynamic_image_size);  // as "66,88;32,64"
  inline std::string GetDynamicImageSize() const;

  void SetOutputType(enum DataType output_type);
  enum DataType GetOutputType() const;

  // enforce_fp32, preferred_fp32, enforce_fp16, enforce_origin or preferred_optimal.
  inline void SetPrecisionMode(const std::string &precision_mode);
  inline std::string GetPrecisionMode() const;

  // high_performance or high_precision.
  inline void SetOpSelectImplMode(const std::string &op_select_impl_mode);
  inline std::string GetOpSelectImplMode() const;

  inline void SetFusionSwitchConfigPath(const std::string &cfg_path);
  inline std::string GetFusionSwitchConfigPath() const;

  // l1_optimize, l2_optimize, off_optimize or l1_and_l2_optimize.
  inline void SetBufferOptimizeMode(const std::string &buffer_optimize_mode);
  inline std::string GetBufferOptimizeMode() const;

 private:
  void SetInsertOpConfigPath(const std::vector<char> &cfg_path);
  std::vector<char> GetInsertOpConfigPathChar() const;
  void SetInputFormat(const std::vector<char> &format);
  std::vector<char> GetInputFormatChar() const;
  void SetInputShape(const std::vector<char> &shape);
  std::vector<char> GetInputShapeChar() const;
  std::vector<char> GetDynamicBatchSizeChar() const;
  void SetDynamicImageSize(const std::vector<char> &dynamic_image_size);
  std::vector<char> GetDynamicImageSizeChar() const;
  void SetPrecisionMode(const std::vector<char> &precision_mode);
  std::vector<char> GetPrecisionModeChar() const;
  void SetOpSelectImplMode(const std::vector<char> &op_select_impl_mode);
  std::vector<char> GetOpSelectImplModeChar() const;
  void SetFusionSwitchConfigPath(const std::vector<char> &cfg_path);
  std::vector<char> GetFusionSwitchConfigPathChar() const;
  void SetBufferOptimizeMode(const std::vector<char> &buffer_optimize_mode);
  std::vector<char> GetBufferOptimizeModeChar() const;
};

using Ascend310DeviceInfo = AscendDeviceInfo;
using Ascend910DeviceInfo = AscendDeviceInfo;

void Context::SetGroupInfoFile(std::string group_info_file) {
  SetGroupInfoFile(StringToChar(group_info_file));
}
std::string Context::GetGroupInfoFile() const { return CharToString(GetGroupInfoFileChar()); }

void DeviceInfoContext::SetProvider(const std::string &provider) {
  SetProvider(StringToChar(provider));
}
std::string DeviceInfoContext::GetProvider() const { return CharToString(GetProviderChar()); }
void DeviceInfoContext::SetProviderDevice(const std::string &device) {
  SetProviderDevice(StringToChar(device));
}
std::string DeviceInfoContext::GetProviderDevice() const {
  return CharToString(GetProviderDeviceChar());
}

void GPUDeviceInfo::SetPrecisionMode(const std::string &precision_mode) {
  SetPrecisionMode(StringToChar(precision_mode));
}
std::string GPUDeviceInfo::GetPrecisionMode() const { return CharToString(GetPrecisionModeChar()); }

void AscendDeviceInfo::SetInsertOpConfigPath(const std::string &cfg_path) {
  SetInsertOpConfigPath(StringToChar(cfg_path));
}
std::string AscendDeviceInfo::GetInsertOpConfigPath() const {
  return CharToString(GetInsertOpConfigPathChar());
}
void AscendDeviceInfo::SetInputFormat(const std::string &format) {
  SetInputFormat(StringToChar(format));
}
std::string AscendDeviceInfo::GetInputFormat() const { return CharToString(GetInputFormatChar()); }
void AscendDeviceInfo::SetInputShape(const std::string &shape) {
  SetInputShape(StringToChar(shape));
}
std::string AscendDeviceInfo::GetInputShape() const { return CharToString(GetInputShapeChar()); }
std::string AscendDeviceInfo::GetDynamicBatchSize() const {
  return CharToString(GetDynamicBatchSizeChar());
}
void AscendDeviceInfo::SetDynamicImageSize(const std::string &dynamic_image_size) {
  SetDynamicImageSize(StringToChar(dynamic_image_size));
}
std::string AscendDeviceInfo::GetDynamicImageSize() const {
  return CharToString(GetDynamicImageSizeChar());
}
void AscendDeviceInfo::SetPrecisionMode(const std::string &precision_mode) {
  SetPrecisionMode(StringToChar(precision_mode));
}
std::string AscendDeviceInfo::GetPrecisionMode() const {
  return CharToString(GetPrecisionModeChar());
}
void AscendDeviceInfo::SetOpSelectImplMode(const std::string &op_select_impl_mode) {
  SetOpSelectImplMode(StringToChar(op_select_impl_mode));
}
std::string AscendDeviceInfo::GetOpSelectImplMode() const {
  return CharToString(GetOpSelectImplModeChar());
}
void AscendDeviceInfo::SetFusionSwitchConfigPath(const std::string &cfg_path) {
  SetFusionSwitchConfigPath(StringToChar(cfg_path));
}
std::string AscendDeviceInfo::GetFusionSwitchConfigPath() const {
  return CharToString(GetFusionSwitchConfigPathChar());
}
void AscendDeviceInfo::SetBufferOptimizeMode(const std::string &buffer_optimize_mode) {
  SetBufferOptimizeMode(StringToChar(buffer_optimize_mode));
}
std::string AscendDeviceInfo::GetBufferOptimizeMode() const {
  return CharToString(GetBufferOptimizeModeChar());
}
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_CONTEXT_H
