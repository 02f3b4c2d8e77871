// Where the bytes of tensors lie.
#include "src/memory.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "include/api/types.h"
#include "src/tensor_impl.h"
#include "src/wire/block.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/live.h"

using mindspore::DataType;
using mindspore::MSTensor;
using mslite::Memory;
using mslite::Session;

namespace {
constexpr size_t kLarge = 1 << 20;

MSTensor Raw(size_t size) {
  return MSTensor("x", DataType::kNumberTypeUInt8, {static_cast<int64_t>(size)}, nullptr, 0);
}
}  // namespace

TEST(MemoryOnTheHeapIsAlignedAndZero) {
  for (const size_t size : {size_t{1}, size_t{63}, size_t{5000}}) {
    const auto memory = Memory::OnHeap(size);
    CHECK_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, uintptr_t{0});
    CHECK_EQ(memory->size(), size);
    CHECK(!memory->is_users());
    const std::vector<char> zeros(size);
    CHECK_EQ(std::memcmp(memory->data(), zeros.data(), size), 0);
  }
  CHECK(Memory::OnHeap(0) != nullptr);
}

TEST(MemoryThatCannotBeHadIsNull) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("a sanitizer ends a program that asks for too much");
#endif
  CHECK(Memory::OnHeap(SIZE_MAX / 2) == nullptr);
  CHECK(Raw(SIZE_MAX / 4).MutableData() == nullptr);
}

TEST(LargeTensorsLieInMemoryThatTheWorkerShares) {
  mslite_test::Setting("MSLITE_PYTHON");
  const auto session = Session::Current();
  MSTensor large = Raw(kLarge);
  CHECK(large.MutableData() != nullptr);
  CHECK(large.impl()->memory->block() != nullptr);
  MSTensor small = Raw(16 * 1024);
  CHECK(small.MutableData() != nullptr);
  CHECK(small.impl()->memory->block() == nullptr);
  std::memset(large.MutableData(), 7, kLarge);
  MSTensor *clone = large.Clone();
  const auto data = clone->Data();
  CHECK(clone->impl()->memory->block() != large.impl()->memory->block());
  MSTensor::DestroyTensorPtr(clone);
  CHECK_EQ(static_cast<const char *>(data.get())[kLarge - 1], 7);
}

TEST(APieceOfABlockLiesWithinIt) {
  mslite_test::Setting("MSLITE_PYTHON");
  const auto whole = Session::Current()->Allocate(kLarge);
  CHECK(whole != nullptr);
  const auto &block = whole->block();
  const auto piece = Memory::InBlock(block, 64, 100);
  CHECK(piece->data() == block->data() + 64);
  CHECK_EQ(piece->offset(), uint64_t{64});
  CHECK_EQ(piece->size(), size_t{100});
  CHECK(Memory::InBlock(block, block->size(), 0) != nullptr);
  CHECK(Memory::InBlock(block, block->size(), 1) == nullptr);
  CHECK(Memory::InBlock(block, 64, block->size()) == nullptr);
  CHECK(Memory::InBlock(block, UINT64_MAX, 2) == nullptr);
  CHECK(Memory::InBlock(nullptr, 0, 0) == nullptr);
}
