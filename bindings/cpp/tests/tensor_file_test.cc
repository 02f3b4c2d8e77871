// Tensors from files, and of texts.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "include/api/types.h"
#include "tests/check.h"
#include "tests/support.h"

using mindspore::DataType;
using mindspore::MSTensor;
using mslite_test::Own;
using mslite_test::TemporaryFile;

namespace {
MSTensor Packed(const std::vector<int32_t> &numbers) {
  const auto size = static_cast<int64_t>(numbers.size() * sizeof(int32_t));
  return MSTensor("t", DataType::kObjectTypeString, {size}, numbers.data(),
                  static_cast<size_t>(size));
}
}  // namespace

TEST(ATensorIsReadFromAFile) {
  const TemporaryFile file("abcdefgh");
  const auto bytes = Own(MSTensor::CreateTensorFromFile(file.path()));
  CHECK(bytes != nullptr);
  CHECK_EQ(bytes->Name(), file.path());
  CHECK_EQ(bytes->Shape(), (std::vector<int64_t>{8}));
  CHECK_EQ(std::memcmp(bytes->Data().get(), "abcdefgh", 8), 0);
  const auto ints =
      Own(MSTensor::CreateTensorFromFile(file.path(), DataType::kNumberTypeInt32, {2, 1}));
  CHECK(ints != nullptr);
  CHECK_EQ(ints->DataSize(), size_t{8});
}

TEST(AFileThatDoesNotFitGivesNoTensor) {
  const TemporaryFile file("abcdefgh");
  CHECK(MSTensor::CreateTensorFromFile(file.path(), DataType::kNumberTypeInt32, {3}) == nullptr);
  CHECK(MSTensor::CreateTensorFromFile(file.path(), DataType::kNumberTypeInt32) == nullptr);
  CHECK(MSTensor::CreateTensorFromFile(file.path() + ".not") == nullptr);
  CHECK(MSTensor::CreateTensorFromFile("/") == nullptr);
  CHECK(MSTensor::CreateTensorFromFile("") == nullptr);
}

TEST(TextsComeBackFromTheirTensor) {
  const std::vector<std::string> texts = {"", "one", std::string("t\0o", 3), "\xff"};
  const auto tensor = Own(MSTensor::StringsToTensor("t", texts));
  CHECK(tensor != nullptr);
  CHECK(tensor->DataType() == DataType::kObjectTypeString);
  CHECK_EQ(tensor->DataSize(), size_t{4 + 4 * 4 + 7});
  CHECK_EQ(MSTensor::TensorToStrings(*tensor), texts);
  const auto none = Own(MSTensor::StringsToTensor("t", {}));
  CHECK(MSTensor::TensorToStrings(*none).empty());
}

TEST(ATensorThatHoldsNoTextsGivesNone) {
  CHECK(MSTensor::TensorToStrings(MSTensor(nullptr)).empty());
  CHECK(MSTensor::TensorToStrings(MSTensor()).empty());
  CHECK(MSTensor::TensorToStrings(MSTensor("x", DataType::kNumberTypeInt8, {1}, "x", 1)).empty());
  CHECK(MSTensor::TensorToStrings(MSTensor("x", DataType::kObjectTypeString, {1}, "x", 1)).empty());
}

TEST(NumbersInATensorOfTextsAreNotTrusted) {
  CHECK_EQ(MSTensor::TensorToStrings(Packed({2, 12, 16, 0})).size(), size_t{2});
  for (const auto &numbers : std::vector<std::vector<int32_t>>{
           {-1, 0},
           {INT32_MAX, 0},
           {2, 8},    // no room for the places
           {1, 4},    // begins within the places
           {1, 100},  // begins behind the end
           {1, -4},
           {2, 16, 12, 0},  // goes back
           {2, 12, 100, 0},
           {2, 12, -1, 0},
       }) {
    CHECK(MSTensor::TensorToStrings(Packed(numbers)).empty());
  }
}
