// What is behind a ModelParallelRunner: a runner of the worker, used by any number of threads.
//
// Calls hold a SharedRunner as long as they last; the handles of the user hold the
// ModelParallelRunnerImpl, whose end closes that: it waits for the calls that are inside, and
// refuses later ones.
#ifndef MSLITE_SRC_RUNNER_IMPL_H_
#define MSLITE_SRC_RUNNER_IMPL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "include/api/model_parallel_runner.h"
#include "src/wire/session.h"

namespace mslite {
class SharedRunner {
 public:
  SharedRunner();
  // Throws Failure. Does nothing when there is a runner already, as the original; `make_request`,
  // which says what to build, is not even called then.
  void Init(const std::function<BuildRequest()> &make_request,
            const std::shared_ptr<mindspore::RunnerConfig> &config);
  void Predict(const std::vector<mindspore::MSTensor> &inputs,
               std::vector<mindspore::MSTensor> *outputs, int32_t priority = 0);
  // Fresh tensors, so that every thread has its own; none before Init.
  std::vector<mindspore::MSTensor> Inputs();
  std::vector<mindspore::MSTensor> Outputs();
  // Waits for whatever is inside, Init as well.
  void Close() noexcept;

 private:
  struct Runner {
    std::shared_ptr<Session> session;
    uint32_t model = 0;
    uint64_t timeout_us = 0;  // of a Predict; 0: none
    Description description;
  };
  class Use;  // keeps Close() waiting

  void CheckIsOurs() const;  // throws in a child of the process that built it

  // A child of the process has a copy of this, but not of the threads that may hold its locks.
  const uint64_t made_in_;             // a Generation()
  std::atomic<uint64_t> built_in_{0};  // 0: not built
  std::mutex building_;                // one Init at a time; the others find it done
  std::mutex lock_;                    // of what follows
  std::condition_variable unused_;
  std::shared_ptr<const Runner> runner_;  // null: not there
  size_t uses_ = 0;
  bool is_closed_ = false;
};
}  // namespace mslite

namespace mindspore {
class ModelParallelRunnerImpl {
 public:
  ModelParallelRunnerImpl() : shared_(std::make_shared<mslite::SharedRunner>()) {}
  ~ModelParallelRunnerImpl() { shared_->Close(); }
  ModelParallelRunnerImpl(const ModelParallelRunnerImpl &) = delete;
  ModelParallelRunnerImpl &operator=(const ModelParallelRunnerImpl &) = delete;

  std::shared_ptr<mslite::SharedRunner> shared() const { return shared_; }

 private:
  std::shared_ptr<mslite::SharedRunner> shared_;
};
}  // namespace mindspore
#endif  // MSLITE_SRC_RUNNER_IMPL_H_
