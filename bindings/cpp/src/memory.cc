#include "src/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "include/api/allocator.h"
#include "src/wire/block.h"
#include "src/wire/session.h"

namespace mslite {
namespace {
constexpr size_t kOnHeap = 16 * 1024;  // up to this a frame is quicker than a block
constexpr size_t kHeapAlignment = 64;
}  // namespace

constexpr size_t Memory::kUnknownSize;  // C++14 wants it defined

// Each takes the bytes only once there is someone to hold them.

std::shared_ptr<Memory> Memory::OnHeap(size_t size) {
  auto memory = Empty(Kind::kHeap, size);
  void *data = nullptr;
  if (memory == nullptr) return nullptr;
  if (posix_memalign(&data, kHeapAlignment, size == 0 ? 1 : size) != 0) return nullptr;
  std::memset(data, 0, size);
  memory->data_ = data;
  return memory;
}

std::shared_ptr<Memory> Memory::OfUser(void *data, bool owned) {
  auto memory = Empty(Kind::kUsers, kUnknownSize);
  if (memory == nullptr) return nullptr;
  memory->data_ = data;
  memory->is_owned_ = owned;
  return memory;
}

std::shared_ptr<Memory> Memory::OfAllocator(std::shared_ptr<mindspore::Allocator> allocator,
                                            size_t size) {
  auto memory = Empty(Kind::kAllocator, size);
  if (memory == nullptr) return nullptr;
  memory->data_ = allocator->Malloc(size);
  memory->allocator_ = std::move(allocator);
  return memory->data_ == nullptr ? nullptr : memory;
}

std::shared_ptr<Memory> Memory::InBlock(std::shared_ptr<Block> block, uint64_t offset,
                                        size_t size) {
  if (block == nullptr || offset > block->size() || size > block->size() - offset) return nullptr;
  auto memory = Empty(Kind::kBlock, size);
  if (memory == nullptr) return nullptr;
  memory->data_ = block->data() + offset;
  memory->block_ = std::move(block);
  memory->offset_ = offset;
  return memory;
}

std::shared_ptr<Memory> Memory::For(size_t size, const std::shared_ptr<Session> &session) {
  if (size > kOnHeap) {
    const auto from = session != nullptr ? session : Session::Running();
    auto memory = from != nullptr ? from->Allocate(size) : nullptr;
    if (memory != nullptr) return memory;
  }
  return OnHeap(size);
}

std::shared_ptr<Memory> Memory::Empty(Kind kind, size_t size) {
  try {
    return std::shared_ptr<Memory>(new Memory(kind, size));
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

Memory::~Memory() {
  switch (kind_) {
    case Kind::kHeap:
      std::free(data_);
      break;
    case Kind::kUsers:
      if (is_owned_) std::free(data_);
      break;
    case Kind::kAllocator:
      if (data_ != nullptr) allocator_->Free(data_);
      break;
    case Kind::kBlock:
      break;  // goes back with the block
  }
}
}  // namespace mslite
