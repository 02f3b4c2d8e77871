// What came of a call: a code and words.
#ifndef MINDSPORE_INCLUDE_API_STATUS_H
#define MINDSPORE_INCLUDE_API_STATUS_H

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "include/api/dual_abi_helper.h"
#include "include/api/visible.h"

namespace mindspore {
enum CompCode : uint32_t {
  kCore = 0x00000000u,
  kMD = 0x10000000u,
  kME = 0x20000000u,
  kMC = 0x30000000u,
  kLite = 0xF0000000u,
};

enum StatusCode : uint32_t {
  kSuccess = 0,
  kCoreFailed = kCore | 1,  // a fault that has no code of its own

  kMDOutOfMemory = kMD | 1,
  kMDShapeMisMatch = kMD | 2,
  kMDInterrupted = kMD | 3,
  kMDNoSpace = kMD | 4,
  kMDPyFuncException = kMD | 5,
  kMDDuplicateKey = kMD | 6,
  kMDPythonInterpreterFailure = kMD | 7,
  kMDTDTPushFailure = kMD | 8,
  kMDFileNotExist = kMD | 9,
  kMDProfilingError = kMD | 10,
  kMDBoundingBoxOutOfBounds = kMD | 11,
  kMDBoundingBoxInvalidShape = kMD | 12,
  kMDSyntaxError = kMD | 13,
  kMDTimeOut = kMD | 14,
  kMDBuddySpaceFull = kMD | 15,
  kMDNetWorkError = kMD | 16,
  kMDNotImplementedYet = kMD | 17,
  kMDUnexpectedError = kMD | 127,

  kMEFailed = kME | 1,
  kMEInvalidInput = kME | 2,

  kMCFailed = kMC | 1,
  kMCDeviceError = kMC | 2,
  kMCInvalidInput = kMC | 3,
  kMCInvalidArgs = kMC | 4,

  // Read as a signed int these are the small negative numbers.
  kLiteError = static_cast<uint32_t>(-1),
  kLiteNullptr = static_cast<uint32_t>(-2),
  kLiteParamInvalid = static_cast<uint32_t>(-3),
  kLiteNoChange = static_cast<uint32_t>(-4),
  kLiteSuccessExit = static_cast<uint32_t>(-5),
  kLiteMemoryFailed = static_cast<uint32_t>(-6),
  kLiteNotSupport = static_cast<uint32_t>(-7),
  kLiteThreadPoolError = static_cast<uint32_t>(-8),
  kLiteUninitializedObj = static_cast<uint32_t>(-9),
  kLiteFileError = static_cast<uint32_t>(-10),
  kLiteServiceDeny = static_cast<uint32_t>(-11),
  kLiteModelRebuild = static_cast<uint32_t>(-12),
  kLiteOutOfTensorRange = static_cast<uint32_t>(-100),
  kLiteInputTensorError = static_cast<uint32_t>(-101),
  kLiteReentrantError = static_cast<uint32_t>(-102),
  kLiteLLMWaitProcessTimeOut = static_cast<uint32_t>(-103),
  kLiteLLMKVCacheNotExist = static_cast<uint32_t>(-104),
  kLiteLLMRepeatRequest = static_cast<uint32_t>(-105),
  kLiteLLMRequestAlreadyCompleted = static_cast<uint32_t>(-106),
  kLiteLLMEngineFinalized = static_cast<uint32_t>(-107),
  kLiteLLMNotYetLink = static_cast<uint32_t>(-108),
  kLiteLLMAlreadyLink = static_cast<uint32_t>(-109),
  kLiteLLMLinkFailed = static_cast<uint32_t>(-110),
  kLiteLLMUnlinkFailed = static_cast<uint32_t>(-111),
  kLiteLLMNofiryPromptUnlinkFailed = static_cast<uint32_t>(-112),
  kLiteLLMClusterNumExceedLimit = static_cast<uint32_t>(-113),
  kLiteLLMProcessingLink = static_cast<uint32_t>(-114),
  kLiteLLMOutOfMemory = static_cast<uint32_t>(-115),
  kLiteLLMPrefixAlreadyExist = static_cast<uint32_t>(-116),
  kLiteLLMPrefixNotExist = static_cast<uint32_t>(-117),
  kLiteLLMSeqLenOverLimit = static_cast<uint32_t>(-118),
  kLiteLLMNoFreeBlock = static_cast<uint32_t>(-119),
  kLiteLLMBlockOutOfMemory = static_cast<uint32_t>(-120),
  kLiteGraphFileError = static_cast<uint32_t>(-200),
  kLiteNotFindOp = static_cast<uint32_t>(-300),
  kLiteInvalidOpName = static_cast<uint32_t>(-301),
  kLiteInvalidOpAttr = static_cast<uint32_t>(-302),
  kLiteOpExecuteFailure = static_cast<uint32_t>(-303),
  kLiteFormatError = static_cast<uint32_t>(-400),
  kLiteInferError = static_cast<uint32_t>(-500),
  kLiteInferInvalid = static_cast<uint32_t>(-501),
  kLiteInputParamInvalid = static_cast<uint32_t>(-600),
};

// Copies share their state. Not to be changed by one thread while another one uses it.
class MS_API Status {
 public:
  Status();  // success
  // Not explicit: a function that returns a Status may return a code.
  inline Status(enum StatusCode status_code, const std::string &status_msg = "");
  // For callers that want to say where it happened; `file_name` may be null.
  inline Status(const enum StatusCode code, int line_of_code, const char *file_name,
                const std::string &extra = "");
  ~Status();

