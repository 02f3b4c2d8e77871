// The configuration of training, which there is none of here: for the signature of Model::Build.
#ifndef MINDSPORE_INCLUDE_API_CFG_H
#define MINDSPORE_INCLUDE_API_CFG_H

#include "include/api/data_type.h"
#include "include/api/dual_abi_helper.h"
#include "include/api/types.h"

namespace mindspore {
class TrainCfg {
 public:
  OptimizationLevel optimization_level_ = kO0;
  bool accumulate_gradients_ = false;
};
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_CFG_H
