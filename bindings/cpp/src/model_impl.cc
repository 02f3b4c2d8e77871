#include "src/model_impl.h"

#include <limits>
#include <utility>

#include "src/build_request.h"
#include "src/config_file.h"
#include "src/exchange.h"
#include "src/failure.h"
#include "src/log.h"
#include "src/tensor_impl.h"
#include "src/wire/descriptor.h"
#include "src/wire/errors.h"

namespace mindspore {
namespace {
using mslite::Failure;

// The original's code for whatever is wrong with the tensors of a Predict.
Failure AsCoreFailed(const Failure &failure) {
  bool is_about_inputs = failure.kind() == "InputError" || failure.kind() == "ShapeError";
  return is_about_inputs ? Failure(kCoreFailed, failure.kind(), failure.what()) : failure;
}

void CheckDims(const std::vector<std::vector<int64_t>> &dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    for (int64_t dim : dims[i]) {
      if (dim <= 0 || dim > std::numeric_limits<int32_t>::max()) {
        throw Failure(kLiteInputParamInvalid, "ShapeError",
                      "Resize gives input " + std::to_string(i) + " the dim " +
                          std::to_string(dim) + ", wanted 1 to 2147483647");
      }
    }
  }
}
}  // namespace

ModelImpl::~ModelImpl() { Release(); }

void ModelImpl::Release() noexcept {
  if (session_ != nullptr) {
    session_->Close(model_);
    session_ = nullptr;
  }
}

std::unique_lock<std::recursive_mutex> ModelImpl::Enter() {
  const uint64_t built_in = built_in_.load();
  if (built_in != 0 && built_in != mslite::Generation()) throw mslite::ForkedFailure();
  return std::unique_lock<std::recursive_mutex>(lock_);
}

void ModelImpl::CheckBuilt(const std::string &doing) const {
  if (session_ == nullptr) {
    throw Failure(kLiteError, "ClosedError",
                  doing + " needs a model that is built; call Build first");
  }
}

void ModelImpl::LoadConfig(const std::string &path) {
  const auto guard = Enter();
  if (session_ != nullptr) {
    throw Failure(kLiteFileError, "ClosedError", "LoadConfig comes too late: the model is built");
  }
  mslite::Merge(mslite::ReadConfigFile(path), &config_);
}

void ModelImpl::UpdateConfig(const std::string &section,
                             const std::pair<std::string, std::string> &entry) {
  const auto guard = Enter();
  auto found = config_.find(section);
  bool is_new = found == config_.end() || found->second.count(entry.first) == 0;
  size_t entries = found == config_.end() ? 0 : found->second.size();
  mslite::CheckRoom(config_, section, entries + (is_new ? 1 : 0));
  config_[section][entry.first] = entry.second;
}

void ModelImpl::CheckCanJoin() {
  const auto guard = Enter();
  if (session_ != nullptr) {
    throw Failure(kLiteError, "ClosedError", "a model can be added to a group before Build only");
  }
  if (!group_.name.empty()) {
    throw Failure(kLiteError, "ValueError", "the model is in a group already");
  }
}

void ModelImpl::Join(const mslite::GroupKey &group) {
  const auto guard = Enter();
  CheckCanJoin();
  group_ = group;
}

void ModelImpl::Build(mslite::BuildRequest request, const std::shared_ptr<Context> &context) {
  const auto guard = Enter();
  if (session_ != nullptr) {
    throw Failure(kLiteModelRebuild, "ClosedError",
                  "the model is built already; make another Model");
  }
  if (context == nullptr) {
    throw Failure(kLiteError, "ValueError", "Build needs a context, got a null pointer");
  }
  request.kind = mslite::BuildRequest::kModel;
  request.config = config_;
  mslite::MakePathsAbsolute("", &request.config);
  mslite::AddContext(*context, &request);
  mslite::AddGroup(group_.name.empty() ? mslite::GroupOf(request) : group_, &request);
  auto session = mslite::Session::Current();
  mslite::Built built = session->Build(request);
  for (const auto &note : built.notes) {
    mslite::LogWarning(note);
  }
  session_ = session;
  model_ = built.model;
  timeout_us_ = session->TimeoutUs(model_);
  built_in_.store(mslite::Generation());
  is_on_ascend_ = context->MutableDeviceInfo().front()->GetDeviceType() == kAscend;
  inputs_ = mslite::EmptyTensors(built.description.inputs, session_);
  outputs_ = mslite::EmptyTensors(built.description.outputs, session_);
}

