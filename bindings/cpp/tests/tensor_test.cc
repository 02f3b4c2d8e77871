#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "include/api/allocator.h"
#include "include/api/types.h"
#include "src/tensor_impl.h"
#include "tests/check.h"
#include "tests/support.h"

using mindspore::DataType;
using mindspore::MSTensor;
using mslite_test::Own;

namespace {
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
const float kFour[] = {1, 2, 3, 4};

MSTensor Shaped(const std::vector<int64_t> &shape) {
  return MSTensor("x", DataType::kNumberTypeFloat32, shape, nullptr, 0);
}

// An allocator that counts.
class Counting : public mindspore::Allocator {
 public:
  void *Malloc(size_t size) override {
    ++made;
    return has_none ? nullptr : std::malloc(size);
  }
  void Free(void *ptr) override {
    ++freed;
    std::free(ptr);
  }
  int RefCount(void *) override { return 0; }
  int SetRefCount(void *, int) override { return 0; }
  int DecRefCount(void *, int) override { return 0; }
  int IncRefCount(void *, int) override { return 0; }

  int made = 0;
  int freed = 0;
  bool has_none = false;
};
}  // namespace

TEST(AnEmptyTensorIsValid) {
  MSTensor tensor;
  CHECK(tensor != nullptr);
  CHECK_EQ(tensor.Name(), "");
  CHECK(tensor.DataType() == DataType::kTypeUnknown);
  CHECK_EQ(tensor.DataSize(), size_t{0});
  CHECK_EQ(tensor.GetDeviceId(), -1);
  CHECK_EQ(tensor.GetDevice(), "");
  CHECK_EQ(tensor.format(), mindspore::DEFAULT_FORMAT);
  CHECK(tensor.Data() == nullptr);
  CHECK(tensor.MutableData() == nullptr);
}

TEST(NothingCanBeHadFromAnInvalidTensorAndNothingBreaks) {
  MSTensor tensor(nullptr);
  CHECK(tensor == nullptr);
  CHECK_EQ(tensor.ElementNum(), int64_t{-1});
  CHECK_EQ(tensor.DataSize(), size_t{0});
  CHECK(tensor.Shape().empty());
  CHECK_EQ(tensor.Name(), "");
  CHECK(tensor.Data() == nullptr);
  CHECK(tensor.MutableData() == nullptr);
  CHECK(tensor.Clone() == nullptr);
  tensor.SetShape({1});
  tensor.SetTensorName("x");
  tensor.SetDataType(DataType::kNumberTypeInt8);
  tensor.SetFormat(mindspore::NHWC);
  tensor.SetAllocator(nullptr);
  tensor.SetQuantParams({});
  tensor.SetData(nullptr);
  tensor.SetDeviceData(&tensor);
  CHECK(tensor.GetDeviceData() == nullptr);
  CHECK(tensor == MSTensor(std::shared_ptr<MSTensor::Impl>()));
}

TEST(SizesAreThoseOfShapeAndType) {
  CHECK_EQ(Shaped({2, 3}).ElementNum(), int64_t{6});
  CHECK_EQ(Shaped({2, 3}).DataSize(), size_t{24});
  CHECK_EQ(Shaped({}).ElementNum(), int64_t{1});
  CHECK_EQ(Shaped({}).DataSize(), size_t{4});
  CHECK_EQ(Shaped({2, -1}).ElementNum(), int64_t{0});
  CHECK_EQ(Shaped({2, -1}).DataSize(), size_t{0});
  CHECK_EQ(Shaped({-1, -1}).ElementNum(), int64_t{0});
  CHECK_EQ(Shaped({2, 0}).ElementNum(), int64_t{0});
}

TEST(AShapeWhoseSizeCannotBeCountedHasNone) {
  CHECK_EQ(Shaped({kMax, 2}).ElementNum(), int64_t{0});
  CHECK_EQ(Shaped({kMax, kMax, 0}).ElementNum(), int64_t{0});
  MSTensor huge = Shaped({kMax});
  CHECK_EQ(huge.ElementNum(), kMax);
  CHECK_EQ(huge.DataSize(), size_t{0});
  CHECK(huge.MutableData() == nullptr);
  CHECK(MSTensor::CreateTensor("x", DataType::kNumberTypeFloat32, {kMax, 4}, kFour, 16) == nullptr);
}

