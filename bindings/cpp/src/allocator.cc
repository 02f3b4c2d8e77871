#include "include/api/allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace mindspore {
namespace {
// Each piece follows a head that counts its references; the head is as long as the alignment.
class HeapAllocator : public Allocator {
 public:
  void *Malloc(size_t size) override {
    void *start = nullptr;
    if (size > SIZE_MAX - aligned_size_) return nullptr;
    if (posix_memalign(&start, aligned_size_, aligned_size_ + size) != 0) return nullptr;
    new (start) std::atomic<int>(0);
    return static_cast<char *>(start) + aligned_size_;
  }

  void Free(void *ptr) override {
    if (ptr != nullptr) std::free(static_cast<char *>(ptr) - aligned_size_);
  }

  int RefCount(void *ptr) override { return ptr == nullptr ? -1 : Count(ptr)->load(); }

  int SetRefCount(void *ptr, int ref_count) override {
    if (ptr == nullptr) return -1;
    Count(ptr)->store(ref_count);
    return ref_count;
  }

  int DecRefCount(void *ptr, int ref_count) override {
    return ptr == nullptr ? -1 : Count(ptr)->fetch_sub(ref_count) - ref_count;
  }

  int IncRefCount(void *ptr, int ref_count) override {
    return ptr == nullptr ? -1 : Count(ptr)->fetch_add(ref_count) + ref_count;
  }

 private:
  std::atomic<int> *Count(void *ptr) const {
    return reinterpret_cast<std::atomic<int> *>(static_cast<char *>(ptr) - aligned_size_);
  }
};
}  // namespace

std::shared_ptr<Allocator> Allocator::Create() { return std::make_shared<HeapAllocator>(); }
}  // namespace mindspore