void ModelImpl::Resize(const std::vector<MSTensor> &inputs,
                       const std::vector<std::vector<int64_t>> &dims) {
  const auto guard = Enter();
  CheckBuilt("Resize");
  if (inputs.empty() || inputs.size() != dims.size() || inputs.size() != inputs_.size()) {
    throw Failure(kLiteInputParamInvalid, "InputError",
                  "Resize got " + std::to_string(inputs.size()) + " inputs and " +
                      std::to_string(dims.size()) + " shapes, the model has " +
                      std::to_string(inputs_.size()) + " inputs; give all of them");
  }
  CheckDims(dims);
  // A shape belongs to its tensor where that is the model's own, whatever the order.
  auto ordered = dims;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t own = 0; own < inputs_.size(); ++own) {
      if (inputs[i] == inputs_[own]) {
        ordered[own] = dims[i];
      }
    }
  }
  Describe(session_->Resize(model_, ordered));
}

void ModelImpl::Describe(const mslite::Description &description) {
  auto take = [](const std::vector<mslite::TensorInfo> &infos,
                 const std::vector<MSTensor> &tensors) {
    for (size_t i = 0; i < tensors.size() && i < infos.size(); ++i) {
      tensors[i].impl()->shape = infos[i].shape;
      tensors[i].impl()->memory = nullptr;
      tensors[i].impl()->is_result = false;
    }
  };
  take(description.inputs, inputs_);
  take(description.outputs, outputs_);
}

void ModelImpl::Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs) {
  const auto guard = Enter();
  CheckBuilt("Predict");
  if (outputs == nullptr) {
    throw Failure(kCoreFailed, "ValueError", "Predict needs a vector for the outputs, got nullptr");
  }
  std::vector<mslite::Filled> results;
  try {
    mslite::CallOptions options;
    options.timeout_us = timeout_us_;
    results = session_->Predict(model_, mslite::Contents(inputs, "input"), options);
  } catch (const Failure &failure) {
    throw AsCoreFailed(failure);
  }
  std::vector<MSTensor> given = std::move(*outputs);
  outputs->clear();
  for (size_t i = 0; i < results.size() && i < outputs_.size(); ++i) {
    bool is_copied = i < given.size() && mslite::CopyInto(results[i], given[i]);
    if (!is_copied || given[i] != outputs_[i]) {  // the model's own tensors have the last result
      mslite::Bind(results[i], &outputs_[i]);
    }
    outputs->push_back(is_copied ? given[i] : outputs_[i]);
  }
}

void ModelImpl::RunStep() {
  const auto guard = Enter();
  std::vector<MSTensor> outputs = outputs_;
  Predict(inputs_, &outputs);
}

void ModelImpl::UpdateWeights(const std::vector<std::vector<MSTensor>> &weights) {
  const auto guard = Enter();
  CheckBuilt("UpdateWeights");
  std::vector<std::vector<mslite::Filled>> groups;
  for (const auto &group : weights) {
    groups.push_back(mslite::Contents(group, "weight"));
  }
  session_->UpdateWeights(model_, groups);
}

void ModelImpl::Finalize() {
  const auto guard = Enter();
  CheckBuilt("Finalize");
  if (!is_on_ascend_) {
    throw Failure(kLiteError, "EngineUnavailableError",
                  "Finalize is for models on Ascend; others are released with their last handle");
  }
  Release();
  inputs_.clear();
  outputs_.clear();
}

std::string ModelImpl::Info(const std::string &key) {
  const auto guard = Enter();
  CheckBuilt("GetModelInfo");
  return session_->Info(model_, key);
}

std::vector<MSTensor> ModelImpl::Inputs() {
  const auto guard = Enter();
  return inputs_;
}

std::vector<MSTensor> ModelImpl::Outputs() {
  const auto guard = Enter();
  return outputs_;
}
}  // namespace mindspore
