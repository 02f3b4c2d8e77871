#include <cstdlib>
#include <initializer_list>

#include "include/api/context.h"
#include "src/log.h"

namespace mindspore {
// Of all kinds of devices: each uses what it has functions for.
struct DeviceInfoContext::Data {
  std::vector<char> provider;
  std::vector<char> provider_device;
  std::shared_ptr<Allocator> allocator;
  bool is_fp16 = false;
  int frequency = 3;
  uint32_t device_id = 0;
  uint32_t rank_id = 0;
  std::vector<char> precision_mode;
  std::vector<char> insert_op_config_path;
  std::vector<char> input_format;
  std::vector<char> input_shape;
  std::map<int, std::vector<int>> input_shape_map;
  std::vector<size_t> dynamic_batch_size;
  std::vector<char> dynamic_image_size;
  enum DataType output_type = DataType::kTypeUnknown;
  std::vector<char> op_select_impl_mode;
  std::vector<char> fusion_switch_config_path;
  std::vector<char> buffer_optimize_mode;
};

namespace {
const char kFP32[] = "enforce_fp32";
const char kFP16[] = "preferred_fp16";

// What a launcher of MPI told this process, by the first of these variables that is a number.
int FromLauncher(std::initializer_list<const char *> variables, int otherwise) {
  for (const char *variable : variables) {
    const char *text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    char *end = nullptr;
    const long number = std::strtol(text, &end, 10);
    if (*end == '\0' && number >= 0 && number <= INT32_MAX) return static_cast<int>(number);
  }
  return otherwise;
}

void NoTextures(const char *function) {
  mslite::LogError(std::string("GPUDeviceInfo::") + function + " is not supported; nothing is set");
}
}  // namespace

DeviceInfoContext::DeviceInfoContext() : data_(std::make_shared<Data>()) {}
DeviceInfoContext::~DeviceInfoContext() = default;

void DeviceInfoContext::SetProvider(const std::vector<char> &provider) {
  data_->provider = provider;
}
std::vector<char> DeviceInfoContext::GetProviderChar() const { return data_->provider; }
void DeviceInfoContext::SetProviderDevice(const std::vector<char> &device) {
  data_->provider_device = device;
}
std::vector<char> DeviceInfoContext::GetProviderDeviceChar() const {
  return data_->provider_device;
}
void DeviceInfoContext::SetAllocator(const std::shared_ptr<Allocator> &allocator) {
  data_->allocator = allocator;
}
std::shared_ptr<Allocator> DeviceInfoContext::GetAllocator() const { return data_->allocator; }

void CPUDeviceInfo::SetEnableFP16(bool is_fp16) { data_->is_fp16 = is_fp16; }
bool CPUDeviceInfo::GetEnableFP16() const { return data_->is_fp16; }

void KirinNPUDeviceInfo::SetEnableFP16(bool is_fp16) { data_->is_fp16 = is_fp16; }
bool KirinNPUDeviceInfo::GetEnableFP16() const { return data_->is_fp16; }
void KirinNPUDeviceInfo::SetFrequency(int frequency) { data_->frequency = frequency; }
int KirinNPUDeviceInfo::GetFrequency() const { return data_->frequency; }

void GPUDeviceInfo::SetDeviceID(uint32_t device_id) { data_->device_id = device_id; }
uint32_t GPUDeviceInfo::GetDeviceID() const { return data_->device_id; }
int GPUDeviceInfo::GetRankID() const {
  return FromLauncher({"OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0);
}
int GPUDeviceInfo::GetGroupSize() const {
  return FromLauncher({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1);
}

void GPUDeviceInfo::SetPrecisionMode(const std::vector<char> &precision_mode) {
  const std::string mode = CharToString(precision_mode);
  if (mode != kFP32 && mode != kFP16) {
    mslite::LogError("GPUDeviceInfo::SetPrecisionMode: got '" + mode +
                     "', wanted 'enforce_fp32' or 'preferred_fp16'; nothing is set");
    return;
  }
  data_->precision_mode = precision_mode;
}
std::vector<char> GPUDeviceInfo::GetPrecisionModeChar() const { return data_->precision_mode; }
void GPUDeviceInfo::SetEnableFP16(bool is_fp16) {
  data_->precision_mode = StringToChar(is_fp16 ? kFP16 : kFP32);
}
bool GPUDeviceInfo::GetEnableFP16() const { return CharToString(data_->precision_mode) == kFP16; }

void GPUDeviceInfo::SetEnableGLTexture(bool) { NoTextures("SetEnableGLTexture"); }
bool GPUDeviceInfo::GetEnableGLTexture() const { return false; }
void GPUDeviceInfo::SetGLContext(void *) { NoTextures("SetGLContext"); }
void *GPUDeviceInfo::GetGLContext() const { return nullptr; }
void GPUDeviceInfo::SetGLDisplay(void *) { NoTextures("SetGLDisplay"); }
void *GPUDeviceInfo::GetGLDisplay() const { return nullptr; }

void AscendDeviceInfo::SetDeviceID(uint32_t device_id) { data_->device_id = device_id; }
uint32_t AscendDeviceInfo::GetDeviceID() const { return data_->device_id; }
void AscendDeviceInfo::SetRankID(uint32_t rank_id) { data_->rank_id = rank_id; }
uint32_t AscendDeviceInfo::GetRankID() const { return data_->rank_id; }

void AscendDeviceInfo::SetInsertOpConfigPath(const std::vector<char> &cfg_path) {
  data_->insert_op_config_path = cfg_path;
}
std::vector<char> AscendDeviceInfo::GetInsertOpConfigPathChar() const {
  return data_->insert_op_config_path;
}
void AscendDeviceInfo::SetInputFormat(const std::vector<char> &format) {
  data_->input_format = format;
}
std::vector<char> AscendDeviceInfo::GetInputFormatChar() const { return data_->input_format; }
void AscendDeviceInfo::SetInputShape(const std::vector<char> &shape) { data_->input_shape = shape; }
std::vector<char> AscendDeviceInfo::GetInputShapeChar() const { return data_->input_shape; }
void AscendDeviceInfo::SetInputShapeMap(const std::map<int, std::vector<int>> &shape) {
  data_->input_shape_map = shape;
}
std::map<int, std::vector<int>> AscendDeviceInfo::GetInputShapeMap() const {
  return data_->input_shape_map;
}

void AscendDeviceInfo::SetDynamicBatchSize(const std::vector<size_t> &dynamic_batch_size) {
  data_->dynamic_batch_size = dynamic_batch_size;
}
std::vector<char> AscendDeviceInfo::GetDynamicBatchSizeChar() const {
  std::string joined;
  for (const size_t size : data_->dynamic_batch_size) {
    joined += (joined.empty() ? "" : ",") + std::to_string(size);
  }
  return StringToChar(joined);
}
void AscendDeviceInfo::SetDynamicImageSize(const std::vector<char> &dynamic_image_size) {
  data_->dynamic_image_size = dynamic_image_size;
}
std::vector<char> AscendDeviceInfo::GetDynamicImageSizeChar() const {
  return data_->dynamic_image_size;
}

void AscendDeviceInfo::SetOutputType(enum DataType output_type) {
  data_->output_type = output_type;
}
enum DataType AscendDeviceInfo::GetOutputType() const { return data_->output_type; }
void AscendDeviceInfo::SetPrecisionMode(const std::vector<char> &precision_mode) {
  data_->precision_mode = precision_mode;
}
std::vector<char> AscendDeviceInfo::GetPrecisionModeChar() const { return data_->precision_mode; }
void AscendDeviceInfo::SetOpSelectImplMode(const std::vector<char> &op_select_impl_mode) {
  data_->op_select_impl_mode = op_select_impl_mode;
}
std::vector<char> AscendDeviceInfo::GetOpSelectImplModeChar() const {
  return data_->op_select_impl_mode;
}
void AscendDeviceInfo::SetFusionSwitchConfigPath(const std::vector<char> &cfg_path) {
  data_->fusion_switch_config_path = cfg_path;
}
std::vector<char> AscendDeviceInfo::GetFusionSwitchConfigPathChar() const {
  return data_->fusion_switch_config_path;
}
void AscendDeviceInfo::SetBufferOptimizeMode(const std::vector<char> &buffer_optimize_mode) {
  data_->buffer_optimize_mode = buffer_optimize_mode;
}
std::vector<char> AscendDeviceInfo::GetBufferOptimizeModeChar() const {
  return data_->buffer_optimize_mode;
}
}  // namespace mindspore