TEST(ElementsHaveTheSizesOfTheWire) {
  CHECK_EQ(mindspore::ElementSize(DataType::kNumberTypeBool), size_t{1});
  CHECK_EQ(mindspore::ElementSize(DataType::kNumberTypeInt16), size_t{2});
  CHECK_EQ(mindspore::ElementSize(DataType::kNumberTypeBFloat16), size_t{2});
  CHECK_EQ(mindspore::ElementSize(DataType::kNumberTypeUInt32), size_t{4});
  CHECK_EQ(mindspore::ElementSize(DataType::kNumberTypeFloat64), size_t{8});
  CHECK_EQ(mindspore::ElementSize(static_cast<DataType>(51)), size_t{8});
  CHECK_EQ(mindspore::ElementSize(static_cast<DataType>(52)), size_t{16});
  CHECK_EQ(mindspore::ElementSize(DataType::kTypeUnknown), size_t{0});
  CHECK_EQ(mindspore::ElementSize(DataType::kInvalidType), size_t{0});
}

TEST(CopiesAreTheSameTensor) {
  MSTensor tensor = Shaped({4});
  MSTensor copy = tensor;
  std::memcpy(copy.MutableData(), kFour, sizeof(kFour));
  CHECK_EQ(std::memcmp(tensor.Data().get(), kFour, sizeof(kFour)), 0);
  CHECK(copy == tensor);
  CHECK(Shaped({4}) != tensor);
  copy.SetShape({2, 2});
  CHECK_EQ(tensor.Shape(), (std::vector<int64_t>{2, 2}));
  const MSTensor taken = std::move(copy);
  CHECK(copy == tensor);  // NOLINT: a tensor that was moved from is still one
}

TEST(MutableDataMakesMemoryOnce) {
  MSTensor tensor = Shaped({4});
  CHECK(tensor.Data() == nullptr);
  void *data = tensor.MutableData();
  CHECK(data != nullptr);
  CHECK_EQ(reinterpret_cast<uintptr_t>(data) % 64, uintptr_t{0});
  CHECK(tensor.MutableData() == data);
  CHECK(tensor.Data().get() == data);
  tensor.SetShape({2});
  CHECK(tensor.MutableData() == data);
}

TEST(MutableDataMakesMoreWhenTheShapeGrew) {
  MSTensor tensor = Shaped({4});
  tensor.MutableData();
  tensor.SetShape({1000});
  std::memset(tensor.MutableData(), 1, 4000);
  CHECK_EQ(tensor.DataSize(), size_t{4000});
}

TEST(DataKeepsTheMemoryAliveByItself) {
  auto tensor = Own(MSTensor::CreateTensor("x", DataType::kNumberTypeFloat32, {4}, kFour, 16));
  const auto data = tensor->Data();
  tensor.reset();
  CHECK_EQ(std::memcmp(data.get(), kFour, sizeof(kFour)), 0);
}

TEST(BorrowedMemoryIsUsedAndNotFreed) {
  float mine[4] = {0};
  MSTensor tensor = Shaped({4});
  tensor.SetData(mine, false);
  CHECK(tensor.MutableData() == mine);
  CHECK(tensor.Data().get() == mine);
  tensor.SetData(nullptr);
  CHECK(tensor.Data() == nullptr);
}

// That nothing is freed twice, or never, is seen by the address sanitizer.
TEST(OwnedMemoryIsFreedOnce) {
  MSTensor tensor = Shaped({4});
  void *first = std::malloc(16);
  tensor.SetData(first);
  tensor.SetData(first);  // again
  MSTensor copy = tensor;
  copy.SetData(std::malloc(16));  // `first` goes
  const auto data = tensor.Data();
  tensor.SetData(nullptr);  // the second one lives on in `data`
  CHECK(data != nullptr);
}

TEST(OwnershipCanBeTakenBack) {
  void *data = std::malloc(16);
  {
    MSTensor tensor = Shaped({4});
    tensor.SetData(data, true);
    tensor.SetData(data, false);
  }
  std::free(data);
}

