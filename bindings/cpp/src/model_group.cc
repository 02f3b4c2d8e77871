#include "include/api/model_group.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "src/border.h"
#include "src/build_request.h"
#include "src/config_file.h"
#include "src/failure.h"
#include "src/group.h"
#include "src/model_impl.h"

namespace mindspore {
namespace {
using mslite::Failure;
using mslite::Guarded;

mslite::GroupKey NewKey(ModelGroupFlag flags) {
  static std::atomic<uint64_t> count{0};
  const char *share = flags == ModelGroupFlag::kShareWeight      ? "weight"
                      : flags == ModelGroupFlag::kShareWorkspace ? "workspace"
                                                                 : "weight,workspace";
  return {std::to_string(++count), share};
}

Failure Refused(const std::string &why) {
  return Failure(kLiteError, "ValueError", "AddModel is refused: " + why);
}
}  // namespace

class ModelGroupImpl {
 public:
  explicit ModelGroupImpl(ModelGroupFlag flags) : flags_(flags), key_(NewKey(flags)) {}

  void AddFiles(const std::vector<std::string> &paths);
  void AddContents(const std::vector<std::pair<const void *, size_t>> &contents);
  void AddModels(const std::vector<Model> &models);
  void Measure(ModelType type, const std::shared_ptr<Context> &context);

 private:
  void CheckFlags() const;

  const ModelGroupFlag flags_;
  const mslite::GroupKey key_;
  std::mutex lock_;
  std::vector<std::string> files_;
  std::vector<std::pair<const void *, size_t>> contents_;
};

void ModelGroupImpl::CheckFlags() const {
  if (flags_ < ModelGroupFlag::kShareWeight || flags_ > ModelGroupFlag::kShareWeightAndWorkspace) {
    throw Refused("the group's flag is " + std::to_string(static_cast<int>(flags_)) +
                  ", wanted kShareWeight, kShareWorkspace or kShareWeightAndWorkspace");
  }
}

void ModelGroupImpl::AddFiles(const std::vector<std::string> &paths) {
  CheckFlags();
  if (paths.empty()) {
    throw Failure(kLiteParamInvalid, "ValueError", "AddModel got an empty list of paths");
  }
  std::lock_guard<std::mutex> guard(lock_);
  for (const auto &path : paths) {
    if (!path.empty()) {
      files_.push_back(mslite::Absolute(path));
      mslite::AddFile(files_.back(), key_);
    }
  }
}

void ModelGroupImpl::AddContents(const std::vector<std::pair<const void *, size_t>> &contents) {
  CheckFlags();
  if (contents.empty()) {
    throw Failure(kLiteParamInvalid, "ValueError", "AddModel got an empty list of models");
  }
  if (flags_ != ModelGroupFlag::kShareWorkspace) {
    throw Refused("bytes of models go with kShareWorkspace only; add paths, or Models");
  }
  for (const auto &content : contents) {
    if (content.first == nullptr || content.second == 0) {
      throw Failure(kLiteParamInvalid, "ValueError", "AddModel got a model without bytes");
    }
  }
  std::lock_guard<std::mutex> guard(lock_);
  for (const auto &content : contents) {
    contents_.push_back(content);
    mslite::AddContent(content.first, content.second, key_);
  }
}

void ModelGroupImpl::AddModels(const std::vector<Model> &models) {
  CheckFlags();
  if (models.empty()) {
    throw Failure(kLiteParamInvalid, "ValueError", "AddModel got an empty list of models");
  }
  if (flags_ == ModelGroupFlag::kShareWorkspace) {
    throw Refused("Models go with kShareWeight; add paths to share workspace");
  }
  for (const auto &model : models) {
    model.impl()->CheckCanJoin();  // all or none
  }
  for (const auto &model : models) {
    model.impl()->Join(key_);
  }
}

// Every model is built once: then it is known that all of them can be, and later builds are quick.
// How much workspace they share is for the worker to know.
void ModelGroupImpl::Measure(ModelType type, const std::shared_ptr<Context> &context) {
  std::lock_guard<std::mutex> guard(lock_);
  if (files_.empty() && contents_.empty()) {
    throw Failure(kLiteError, "ValueError",
                  "no models were added to the group; call AddModel first");
  }
  for (const auto &path : files_) {
    ModelImpl().Build(mslite::OfFile(path, type), context);
  }
  for (const auto &content : contents_) {
    ModelImpl().Build(mslite::OfContent(content.first, content.second, type), context);
  }
  files_.clear();
  contents_.clear();
}

ModelGroup::ModelGroup(ModelGroupFlag flags) : impl_(std::make_shared<ModelGroupImpl>(flags)) {}
ModelGroup::~ModelGroup() = default;

Status ModelGroup::AddModel(const std::vector<std::vector<char>> &model_path_list) {
  return Guarded([&] { impl_->AddFiles(VectorCharToString(model_path_list)); });
}

Status ModelGroup::AddModel(const std::vector<std::pair<const void *, size_t>> &model_buff_list) {
  return Guarded([&] { impl_->AddContents(model_buff_list); });
}

Status ModelGroup::AddModel(const std::vector<Model> &model_list) {
  return Guarded([&] { impl_->AddModels(model_list); });
}

Status ModelGroup::CalMaxSizeOfWorkspace(ModelType model_type,
                                         const std::shared_ptr<Context> &ms_context) {
  return Guarded([&] { impl_->Measure(model_type, ms_context); });
}
}  // namespace mindspore
