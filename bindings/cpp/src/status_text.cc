#include "src/status_text.h"

namespace mslite {
namespace {
using namespace mindspore;  // NOLINT: sixty codes

struct Meaning {
  enum StatusCode code;
  const char *text;
};

constexpr Meaning kMeanings[] = {
    {kSuccess, "success"},
    {kCoreFailed, "the runtime failed"},
    {kMDOutOfMemory, "data: there is not enough memory"},
    {kMDShapeMisMatch, "data: shapes do not match"},
    {kMDInterrupted, "data: interrupted"},
    {kMDNoSpace, "data: no space is left"},
    {kMDPyFuncException, "data: a Python function failed"},
    {kMDDuplicateKey, "data: a key exists twice"},
    {kMDPythonInterpreterFailure, "data: the Python interpreter failed"},
    {kMDTDTPushFailure, "data: pushing to the device failed"},
    {kMDFileNotExist, "data: there is no such file"},
    {kMDProfilingError, "data: profiling failed"},
    {kMDBoundingBoxOutOfBounds, "data: a bounding box is out of bounds"},
    {kMDBoundingBoxInvalidShape, "data: the shape of a bounding box is not valid"},
    {kMDSyntaxError, "data: a syntax error"},
    {kMDTimeOut, "data: it took too long"},
    {kMDBuddySpaceFull, "data: the buddy space is full"},
    {kMDNetWorkError, "data: the network failed"},
    {kMDNotImplementedYet, "data: this is not implemented"},
    {kMDUnexpectedError, "data: something unexpected happened"},
    {kMEFailed, "training: it failed"},
    {kMEInvalidInput, "training: an input is not valid"},
    {kMCFailed, "device: it failed"},
    {kMCDeviceError, "device: an error of the device"},
    {kMCInvalidInput, "device: an input is not valid"},
    {kMCInvalidArgs, "device: an argument is not valid"},
    {kLiteError, "something went wrong"},
    {kLiteNullptr, "a pointer is null"},
    {kLiteParamInvalid, "a parameter is not valid"},
    {kLiteNoChange, "nothing changed"},
    {kLiteSuccessExit, "ended without an error"},
    {kLiteMemoryFailed, "there is not enough memory"},
    {kLiteNotSupport, "this is not supported"},
    {kLiteThreadPoolError, "the thread pool failed"},
    {kLiteUninitializedObj, "the object is not initialised"},
    {kLiteFileError, "a file cannot be read, or not be used"},
    {kLiteServiceDeny, "too many requests wait"},
    {kLiteModelRebuild, "the model is built already"},
    {kLiteOutOfTensorRange, "out of the tensor's range"},
    {kLiteInputTensorError, "an input tensor does not fit"},
    {kLiteReentrantError, "it is running already"},
    {kLiteLLMWaitProcessTimeOut, "the request waited too long"},
    {kLiteLLMKVCacheNotExist, "there is no such KV cache"},
    {kLiteLLMRepeatRequest, "the request was made before"},
    {kLiteLLMRequestAlreadyCompleted, "the request is complete already"},
    {kLiteLLMEngineFinalized, "the engine is finalised"},
    {kLiteLLMNotYetLink, "the clusters are not linked"},
    {kLiteLLMAlreadyLink, "the clusters are linked already"},
    {kLiteLLMLinkFailed, "the clusters could not be linked"},
    {kLiteLLMUnlinkFailed, "the clusters could not be unlinked"},
    {kLiteLLMNofiryPromptUnlinkFailed, "the prompt cluster could not be told to unlink"},
    {kLiteLLMClusterNumExceedLimit, "there are too many clusters"},
    {kLiteLLMProcessingLink, "the link is being made"},
    {kLiteLLMOutOfMemory, "the device has not enough memory"},
    {kLiteLLMPrefixAlreadyExist, "the prefix exists already"},
    {kLiteLLMPrefixNotExist, "there is no such prefix"},
    {kLiteLLMSeqLenOverLimit, "the sequence is too long"},
    {kLiteLLMNoFreeBlock, "no block is free"},
    {kLiteLLMBlockOutOfMemory, "there is not enough memory for blocks"},
    {kLiteGraphFileError, "the model's file is not valid"},
    {kLiteNotFindOp, "an operator is not known"},
    {kLiteInvalidOpName, "the name of an operator is not valid"},
    {kLiteInvalidOpAttr, "an attribute of an operator is not valid"},
    {kLiteOpExecuteFailure, "an operator failed"},
    {kLiteFormatError, "the format of a tensor is not valid"},
    {kLiteInferError, "shapes could not be inferred"},
    {kLiteInferInvalid, "shapes cannot be inferred before the model runs"},
    {kLiteInputParamInvalid, "an argument is not valid"},
};
}  // namespace

const char *MeaningOf(enum StatusCode code) {
  for (const Meaning &meaning : kMeanings) {
    if (meaning.code == code) return meaning.text;
  }
  return "an unknown error";
}
}  // namespace mslite
