// Delegates run parts of a model by code of the user, within this process. Models run in a worker
// process here, so there are none: these names stand for the signatures of Context alone.
#ifndef MINDSPORE_INCLUDE_API_DELEGATE_H
#define MINDSPORE_INCLUDE_API_DELEGATE_H

#include "include/api/visible.h"

namespace mindspore {
class MS_API AbstractDelegate {
 public:
  virtual ~AbstractDelegate() = default;
};

class MS_API Delegate {
 public:
  virtual ~Delegate() = default;
};
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_DELEGATE_H