  enum StatusCode StatusCode() const;
  // The message; where there is none, what the code means.
  inline std::string ToString() const;

  int GetLineOfCode() const;  // -1: unknown
  inline std::string GetFileName() const;
  inline std::string GetErrDescription() const;
  // Makes the message anew from it, and from file and line if known; returns the message.
  inline std::string SetErrDescription(const std::string &err_description);
  inline void SetStatusMsg(const std::string &status_msg);

  MS_API friend std::ostream &operator<<(std::ostream &os, const Status &s);

  // The same code; messages are not compared.
  bool operator==(const Status &other) const;
  bool operator==(enum StatusCode other_code) const;
  bool operator!=(const Status &other) const;
  bool operator!=(enum StatusCode other_code) const;

  explicit operator bool() const;  // success?
  explicit operator int() const;   // the code

  static Status OK();
  bool IsOk() const;
  bool IsError() const;

  static inline std::string CodeAsString(enum StatusCode c);

 private:
  Status(enum StatusCode status_code, const std::vector<char> &status_msg);
  Status(enum StatusCode code, int line_of_code, const char *file_name,
         const std::vector<char> &extra);
  std::vector<char> ToCString() const;
  std::vector<char> GetFileNameChar() const;
  std::vector<char> GetErrDescriptionChar() const;
  std::vector<char> SetErrDescription(const std::vector<char> &err_description);
  void SetStatusMsgChar(const std::vector<char> &status_msg);
  static std::vector<char> CodeAsCString(enum StatusCode c);

  struct Data;
  std::shared_ptr<Data> data_;
};

Status::Status(enum StatusCode status_code, const std::string &status_msg)
    : Status(status_code, StringToChar(status_msg)) {}
Status::Status(const enum StatusCode code, int line_of_code, const char *file_name,
               const std::string &extra)
    : Status(code, line_of_code, file_name, StringToChar(extra)) {}
std::string Status::ToString() const { return CharToString(ToCString()); }
std::string Status::GetFileName() const { return CharToString(GetFileNameChar()); }
std::string Status::GetErrDescription() const { return CharToString(GetErrDescriptionChar()); }
std::string Status::SetErrDescription(const std::string &err_description) {
  return CharToString(SetErrDescription(StringToChar(err_description)));
}
void Status::SetStatusMsg(const std::string &status_msg) {
  SetStatusMsgChar(StringToChar(status_msg));
}
std::string Status::CodeAsString(enum StatusCode c) { return CharToString(CodeAsCString(c)); }
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_STATUS_H
