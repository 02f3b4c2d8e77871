#include "src/runner_impl.h"

#include <string>
#include <utility>

#include "src/build_request.h"
#include "src/config_file.h"
#include "src/exchange.h"
#include "src/failure.h"
#include "src/log.h"
#include "src/wire/descriptor.h"
#include "src/wire/errors.h"

namespace mslite {
namespace {
using mindspore::MSTensor;

constexpr int32_t kLowestPriority = -100;
constexpr int32_t kHighestPriority = 100;

// The RunnerConfig's part of a request; without one, or without a context in it, the CPU's
// defaults.
void AddConfig(const std::shared_ptr<mindspore::RunnerConfig> &config, BuildRequest *request) {
  std::shared_ptr<mindspore::Context> context;
  if (config != nullptr) {
    context = config->GetContext();
    if (!config->GetConfigPath().empty()) {
      request->config = ReadConfigFile(config->GetConfigPath());
    }
    Merge(config->GetConfigInfo(), &request->config);
    MakePathsAbsolute("", &request->config);
    if (config->GetWorkersNum() != 0) {
      request->settings.emplace_back("parallel.workers_num",
                                     std::to_string(config->GetWorkersNum()));
    }
    std::string ids;
    for (uint32_t id : config->GetDeviceIds()) {
      ids += (ids.empty() ? "" : ",") + std::to_string(id);
    }
    if (!ids.empty()) {
      request->settings.emplace_back("parallel.device_ids", ids);
    }
  }
  if (context != nullptr) {
    AddContext(*context, request);
  }
}
}  // namespace

SharedRunner::SharedRunner() : made_in_(Generation()) {}

void SharedRunner::CheckIsOurs() const {
  const uint64_t built_in = built_in_.load();
  if (built_in != 0 && built_in != Generation()) {
    throw ForkedFailure();
  }
}

class SharedRunner::Use {
 public:
  explicit Use(SharedRunner *shared) : shared_(shared) {
    shared_->CheckIsOurs();
    std::lock_guard<std::mutex> guard(shared_->lock_);
    runner_ = shared_->runner_;
    shared_->uses_ += 1;
  }
  ~Use() {
    std::lock_guard<std::mutex> guard(shared_->lock_);
    shared_->uses_ -= 1;
    if (shared_->uses_ == 0) {
      shared_->unused_.notify_all();
    }
  }
  Use(const Use &) = delete;
  Use &operator=(const Use &) = delete;

  const Runner *runner() const { return runner_.get(); }

 private:
  SharedRunner *shared_;
  std::shared_ptr<const Runner> runner_;
};

void SharedRunner::Init(const std::function<BuildRequest()> &make_request,
                        const std::shared_ptr<mindspore::RunnerConfig> &config) {
  CheckIsOurs();
  std::lock_guard<std::mutex> building(building_);
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (is_closed_) {
      throw Failure(mindspore::kLiteError, "ClosedError", "the runner is being deleted");
    }
    if (runner_ != nullptr) {
      return;
    }
  }
  BuildRequest request = make_request();
  request.kind = BuildRequest::kRunner;
  AddConfig(config, &request);
  auto runner = std::make_shared<Runner>();
  runner->session = Session::Current();
  Built built = runner->session->Build(request);
  for (const auto &note : built.notes) {
    LogWarning(note);
  }
  runner->model = built.model;
  runner->timeout_us = runner->session->TimeoutUs(runner->model);
  runner->description = std::move(built.description);
  std::lock_guard<std::mutex> guard(lock_);
  runner_ = std::move(runner);
  built_in_.store(Generation());
}

void SharedRunner::Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs,
                           int32_t priority) {
  Use use(this);
  if (use.runner() == nullptr) {
    throw Failure(mindspore::kLiteNullptr, "ClosedError",
                  "Predict needs a runner; call Init first");
  }
  if (outputs == nullptr) {
    throw Failure(mindspore::kLiteNullptr, "ValueError",
                  "Predict needs a vector for the outputs, got nullptr");
  }
  if (inputs.empty()) {
    throw Failure(mindspore::kLiteError, "InputError", "Predict got no inputs; GetInputs has them");
  }
  if (priority < kLowestPriority || priority > kHighestPriority) {
    throw Failure(mindspore::kLiteParamInvalid, "ValueError",
                  "the priority must be -100 to 100, but got " + std::to_string(priority) +
                      "; 0 is usual, and higher ones start first");
  }
  const Runner &runner = *use.runner();
  CallOptions options;
  options.timeout_us = runner.timeout_us;
  options.priority = static_cast<int8_t>(priority);
  auto results = runner.session->Predict(runner.model, Contents(inputs, "input"), options);
  std::vector<MSTensor> given = std::move(*outputs);
  outputs->clear();
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < given.size() && CopyInto(results[i], given[i])) {
      outputs->push_back(given[i]);
    } else {
      outputs->push_back(EmptyTensor(results[i].info, runner.session));
      Bind(results[i], &outputs->back());
    }
  }
}

std::vector<MSTensor> SharedRunner::Inputs() {
  Use use(this);
  auto runner = use.runner();
  return runner == nullptr ? std::vector<MSTensor>()
                           : EmptyTensors(runner->description.inputs, runner->session);
}

std::vector<MSTensor> SharedRunner::Outputs() {
  Use use(this);
  auto runner = use.runner();
  return runner == nullptr ? std::vector<MSTensor>()
                           : EmptyTensors(runner->description.outputs, runner->session);
}

void SharedRunner::Close() noexcept {
  const uint64_t built_in = built_in_.load();
  if ((built_in == 0 ? made_in_ : built_in) != Generation()) {
    return;  // of a parent, whose threads are not here to leave what they are in
  }
  std::shared_ptr<const Runner> runner;
  {
    std::lock_guard<std::mutex> building(building_);  // what an Init makes now would be nobody's
    std::unique_lock<std::mutex> guard(lock_);
    is_closed_ = true;
    runner.swap(runner_);  // later calls find none
    unused_.wait(guard, [this] { return uses_ == 0; });
  }
  if (runner != nullptr) {
    runner->session->Close(runner->model);
  }
}
}  // namespace mslite