TEST(TheTensorsOwnMemoryMayBeSetAsItsData) {
  MSTensor tensor = Shaped({4});
  void *data = tensor.MutableData();
  tensor.SetData(data, true);
  CHECK(tensor.MutableData() == data);
}

TEST(CreateTensorCopiesWhatFits) {
  float mine[] = {1, 2, 3, 4};
  const auto tensor =
      Own(MSTensor::CreateTensor("in", DataType::kNumberTypeFloat32, {2, 2}, mine, 16));
  CHECK(tensor != nullptr);
  mine[0] = 9;
  CHECK_EQ(tensor->Name(), "in");
  CHECK_EQ(std::memcmp(tensor->Data().get(), kFour, 16), 0);
}

TEST(CreateTensorRefusesWhatDoesNotFit) {
  const auto type = DataType::kNumberTypeFloat32;
  CHECK(MSTensor::CreateTensor("x", type, {4}, kFour, 12) == nullptr);
  CHECK(MSTensor::CreateTensor("x", type, {4}, kFour, 20) == nullptr);
  CHECK(MSTensor::CreateTensor("x", type, {4}, kFour, 0) == nullptr);
  CHECK(MSTensor::CreateTensor("x", type, {4}, nullptr, 16) == nullptr);
  CHECK(MSTensor::CreateTensor("x", type, {-1}, kFour, 16) == nullptr);
  CHECK(MSTensor::CreateTensor("x", DataType::kTypeUnknown, {4}, kFour, 16) == nullptr);
  // More than 2000 MiB: refused before anything is read.
  const int64_t much = (int64_t{2000} << 20) / 4 + 1;
  CHECK(MSTensor::CreateTensor("x", type, {much}, kFour, static_cast<size_t>(much) * 4) == nullptr);
  CHECK(MSTensor("x", type, {4}, kFour, 12) == nullptr);
}

TEST(CreateTensorWithoutDataHasNone) {
  const auto tensor =
      Own(MSTensor::CreateTensor("x", DataType::kNumberTypeFloat32, {4}, nullptr, 0, "ascend", 3));
  CHECK(tensor != nullptr);
  CHECK(tensor->Data() == nullptr);
  CHECK(!tensor->IsDevice());
}

TEST(ACopyMadeByCreateTensorKeepsTheName) {
  const MSTensor from("from", DataType::kNumberTypeFloat32, {4}, kFour, 16);
  const auto copy = Own(MSTensor::CreateTensor("to", from));
  CHECK_EQ(copy->Name(), "from");
  CHECK(copy->Data().get() != from.Data().get());
  CHECK_EQ(std::memcmp(copy->Data().get(), kFour, 16), 0);
  CHECK(MSTensor::CreateTensor("to", MSTensor(nullptr)) == nullptr);
  MSTensor far = Shaped({4});
  far.SetDeviceData(&far);
  CHECK(MSTensor::CreateTensor("to", far) == nullptr);
}

TEST(CreateRefTensorUsesTheMemoryItself) {
  const auto lent =
      Own(MSTensor::CreateRefTensor("x", DataType::kNumberTypeFloat32, {4}, kFour, 16, false));
  CHECK(lent->Data().get() == kFour);
  const auto given =
      Own(MSTensor::CreateRefTensor("x", DataType::kNumberTypeFloat32, {4}, std::malloc(16), 16));
  CHECK(given->Data() != nullptr);
  CHECK(MSTensor::CreateRefTensor("x", DataType::kNumberTypeFloat32, {4}, kFour, 15, false) ==
        nullptr);
}

TEST(ADeviceTensorPointsToTheDevice) {
  char far[16];
  MSTensor tensor =
      MSTensor::CreateDeviceTensor("x", DataType::kNumberTypeFloat32, {4}, far, sizeof(far));
  CHECK(tensor.IsDevice());
  CHECK(tensor.GetDeviceData() == far);
  CHECK(tensor.Data() == nullptr);
  tensor.SetDeviceData(nullptr);
  CHECK(!tensor.IsDevice());
  CHECK(MSTensor::CreateDeviceTensor("x", DataType::kNumberTypeFloat32, {4}, far, 15) == nullptr);
}

