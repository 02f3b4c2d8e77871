// What is behind a Model: the configuration before it is built, then a model of the worker.
#ifndef MSLITE_SRC_MODEL_IMPL_H_
#define MSLITE_SRC_MODEL_IMPL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "include/api/context.h"
#include "include/api/types.h"
#include "src/group.h"
#include "src/wire/session.h"

namespace mindspore {
// Functions throw mslite::Failure. One at a time is in here, so that Predict calls on one Model are
// safe, but follow each other.
class ModelImpl {
 public:
  ModelImpl() = default;
  ~ModelImpl();
  ModelImpl(const ModelImpl &) = delete;
  ModelImpl &operator=(const ModelImpl &) = delete;

  void LoadConfig(const std::string &path);
  void UpdateConfig(const std::string &section, const std::pair<std::string, std::string> &entry);
  // `request` says what to build; what the context and the configuration say is added here.
  void Build(mslite::BuildRequest request, const std::shared_ptr<Context> &context);
  void Resize(const std::vector<MSTensor> &inputs, const std::vector<std::vector<int64_t>> &dims);
  void Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs);
  void RunStep();  // on the model's own tensors
  void UpdateWeights(const std::vector<std::vector<MSTensor>> &weights);
  void Finalize();
  std::string Info(const std::string &key);
  std::vector<MSTensor> Inputs();
  std::vector<MSTensor> Outputs();
  void CheckCanJoin();
  void Join(const mslite::GroupKey &group);

 private:
  // Throws in a child of the process that built the model: there the lock may be held for ever, by
  // a thread that is not there.
  std::unique_lock<std::recursive_mutex> Enter();
  void CheckBuilt(const std::string &doing) const;
  void Release() noexcept;
  void Describe(const mslite::Description &description);

  std::recursive_mutex lock_;
  std::atomic<uint64_t> built_in_{0};  // the Generation() of it; 0: not built
  mslite::Sections config_;
  mslite::GroupKey group_;
  bool is_on_ascend_ = false;
  std::shared_ptr<mslite::Session> session_;  // null: not built
  uint32_t model_ = 0;
  uint64_t timeout_us_ = 0;  // of a Predict; 0: none
  std::vector<MSTensor> inputs_;
  std::vector<MSTensor> outputs_;
};
}  // namespace mindspore
#endif  // MSLITE_SRC_MODEL_IMPL_H_
