// Models that share memory.
#ifndef MINDSPORE_INCLUDE_API_MODEL_GROUP_H
#define MINDSPORE_INCLUDE_API_MODEL_GROUP_H

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "include/api/context.h"
#include "include/api/model.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace mindspore {
class ModelGroupImpl;

enum class ModelGroupFlag : int {
  kUnknown = 0,
  kShareWeight = 1,
  kShareWorkspace = 2,
  kShareWeightAndWorkspace = 3,
};

// With paths: AddModel, CalMaxSizeOfWorkspace, then Model::Build with the same paths. With models:
// AddModel, then Model::Build. Safe in threads; copies share their state.
class MS_API ModelGroup {
 public:
  explicit ModelGroup(ModelGroupFlag flags = ModelGroupFlag::kShareWorkspace);
  ~ModelGroup();

  inline Status AddModel(const std::vector<std::string> &model_path_list);
  // For kShareWorkspace only. The bytes must live until CalMaxSizeOfWorkspace has returned.
  Status AddModel(const std::vector<std::pair<const void *, size_t>> &model_buff_list);
  // For kShareWeight only, and before the models are built.
  Status AddModel(const std::vector<Model> &model_list);

  Status CalMaxSizeOfWorkspace(ModelType model_type, const std::shared_ptr<Context> &ms_context);

 private:
  Status AddModel(const std::vector<std::vector<char>> &model_path_list);

  std::shared_ptr<ModelGroupImpl> impl_;
};

Status ModelGroup::AddModel(const std::vector<std::string> &model_path_list) {
  return AddModel(VectorStringToChar(model_path_list));
}
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_MODEL_GROUP_H
