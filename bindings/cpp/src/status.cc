#include "include/api/status.h"

#include <new>
#include <string>
#include <utility>

#include "src/status_text.h"

namespace mindspore {
struct Status::Data {
  enum StatusCode code = kSuccess;
  std::string message;
  int line = -1;
  std::string file;
  std::string description;

  // The message that says where it happened.
  void Compose() {
    message.clear();
    if (!file.empty()) message += file + ":" + std::to_string(line) + ": ";
    message += description.empty() ? mslite::MeaningOf(code) : description.c_str();
  }
};

// `data_` is null when there was no memory for it, and only then: a Status has no move constructor
// that could leave it empty. Such a one counts as kLiteMemoryFailed, never as success.

Status::Status() : Status(kSuccess, std::vector<char>()) {}

Status::Status(enum StatusCode status_code, const std::vector<char> &status_msg) {
  try {
    auto data = std::make_shared<Data>();
    data->code = status_code;
    data->message = CharToString(status_msg);
    data_ = std::move(data);
  } catch (const std::bad_alloc &) {
  }
}

Status::Status(enum StatusCode code, int line_of_code, const char *file_name,
               const std::vector<char> &extra) {
  try {
    auto data = std::make_shared<Data>();
    data->code = code;
    data->line = line_of_code;
    if (file_name != nullptr) data->file = file_name;
    data->description = CharToString(extra);
    data->Compose();
    data_ = std::move(data);
  } catch (const std::bad_alloc &) {
  }
}

Status::~Status() = default;

enum StatusCode Status::StatusCode() const {
  return data_ == nullptr ? kLiteMemoryFailed : data_->code;
}

std::vector<char> Status::ToCString() const {
  if (data_ == nullptr || data_->message.empty()) return CodeAsCString(StatusCode());
  return StringToChar(data_->message);
}

int Status::GetLineOfCode() const { return data_ == nullptr ? -1 : data_->line; }

std::vector<char> Status::GetFileNameChar() const {
  return data_ == nullptr ? std::vector<char>() : StringToChar(data_->file);
}

std::vector<char> Status::GetErrDescriptionChar() const {
  return data_ == nullptr ? std::vector<char>() : StringToChar(data_->description);
}

std::vector<char> Status::SetErrDescription(const std::vector<char> &err_description) {
  if (data_ != nullptr) {
    data_->description = CharToString(err_description);
    data_->Compose();
  }
  return ToCString();
}

void Status::SetStatusMsgChar(const std::vector<char> &status_msg) {
  if (data_ != nullptr) data_->message = CharToString(status_msg);
}

std::ostream &operator<<(std::ostream &os, const Status &s) { return os << s.ToString(); }

bool Status::operator==(const Status &other) const { return StatusCode() == other.StatusCode(); }
bool Status::operator==(enum StatusCode other_code) const { return StatusCode() == other_code; }
bool Status::operator!=(const Status &other) const { return !(*this == other); }
bool Status::operator!=(enum StatusCode other_code) const { return !(*this == other_code); }

Status::operator bool() const { return IsOk(); }
Status::operator int() const { return static_cast<int>(StatusCode()); }

Status Status::OK() { return Status(); }
bool Status::IsOk() const { return StatusCode() == kSuccess; }
bool Status::IsError() const { return !IsOk(); }

std::vector<char> Status::CodeAsCString(enum StatusCode c) {
  return StringToChar(mslite::MeaningOf(c));
}
}  // namespace mindspore
