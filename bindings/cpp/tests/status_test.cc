#include "include/api/status.h"

#include <set>
#include <sstream>

#include "tests/check.h"

using mindspore::Status;
using mindspore::StatusCode;

TEST(AStatusIsSuccessUnlessToldOtherwise) {
  const Status status;
  CHECK(status.IsOk());
  CHECK(!status.IsError());
  CHECK(static_cast<bool>(status));
  CHECK(status == mindspore::kSuccess);
  CHECK(status == Status::OK());
  CHECK_EQ(static_cast<int>(status), 0);
  CHECK_EQ(status.ToString(), "success");
  CHECK_EQ(status.GetLineOfCode(), -1);
  CHECK_EQ(status.GetFileName(), "");
}

TEST(ACodeTurnsIntoAStatusByItself) {
  const auto fails = []() -> Status { return mindspore::kLiteFileError; };
  CHECK(fails() == mindspore::kLiteFileError);
  CHECK(fails() != mindspore::kSuccess);
  CHECK(fails().IsError());
  CHECK(!fails());
}

TEST(LiteCodesAreSmallNegativeNumbers) {
  CHECK_EQ(static_cast<int>(Status(mindspore::kLiteError)), -1);
  CHECK_EQ(static_cast<int>(Status(mindspore::kLiteModelRebuild)), -12);
  CHECK_EQ(static_cast<int>(Status(mindspore::kLiteReentrantError)), -102);
  CHECK_EQ(static_cast<int>(Status(mindspore::kLiteLLMWaitProcessTimeOut)), -103);
  CHECK_EQ(static_cast<int>(Status(mindspore::kLiteLLMBlockOutOfMemory)), -120);
  CHECK_EQ(static_cast<int>(Status(mindspore::kLiteInputParamInvalid)), -600);
  CHECK_EQ(static_cast<uint32_t>(mindspore::kMDUnexpectedError), 0x1000007Fu);
  CHECK_EQ(static_cast<uint32_t>(mindspore::kMEInvalidInput), 0x20000002u);
  CHECK_EQ(static_cast<uint32_t>(mindspore::kMCInvalidArgs), 0x30000004u);
}

TEST(TheMessageCountsBeforeTheMeaningOfTheCode) {
  Status status(mindspore::kLiteParamInvalid, "no such input");
  CHECK_EQ(status.ToString(), "no such input");
  status.SetStatusMsg("another");
  CHECK_EQ(status.ToString(), "another");
  status.SetStatusMsg("");
  CHECK_EQ(status.ToString(), Status::CodeAsString(mindspore::kLiteParamInvalid));
  std::ostringstream out;
  out << Status(mindspore::kLiteError, "words\nof two lines");
  CHECK_EQ(out.str(), "words\nof two lines");
}

TEST(EveryCodeHasAMeaningOfItsOwn) {
  const std::string unknown = Status::CodeAsString(static_cast<StatusCode>(0x0BADC0DE));
  std::set<std::string> seen;
  for (int code = -12; code <= -1; ++code) {
    seen.insert(Status::CodeAsString(static_cast<StatusCode>(code)));
  }
  for (int code = -120; code <= -100; ++code) {
    seen.insert(Status::CodeAsString(static_cast<StatusCode>(code)));
  }
  for (const int code : {0, 1, -200, -300, -301, -302, -303, -400, -500, -501, -600}) {
    seen.insert(Status::CodeAsString(static_cast<StatusCode>(code)));
  }
  CHECK_EQ(seen.size(), size_t{12 + 21 + 11});
  CHECK_EQ(seen.count(unknown), size_t{0});
  CHECK_EQ(seen.count(""), size_t{0});
}

TEST(AStatusTellsWhereItCameFrom) {
  Status status(mindspore::kLiteError, 42, "model.cc", "it broke");
  CHECK_EQ(status.ToString(), "model.cc:42: it broke");
  CHECK_EQ(status.GetLineOfCode(), 42);
  CHECK_EQ(status.GetFileName(), "model.cc");
  CHECK_EQ(status.GetErrDescription(), "it broke");
  CHECK_EQ(status.SetErrDescription("it bent"), "model.cc:42: it bent");
  CHECK_EQ(status.ToString(), "model.cc:42: it bent");
  CHECK_EQ(Status(mindspore::kLiteError, 42, nullptr).ToString(),
           Status::CodeAsString(mindspore::kLiteError));
}

TEST(StatusesAreEqualWhenTheirCodesAre) {
  CHECK(Status(mindspore::kLiteError, "a") == Status(mindspore::kLiteError, "b"));
  CHECK(Status(mindspore::kLiteError) != Status(mindspore::kLiteNullptr));
}

TEST(CopiesOfAStatusShareTheirState) {
  Status status(mindspore::kLiteError, "a");
  const Status copy = status;
  status.SetStatusMsg("b");
  CHECK_EQ(copy.ToString(), "b");
  const Status taken = std::move(status);
  CHECK(status == mindspore::kLiteError);  // NOLINT: a Status is never left empty
  CHECK(taken == mindspore::kLiteError);
}