TEST(ACloneHasACopyOfEverything) {
  MSTensor tensor("x", DataType::kNumberTypeFloat32, {4}, kFour, 16);
  tensor.SetFormat(mindspore::NHWC);
  tensor.SetQuantParams({{8, 0.5, 3, -1.0, 1.0}});
  const auto clone = Own(tensor.Clone());
  static_cast<float *>(tensor.MutableData())[0] = 9;
  tensor.SetShape({2});
  CHECK(*clone != tensor);
  CHECK_EQ(clone->Name(), "x");
  CHECK_EQ(clone->Shape(), (std::vector<int64_t>{4}));
  CHECK_EQ(clone->format(), mindspore::NHWC);
  const auto params = clone->QuantParams();
  CHECK_EQ(params.size(), size_t{1});
  CHECK_EQ(params[0].zero_point, 3);
  CHECK_EQ(std::memcmp(clone->Data().get(), kFour, 16), 0);
}

TEST(ATensorWhoseDataIsTooShortForItsShapeIsNotCloned) {
  MSTensor tensor("x", DataType::kNumberTypeFloat32, {4}, kFour, 16);
  tensor.SetShape({1000});
  CHECK(tensor.Clone() == nullptr);
}

TEST(AnAllocatorOfTheUserIsAskedForMemory) {
  const auto allocator = std::make_shared<Counting>();
  {
    MSTensor tensor = Shaped({4});
    tensor.SetAllocator(allocator);
    CHECK(tensor.allocator() == allocator);
    CHECK(tensor.MutableData() != nullptr);
    CHECK(tensor.MutableData() != nullptr);
    CHECK_EQ(allocator->made, 1);
    CHECK_EQ(allocator->freed, 0);
  }
  CHECK_EQ(allocator->freed, 1);
  allocator->has_none = true;
  MSTensor tensor = Shaped({4});
  tensor.SetAllocator(allocator);
  CHECK(tensor.MutableData() == nullptr);
  CHECK_EQ(allocator->freed, 1);
}

TEST(TheHeapsAllocatorCountsReferences) {
  const auto allocator = mindspore::Allocator::Create();
  void *piece = allocator->Malloc(100);
  CHECK(piece != nullptr);
  CHECK_EQ(reinterpret_cast<uintptr_t>(piece) % 32, uintptr_t{0});
  std::memset(piece, 1, 100);
  CHECK_EQ(allocator->RefCount(piece), 0);
  CHECK_EQ(allocator->SetRefCount(piece, 3), 3);
  CHECK_EQ(allocator->IncRefCount(piece, 2), 5);
  CHECK_EQ(allocator->DecRefCount(piece, 4), 1);
  CHECK_EQ(allocator->RefCount(piece), 1);
  CHECK(allocator->Prepare(piece) == piece);
  allocator->Free(piece);
  allocator->Free(nullptr);
  CHECK(allocator->Malloc(static_cast<size_t>(-1)) == nullptr);
}

TEST(AKeyThatIsTooLongIsLeftEmpty) {
  const mindspore::Key key("0123456789abcdef", 16);
  CHECK_EQ(key.len, size_t{16});
  CHECK_EQ(std::memcmp(key.key, "0123456789abcdef", 16), 0);
  CHECK_EQ(mindspore::Key().len, size_t{0});
  const std::string longer(33, 'x');
  CHECK_EQ(mindspore::Key(longer.data(), longer.size()).len, size_t{0});
  CHECK_EQ(mindspore::Key(nullptr, 16).len, size_t{0});
}

TEST(TheVersionNamesTheInterface) {
  CHECK_EQ(mindspore::Version().substr(0, 15), "MindSpore Lite ");
}

TEST(ManyThreadsMayReadOneTensorAndLetGoOfIt) {
  MSTensor tensor("x", DataType::kNumberTypeFloat32, {4}, kFour, 16);
  mslite_test::Threads threads;
  for (int i = 0; i < 8; ++i) {
    threads.Start([tensor] {
      for (int turn = 0; turn < 100; ++turn) {
        const MSTensor copy = tensor;
        const auto clone = Own(copy.Clone());
        CHECK_EQ(copy.DataSize(), size_t{16});
        CHECK_EQ(std::memcmp(clone->Data().get(), copy.Data().get(), 16), 0);
      }
    });
  }
  tensor = MSTensor(nullptr);
  threads.Join();
}
