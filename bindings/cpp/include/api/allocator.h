// Where tensors get memory from, for programs that want to have a say in it.
#ifndef MINDSPORE_INCLUDE_API_ALLOCATOR_H
#define MINDSPORE_INCLUDE_API_ALLOCATOR_H

#include <cstddef>
#include <memory>

#include "include/api/types.h"

namespace mindspore {
// Called by whichever thread needs memory, perhaps by several at once.
class MS_API Allocator {
 public:
  virtual ~Allocator() = default;

  virtual void *Malloc(size_t size) = 0;  // null: there is not enough
  // Memory for an image; not used here.
  virtual void *Malloc(size_t /* weight */, size_t /* height */, enum DataType /* type */) {
    return nullptr;
  }
  virtual void Free(void *ptr) = 0;

  // Counts of references that a program may keep per piece of memory; each returns the new count.
  virtual int RefCount(void *ptr) = 0;
  virtual int SetRefCount(void *ptr, int ref_count) = 0;
  virtual int DecRefCount(void *ptr, int ref_count) = 0;
  virtual int IncRefCount(void *ptr, int ref_count) = 0;

  // One on the heap; safe in threads.
  static std::shared_ptr<Allocator> Create();

  virtual void *Prepare(void *ptr) { return ptr; }

 protected:
  size_t aligned_size_ = 32;
};
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_ALLOCATOR_H
