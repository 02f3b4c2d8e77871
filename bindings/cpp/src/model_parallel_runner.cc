#include "include/api/model_parallel_runner.h"

#include <string>
#include <utility>

#include "src/border.h"
#include "src/build_request.h"
#include "src/callbacks.h"
#include "src/runner_impl.h"

namespace mindspore {
namespace {
using mslite::Guarded;
using mslite::OrElse;

bool EndsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Whatever goes wrong has the original's one code; the message says what it was.
template <class Act>
Status Initialised(const Act &act) {
  Status status = Guarded(act);
  return status.IsOk() ? status : Status(kLiteError, status.ToString());
}
}  // namespace

ModelParallelRunner::ModelParallelRunner() : impl_(std::make_shared<ModelParallelRunnerImpl>()) {}
ModelParallelRunner::~ModelParallelRunner() = default;

Status ModelParallelRunner::Init(const std::vector<char> &model_path,
                                 const std::shared_ptr<RunnerConfig> &runner_config) {
  auto shared = impl_->shared();
  return Initialised([&] {
    std::string path = CharToString(model_path);
    ModelType type = EndsWith(path, ".ms") ? kMindIR_Lite : kMindIR;
    shared->Init([&] { return mslite::OfFile(path, type); }, runner_config);
  });
}

Status ModelParallelRunner::Init(const void *model_data, const size_t data_size,
                                 const std::shared_ptr<RunnerConfig> &runner_config) {
  auto shared = impl_->shared();
  return Initialised([&] {
    shared->Init([&] { return mslite::OfContent(model_data, data_size, kMindIR); }, runner_config);
  });
}

std::vector<MSTensor> ModelParallelRunner::GetInputs() {
  return OrElse(std::vector<MSTensor>(), [&] { return impl_->shared()->Inputs(); });
}

std::vector<MSTensor> ModelParallelRunner::GetOutputs() {
  return OrElse(std::vector<MSTensor>(), [&] { return impl_->shared()->Outputs(); });
}

Status ModelParallelRunner::Predict(const std::vector<MSTensor> &inputs,
                                    std::vector<MSTensor> *outputs, const MSKernelCallBack &before,
                                    const MSKernelCallBack &after) {
  auto shared = impl_->shared();  // outlives the runner, if that is deleted meanwhile
  mslite::WarnOfCallBacks(before, after);
  return Guarded([&] { shared->Predict(inputs, outputs); });
}

Status ModelParallelRunner::PredictWithPriority(const std::vector<MSTensor> &inputs,
                                                std::vector<MSTensor> *outputs, int32_t priority) {
  auto shared = impl_->shared();
  return Guarded([&] { shared->Predict(inputs, outputs, priority); });
}
}  // namespace mindspore
