// The numbers behind the names, which programs store and send; it compiles when they are right.
#include <climits>
#include <cstdint>
#include <type_traits>

#include "include/api/model_group.h"
#include "include/api/model_parallel_runner.h"

using namespace mindspore;  // NOLINT: some hundred names

// As 32 bits, so that codes above INT_MAX are equal to the negative numbers that they stand for.
#define IS(name, number) \
  static_assert(static_cast<uint32_t>(name) == static_cast<uint32_t>(number), #name)
#define HAS_TYPE(name, number) \
  static_assert(std::is_same<std::underlying_type<name>::type, number>::value, #name)

HAS_TYPE(Format, int64_t);
HAS_TYPE(ModelType, uint32_t);
HAS_TYPE(QuantizationType, uint32_t);
HAS_TYPE(OptimizationLevel, uint32_t);
HAS_TYPE(CompCode, uint32_t);
HAS_TYPE(StatusCode, uint32_t);
HAS_TYPE(DataType, int);
HAS_TYPE(ModelGroupFlag, int);

// Format
IS(DEFAULT_FORMAT, -1);
IS(NCHW, 0);
IS(NHWC, 1);
IS(NHWC4, 2);
IS(HWKC, 3);
IS(HWCK, 4);
IS(KCHW, 5);
IS(CKHW, 6);
IS(KHWC, 7);
IS(CHWK, 8);
IS(HW, 9);
IS(HW4, 10);
IS(NC, 11);
IS(NC4, 12);
IS(NC4HW4, 13);
IS(NCDHW, 14);
IS(NWC, 15);
IS(NCW, 16);
IS(NDHWC, 17);
IS(NC8HW8, 18);
IS(FRACTAL_NZ, 19);
IS(ND, 20);
IS(NC1HWC0, 21);
IS(FRACTAL_Z, 22);
IS(NC1C0HWPAD, 23);
IS(NHWC1C0, 24);
IS(FSR_NCHW, 25);
IS(FRACTAL_DECONV, 26);
IS(C1HWNC0, 27);
IS(FRACTAL_DECONV_TRANSPOSE, 28);
IS(FRACTAL_DECONV_SP_STRIDE_TRANS, 29);
IS(NC1HWC0_C04, 30);
IS(FRACTAL_Z_C04, 31);
IS(CHWN, 32);
IS(FRACTAL_DECONV_SP_STRIDE8_TRANS, 33);
IS(HWCN, 34);
IS(NC1KHKWHWC0, 35);
IS(BN_WEIGHT, 36);
IS(FILTER_HWCK, 37);
IS(LOOKUP_LOOKUPS, 38);
IS(LOOKUP_KEYS, 39);
IS(LOOKUP_VALUE, 40);
IS(LOOKUP_OUTPUT, 41);
IS(LOOKUP_HITS, 42);
IS(C1HWNCoC0, 43);
IS(MD, 44);
IS(FRACTAL_ZZ, 45);
IS(DHWCN, 46);
IS(NDC1HWC0, 47);
IS(FRACTAL_Z_3D, 48);
IS(CN, 49);
IS(DHWNC, 50);
IS(FRACTAL_Z_3D_TRANSPOSE, 51);
IS(FRACTAL_ZN_LSTM, 52);
IS(FRACTAL_Z_G, 53);
IS(ND_RNN_BIAS, 54);
IS(FRACTAL_ZN_RNN, 55);
IS(NYUV, 56);
IS(NYUV_A, 57);
IS(NCL, 58);
IS(NUM_OF_FORMAT, 59);

// DeviceType
IS(kCPU, 0);
IS(kGPU, 1);
IS(kKirinNPU, 2);
IS(kAscend, 3);
IS(kAscend910, 4);
IS(kAscend310, 5);
IS(kCustomDevice, 6);
IS(kAllDevice, 7);
IS(kInvalidDeviceType, 100);

// DelegateMode
IS(kNoDelegate, 0);
IS(kCoreML, 1);
IS(kNNAPI, 2);

// ModelType
IS(kMindIR, 0);
IS(kAIR, 1);
IS(kOM, 2);
IS(kONNX, 3);
IS(kMindIR_Lite, 4);
IS(kDataFlow, 5);
IS(kUnknownType, 0xFFFFFFFF);

// QuantizationType
IS(kNoQuant, 0);
IS(kWeightQuant, 1);
IS(kFullQuant, 2);
IS(kUnknownQuantType, 0xFFFFFFFF);

// OptimizationLevel
IS(kO0, 0);
IS(kO2, 2);
IS(kO3, 3);
IS(kAuto, 4);
IS(kOptimizationType, 0xFFFFFFFF);

// CompCode
IS(kCore, 0x00000000);
IS(kMD, 0x10000000);
IS(kME, 0x20000000);
IS(kMC, 0x30000000);
IS(kLite, 0xF0000000);

// ModelGroupFlag
IS(ModelGroupFlag::kUnknown, 0);
IS(ModelGroupFlag::kShareWeight, 1);
IS(ModelGroupFlag::kShareWorkspace, 2);
IS(ModelGroupFlag::kShareWeightAndWorkspace, 3);

// DataType
IS(DataType::kTypeUnknown, 0);
IS(DataType::kObjectTypeString, 12);
IS(DataType::kObjectTypeList, 13);
IS(DataType::kObjectTypeTuple, 14);
IS(DataType::kObjectTypeTensorType, 17);
IS(DataType::kNumberTypeBegin, 29);
IS(DataType::kNumberTypeBool, 30);
IS(DataType::kNumberTypeInt8, 32);
IS(DataType::kNumberTypeInt16, 33);
IS(DataType::kNumberTypeInt32, 34);
IS(DataType::kNumberTypeInt64, 35);
IS(DataType::kNumberTypeUInt8, 37);
IS(DataType::kNumberTypeUInt16, 38);
IS(DataType::kNumberTypeUInt32, 39);
IS(DataType::kNumberTypeUInt64, 40);
IS(DataType::kNumberTypeFloat16, 42);
IS(DataType::kNumberTypeFloat32, 43);
IS(DataType::kNumberTypeFloat64, 44);
IS(DataType::kNumberTypeBFloat16, 45);
IS(DataType::kNumberTypeEnd, 52);
IS(DataType::kInvalidType, INT32_MAX);

// StatusCode
IS(kSuccess, 0);
IS(kCoreFailed, 1);
IS(kLiteError, -1);
IS(kLiteNullptr, -2);
IS(kLiteParamInvalid, -3);
IS(kLiteNoChange, -4);
IS(kLiteSuccessExit, -5);
IS(kLiteMemoryFailed, -6);
IS(kLiteNotSupport, -7);
IS(kLiteThreadPoolError, -8);
IS(kLiteUninitializedObj, -9);
IS(kLiteFileError, -10);
IS(kLiteServiceDeny, -11);
IS(kLiteModelRebuild, -12);
IS(kLiteOutOfTensorRange, -100);
IS(kLiteInputTensorError, -101);
IS(kLiteReentrantError, -102);
IS(kLiteGraphFileError, -200);
IS(kLiteNotFindOp, -300);
IS(kLiteInvalidOpName, -301);
IS(kLiteInvalidOpAttr, -302);
IS(kLiteOpExecuteFailure, -303);
IS(kLiteFormatError, -400);
IS(kLiteInferError, -500);
IS(kLiteInferInvalid, -501);
IS(kLiteInputParamInvalid, -600);
IS(kLiteLLMWaitProcessTimeOut, -103);
IS(kLiteLLMKVCacheNotExist, -104);
IS(kLiteLLMRepeatRequest, -105);
IS(kLiteLLMRequestAlreadyCompleted, -106);
IS(kLiteLLMEngineFinalized, -107);
IS(kLiteLLMNotYetLink, -108);
IS(kLiteLLMAlreadyLink, -109);
IS(kLiteLLMLinkFailed, -110);
IS(kLiteLLMUnlinkFailed, -111);
IS(kLiteLLMNofiryPromptUnlinkFailed, -112);
IS(kLiteLLMClusterNumExceedLimit, -113);
IS(kLiteLLMProcessingLink, -114);
IS(kLiteLLMOutOfMemory, -115);
IS(kLiteLLMPrefixAlreadyExist, -116);
IS(kLiteLLMPrefixNotExist, -117);
IS(kLiteLLMSeqLenOverLimit, -118);
IS(kLiteLLMNoFreeBlock, -119);
IS(kLiteLLMBlockOutOfMemory, -120);
IS(kMDOutOfMemory, 0x10000000 + 1);
IS(kMDShapeMisMatch, 0x10000000 + 2);
IS(kMDInterrupted, 0x10000000 + 3);
IS(kMDNoSpace, 0x10000000 + 4);
IS(kMDPyFuncException, 0x10000000 + 5);
IS(kMDDuplicateKey, 0x10000000 + 6);
IS(kMDPythonInterpreterFailure, 0x10000000 + 7);
IS(kMDTDTPushFailure, 0x10000000 + 8);
IS(kMDFileNotExist, 0x10000000 + 9);
IS(kMDProfilingError, 0x10000000 + 10);
IS(kMDBoundingBoxOutOfBounds, 0x10000000 + 11);
IS(kMDBoundingBoxInvalidShape, 0x10000000 + 12);
IS(kMDSyntaxError, 0x10000000 + 13);
IS(kMDTimeOut, 0x10000000 + 14);
IS(kMDBuddySpaceFull, 0x10000000 + 15);
IS(kMDNetWorkError, 0x10000000 + 16);
IS(kMDNotImplementedYet, 0x10000000 + 17);
IS(kMDUnexpectedError, 0x10000000 + 127);
IS(kMEFailed, 0x20000001);
IS(kMEInvalidInput, 0x20000002);
IS(kMCFailed, 0x30000001);
IS(kMCDeviceError, 0x30000002);
IS(kMCInvalidInput, 0x30000003);
IS(kMCInvalidArgs, 0x30000004);
