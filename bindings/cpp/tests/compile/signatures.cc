// Every public function with its exact type; it compiles when they are right.
#include <type_traits>

#include "include/api/allocator.h"
#include "include/api/delegate.h"
#include "include/api/model_group.h"
#include "include/api/model_parallel_runner.h"

using namespace mindspore;  // NOLINT: some hundred names
using std::map;
using std::pair;
using std::shared_ptr;
using std::string;
using std::vector;

// A cast to a pointer to a function chooses the overload of this very type, or fails.
template <class Class, class Function>
using In = Function Class::*;
#define MEMBER(Class, name, ...) \
  static_assert(sizeof(static_cast<In<Class, __VA_ARGS__>>(&Class::name)) > 0, #name)
template <class Function>
using Free = Function *;
#define STATIC(name, ...) static_assert(sizeof(static_cast<Free<__VA_ARGS__>>(&name)) > 0, #name)
#define MADE_FROM(Class, ...) \
  static_assert(std::is_constructible<Class, __VA_ARGS__>::value, #Class)

using Tensors = vector<MSTensor>;
using Shape = vector<int64_t>;
using ContextPtr = shared_ptr<Context>;
using ConfigPtr = shared_ptr<RunnerConfig>;
using Call = MSKernelCallBack;

// Status
MADE_FROM(Status, enum StatusCode, const string &);
MADE_FROM(Status, enum StatusCode, int, const char *, const string &);
MADE_FROM(Status, enum StatusCode, int, const char *);
static_assert(std::is_convertible<enum StatusCode, Status>::value, "a code is a Status");
static_assert(!std::is_convertible<Status, bool>::value, "explicit");
static_assert(!std::is_convertible<Status, int>::value, "explicit");
static_assert(std::is_constructible<bool, Status>::value, "explicit");
static_assert(std::is_constructible<int, Status>::value, "explicit");
MEMBER(Status, StatusCode, enum StatusCode() const);
MEMBER(Status, ToString, string() const);
MEMBER(Status, GetLineOfCode, int() const);
MEMBER(Status, GetFileName, string() const);
MEMBER(Status, GetErrDescription, string() const);
MEMBER(Status, SetErrDescription, string(const string &));
MEMBER(Status, SetStatusMsg, void(const string &));
MEMBER(Status, operator==, bool(const Status &) const);
MEMBER(Status, operator==, bool(enum StatusCode) const);
MEMBER(Status, operator!=, bool(const Status &) const);
MEMBER(Status, operator!=, bool(enum StatusCode) const);
MEMBER(Status, IsOk, bool() const);
MEMBER(Status, IsError, bool() const);
STATIC(Status::OK, Status());
STATIC(Status::CodeAsString, string(enum StatusCode));

// MSTensor
MADE_FROM(MSTensor, std::nullptr_t);
MADE_FROM(MSTensor, const shared_ptr<MSTensor::Impl> &);
MADE_FROM(MSTensor, const string &, enum DataType, const Shape &, const void *, size_t);
STATIC(MSTensor::CreateTensor, MSTensor *(const string &, enum DataType, const Shape &,
                                          const void *, size_t, const string &, int));
STATIC(MSTensor::CreateTensor, MSTensor *(const string &, const MSTensor &, const string &, int));
STATIC(MSTensor::CreateRefTensor,
       MSTensor *(const string &, enum DataType, const Shape &, const void *, size_t, bool));
STATIC(MSTensor::CreateDeviceTensor,
       MSTensor(const string &, enum DataType, const Shape &, void *, size_t));
STATIC(MSTensor::CreateTensorFromFile, MSTensor *(const string &, enum DataType, const Shape &));
STATIC(MSTensor::StringsToTensor, MSTensor *(const string &, const vector<string> &));
STATIC(MSTensor::TensorToStrings, vector<string>(const MSTensor &));
STATIC(MSTensor::DestroyTensorPtr, void(MSTensor *));
static_assert(noexcept(MSTensor::DestroyTensorPtr(nullptr)), "noexcept");
MEMBER(MSTensor, Name, string() const);
MEMBER(MSTensor, DataType, enum DataType() const);
MEMBER(MSTensor, Shape, const vector<int64_t> &() const);
MEMBER(MSTensor, ElementNum, int64_t() const);
MEMBER(MSTensor, DataSize, size_t() const);
MEMBER(MSTensor, Data, shared_ptr<const void>() const);
MEMBER(MSTensor, MutableData, void *());
MEMBER(MSTensor, SetData, void(void *, bool));
MEMBER(MSTensor, SetDeviceData, void(void *));
MEMBER(MSTensor, GetDeviceData, void *());
MEMBER(MSTensor, IsDevice, bool() const);
MEMBER(MSTensor, GetDeviceId, int() const);
MEMBER(MSTensor, GetDevice, string() const);
MEMBER(MSTensor, IsConst, bool() const);
MEMBER(MSTensor, SetShape, void(const vector<int64_t> &));
MEMBER(MSTensor, SetDataType, void(enum DataType));
MEMBER(MSTensor, SetTensorName, void(const string &));
MEMBER(MSTensor, SetFormat, void(Format));
MEMBER(MSTensor, format, Format() const);
MEMBER(MSTensor, SetAllocator, void(shared_ptr<Allocator>));
MEMBER(MSTensor, allocator, shared_ptr<Allocator>() const);
MEMBER(MSTensor, SetQuantParams, void(vector<QuantParam>));
MEMBER(MSTensor, QuantParams, vector<QuantParam>() const);
MEMBER(MSTensor, Clone, MSTensor *() const);
MEMBER(MSTensor, operator==, bool(std::nullptr_t) const);
MEMBER(MSTensor, operator!=, bool(std::nullptr_t) const);
MEMBER(MSTensor, operator==, bool(const MSTensor &) const);
MEMBER(MSTensor, operator!=, bool(const MSTensor &) const);
MEMBER(MSTensor, impl, const shared_ptr<MSTensor::Impl>() const);

// Buffer, Key and the rest of types.h
MADE_FROM(Buffer, const void *, size_t);
MEMBER(Buffer, Data, const void *() const);
MEMBER(Buffer, MutableData, void *());
MEMBER(Buffer, DataSize, size_t() const);
MEMBER(Buffer, ResizeData, bool(size_t));
MEMBER(Buffer, SetData, bool(const void *, size_t));
MEMBER(Buffer, Clone, Buffer() const);
MADE_FROM(Key, const char *, size_t);
static_assert(sizeof(Key().key) == 32, "Key::key");
STATIC(Version, string());
static_assert(std::is_same<Call, std::function<bool(const Tensors &, const Tensors &,
                                                    const MSCallBackParam &)>>::value,
              "MSKernelCallBack");

// Context
MEMBER(Context, SetThreadNum, void(int32_t));
MEMBER(Context, GetThreadNum, int32_t() const);
MEMBER(Context, SetInterOpParallelNum, void(int32_t));
MEMBER(Context, GetInterOpParallelNum, int32_t() const);
MEMBER(Context, SetThreadAffinity, void(int));
MEMBER(Context, SetThreadAffinity, void(const vector<int> &));
MEMBER(Context, GetThreadAffinityMode, int() const);
MEMBER(Context, GetThreadAffinityCoreList, vector<int32_t>() const);
MEMBER(Context, SetGroupInfoFile, void(string));
MEMBER(Context, GetGroupInfoFile, string() const);
MEMBER(Context, MutableDeviceInfo, vector<shared_ptr<DeviceInfoContext>> &());
MEMBER(Context, SetEnableParallel, void(bool));
MEMBER(Context, GetEnableParallel, bool() const);
MEMBER(Context, SetBuiltInDelegate, void(DelegateMode));
MEMBER(Context, GetBuiltInDelegate, DelegateMode() const);
MEMBER(Context, set_delegate, void(const shared_ptr<AbstractDelegate> &));
MEMBER(Context, get_delegate, shared_ptr<AbstractDelegate>() const);
MEMBER(Context, SetDelegate, void(const shared_ptr<Delegate> &));
MEMBER(Context, GetDelegate, shared_ptr<Delegate>() const);
MEMBER(Context, SetMultiModalHW, void(bool));
MEMBER(Context, GetMultiModalHW, bool() const);

// Device infos
static_assert(std::is_abstract<DeviceInfoContext>::value, "DeviceInfoContext");
MEMBER(DeviceInfoContext, GetDeviceType, enum DeviceType() const);
MEMBER(DeviceInfoContext, Cast<CPUDeviceInfo>, shared_ptr<CPUDeviceInfo>());
MEMBER(DeviceInfoContext, SetProvider, void(const string &));
MEMBER(DeviceInfoContext, GetProvider, string() const);
MEMBER(DeviceInfoContext, SetProviderDevice, void(const string &));
MEMBER(DeviceInfoContext, GetProviderDevice, string() const);
MEMBER(DeviceInfoContext, SetAllocator, void(const shared_ptr<Allocator> &));
MEMBER(DeviceInfoContext, GetAllocator, shared_ptr<Allocator>() const);
static_assert(std::is_default_constructible<AutoDeviceInfo>::value, "AutoDeviceInfo");
MEMBER(CPUDeviceInfo, SetEnableFP16, void(bool));
MEMBER(CPUDeviceInfo, GetEnableFP16, bool() const);
MEMBER(KirinNPUDeviceInfo, SetEnableFP16, void(bool));
MEMBER(KirinNPUDeviceInfo, GetEnableFP16, bool() const);
MEMBER(KirinNPUDeviceInfo, SetFrequency, void(int));
MEMBER(KirinNPUDeviceInfo, GetFrequency, int() const);
MEMBER(GPUDeviceInfo, SetDeviceID, void(uint32_t));
MEMBER(GPUDeviceInfo, GetDeviceID, uint32_t() const);
MEMBER(GPUDeviceInfo, GetRankID, int() const);
MEMBER(GPUDeviceInfo, GetGroupSize, int() const);
MEMBER(GPUDeviceInfo, SetPrecisionMode, void(const string &));
MEMBER(GPUDeviceInfo, GetPrecisionMode, string() const);
MEMBER(GPUDeviceInfo, SetEnableFP16, void(bool));
MEMBER(GPUDeviceInfo, GetEnableFP16, bool() const);
MEMBER(GPUDeviceInfo, SetEnableGLTexture, void(bool));
MEMBER(GPUDeviceInfo, GetEnableGLTexture, bool() const);
MEMBER(GPUDeviceInfo, SetGLContext, void(void *));
MEMBER(GPUDeviceInfo, GetGLContext, void *() const);
MEMBER(GPUDeviceInfo, SetGLDisplay, void(void *));
MEMBER(GPUDeviceInfo, GetGLDisplay, void *() const);
static_assert(std::is_same<Ascend310DeviceInfo, AscendDeviceInfo>::value, "alias");
static_assert(std::is_same<Ascend910DeviceInfo, AscendDeviceInfo>::value, "alias");
MEMBER(AscendDeviceInfo, SetDeviceID, void(uint32_t));
MEMBER(AscendDeviceInfo, GetDeviceID, uint32_t() const);
MEMBER(AscendDeviceInfo, SetRankID, void(uint32_t));
MEMBER(AscendDeviceInfo, GetRankID, uint32_t() const);
MEMBER(AscendDeviceInfo, SetInsertOpConfigPath, void(const string &));
MEMBER(AscendDeviceInfo, GetInsertOpConfigPath, string() const);
MEMBER(AscendDeviceInfo, SetInputFormat, void(const string &));
MEMBER(AscendDeviceInfo, GetInputFormat, string() const);
MEMBER(AscendDeviceInfo, SetInputShape, void(const string &));
MEMBER(AscendDeviceInfo, GetInputShape, string() const);
MEMBER(AscendDeviceInfo, SetInputShapeMap, void(const map<int, vector<int>> &));
MEMBER(AscendDeviceInfo, GetInputShapeMap, map<int, vector<int>>() const);
MEMBER(AscendDeviceInfo, SetDynamicBatchSize, void(const vector<size_t> &));
MEMBER(AscendDeviceInfo, GetDynamicBatchSize, string() const);
MEMBER(AscendDeviceInfo, SetDynamicImageSize, void(const string &));
MEMBER(AscendDeviceInfo, GetDynamicImageSize, string() const);
MEMBER(AscendDeviceInfo, SetOutputType, void(enum DataType));
MEMBER(AscendDeviceInfo, GetOutputType, enum DataType() const);
MEMBER(AscendDeviceInfo, SetPrecisionMode, void(const string &));
MEMBER(AscendDeviceInfo, GetPrecisionMode, string() const);
MEMBER(AscendDeviceInfo, SetOpSelectImplMode, void(const string &));
MEMBER(AscendDeviceInfo, GetOpSelectImplMode, string() const);
MEMBER(AscendDeviceInfo, SetFusionSwitchConfigPath, void(const string &));
MEMBER(AscendDeviceInfo, GetFusionSwitchConfigPath, string() const);
MEMBER(AscendDeviceInfo, SetBufferOptimizeMode, void(const string &));
MEMBER(AscendDeviceInfo, GetBufferOptimizeMode, string() const);

// Allocator
static_assert(std::is_abstract<Allocator>::value, "Allocator");
MEMBER(Allocator, Malloc, void *(size_t));
MEMBER(Allocator, Malloc, void *(size_t, size_t, enum DataType));
MEMBER(Allocator, Free, void(void *));
MEMBER(Allocator, RefCount, int(void *));
MEMBER(Allocator, SetRefCount, int(void *, int));
MEMBER(Allocator, DecRefCount, int(void *, int));
MEMBER(Allocator, IncRefCount, int(void *, int));
MEMBER(Allocator, Prepare, void *(void *));
STATIC(Allocator::Create, shared_ptr<Allocator>());

// Model
static_assert(std::is_copy_constructible<Model>::value, "a handle");
MEMBER(Model, Build, Status(const void *, size_t, ModelType, const ContextPtr &));
MEMBER(Model, Build, Status(const string &, ModelType, const ContextPtr &));
MEMBER(Model, Build,
       Status(const void *, size_t, ModelType, const ContextPtr &, const Key &, const string &,
              const string &));
MEMBER(Model, Build,
       Status(const string &, ModelType, const ContextPtr &, const Key &, const string &,
              const string &));
MEMBER(Model, Build, Status(GraphCell, const ContextPtr &, const shared_ptr<TrainCfg> &));
MEMBER(Model, Resize, Status(const Tensors &, const vector<Shape> &));
MEMBER(Model, Predict, Status(const Tensors &, Tensors *, const Call &, const Call &));
MEMBER(Model, Predict, Status(const Call &, const Call &));
MEMBER(Model, RunStep, Status(const Call &, const Call &));
MEMBER(Model, GetInputs, Tensors());
MEMBER(Model, GetOutputs, Tensors());
MEMBER(Model, GetInputByTensorName, MSTensor(const string &));
MEMBER(Model, GetOutputByTensorName, MSTensor(const string &));
MEMBER(Model, GetOutputTensorNames, vector<string>());
MEMBER(Model, GetOutputsByNodeName, Tensors(const string &));
MEMBER(Model, LoadConfig, Status(const string &));
MEMBER(Model, UpdateConfig, Status(const string &, const pair<string, string> &));
MEMBER(Model, GetModelInfo, string(const string &));
STATIC(Model::CheckModelSupport, bool(enum DeviceType, ModelType));
MEMBER(Model, UpdateWeights, Status(const vector<Tensors> &));
MEMBER(Model, UpdateWeights, Status(const Tensors &));
MEMBER(Model, Finalize, Status());
MEMBER(Model, HasPreprocess, bool());
MEMBER(Model, Preprocess, Status(const vector<Tensors> &, Tensors *));
MEMBER(Model, PredictWithPreprocess,
       Status(const vector<Tensors> &, Tensors *, const Call &, const Call &));
MEMBER(Model, BindGLTexture2DMemory,
       Status(const map<string, unsigned int> &, map<string, unsigned int> *));
MEMBER(Model, GetGradients, Tensors() const);
MEMBER(Model, ApplyGradients, Status(const Tensors &));
MEMBER(Model, GetFeatureMaps, Tensors() const);
MEMBER(Model, GetTrainableParams, Tensors() const);
MEMBER(Model, UpdateFeatureMaps, Status(const Tensors &));
MEMBER(Model, GetOptimizerParams, Tensors() const);
MEMBER(Model, SetOptimizerParams, Status(const Tensors &));
MEMBER(Model, SetupVirtualBatch, Status(int, float, float));
MEMBER(Model, SetLearningRate, Status(float));
MEMBER(Model, GetLearningRate, float());
MEMBER(Model, InitMetrics, Status(vector<Metrics *>));
MEMBER(Model, GetMetrics, vector<Metrics *>());
MEMBER(Model, SetTrainMode, Status(bool));
MEMBER(Model, GetTrainMode, bool() const);
MEMBER(Model, impl, const shared_ptr<ModelImpl>() const);

// RunnerConfig and ModelParallelRunner
MEMBER(RunnerConfig, SetWorkersNum, void(int32_t));
MEMBER(RunnerConfig, GetWorkersNum, int32_t() const);
MEMBER(RunnerConfig, SetContext, void(const ContextPtr &));
MEMBER(RunnerConfig, GetContext, ContextPtr() const);
MEMBER(RunnerConfig, SetConfigInfo, void(const string &, const map<string, string> &));
MEMBER(RunnerConfig, GetConfigInfo, map<string, map<string, string>>() const);
MEMBER(RunnerConfig, SetConfigPath, void(const string &));
MEMBER(RunnerConfig, GetConfigPath, string() const);
MEMBER(RunnerConfig, SetDeviceIds, void(const vector<uint32_t> &));
MEMBER(RunnerConfig, GetDeviceIds, vector<uint32_t>() const);
MEMBER(ModelParallelRunner, Init, Status(const string &, const ConfigPtr &));
MEMBER(ModelParallelRunner, Init, Status(const void *, const size_t, const ConfigPtr &));
MEMBER(ModelParallelRunner, GetInputs, Tensors());
MEMBER(ModelParallelRunner, GetOutputs, Tensors());
MEMBER(ModelParallelRunner, Predict,
       Status(const Tensors &, Tensors *, const Call &, const Call &));

// ModelGroup
static_assert(!std::is_convertible<ModelGroupFlag, ModelGroup>::value, "explicit");
MADE_FROM(ModelGroup, ModelGroupFlag);
static_assert(std::is_default_constructible<ModelGroup>::value, "ModelGroup");
MEMBER(ModelGroup, AddModel, Status(const vector<string> &));
MEMBER(ModelGroup, AddModel, Status(const vector<pair<const void *, size_t>> &));
MEMBER(ModelGroup, AddModel, Status(const vector<Model> &));
MEMBER(ModelGroup, CalMaxSizeOfWorkspace, Status(ModelType, const ContextPtr &));

// dual_abi_helper.h
STATIC(StringToChar, VecChar(const string &));
STATIC(CharToString, string(const VecChar &));
STATIC(PairStringToChar, pair<VecChar, int32_t>(const pair<string, int32_t> &));
STATIC(PairCharToString, pair<string, int32_t>(const pair<VecChar, int32_t> &));
STATIC(VectorStringToChar, vector<VecChar>(const vector<string> &));
STATIC(VectorCharToString, vector<string>(const vector<VecChar> &));
STATIC(SetStringToChar, std::set<VecChar>(const std::set<string> &));
STATIC(SetCharToString, std::set<string>(const std::set<VecChar> &));
STATIC(MapStringToChar<int32_t>, map<VecChar, int32_t>(const map<string, int32_t> &));
STATIC(MapCharToString<int32_t>, map<string, int32_t>(const map<VecChar, int32_t> &));
STATIC(UnorderedMapStringToChar, map<VecChar, VecChar>(const std::unordered_map<string, string> &));
STATIC(UnorderedMapCharToString, std::unordered_map<string, string>(const map<VecChar, VecChar> &));
STATIC(MapStringToVectorChar, map<VecChar, VecChar>(const map<string, string> &));
STATIC(MapVectorCharToString, map<string, string>(const map<VecChar, VecChar> &));
STATIC(ClassIndexStringToChar,
       vector<pair<VecChar, vector<int32_t>>>(const vector<pair<string, vector<int32_t>>> &));
STATIC(ClassIndexCharToString,
       vector<pair<string, vector<int32_t>>>(const vector<pair<VecChar, vector<int32_t>>> &));
STATIC(PairStringInt64ToPairCharInt64,
       vector<pair<VecChar, int64_t>>(const vector<pair<string, int64_t>> &));
STATIC(TensorMapCharToString<MSTensor>,
       void(const map<VecChar, MSTensor> *, std::unordered_map<string, MSTensor> *));
STATIC(MapMapCharToString,
       map<string, map<string, string>>(const map<VecChar, map<VecChar, VecChar>> &));
STATIC(MapMapStringToChar,
       map<VecChar, map<VecChar, VecChar>>(const map<string, map<string, string>> &));
