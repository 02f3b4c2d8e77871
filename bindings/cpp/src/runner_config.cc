#include "include/api/model_parallel_runner.h"
#include "src/config_file.h"
#include "src/log.h"

namespace mindspore {
struct RunnerConfig::Data {
  int32_t workers_num = 0;
  std::shared_ptr<Context> context;
  std::map<std::vector<char>, std::map<std::vector<char>, std::vector<char>>> sections;
  std::vector<char> config_path;
  std::vector<uint32_t> device_ids;
};

RunnerConfig::RunnerConfig() : data_(std::make_shared<Data>()) {}
RunnerConfig::~RunnerConfig() = default;

void RunnerConfig::SetWorkersNum(int32_t workers_num) { data_->workers_num = workers_num; }
int32_t RunnerConfig::GetWorkersNum() const { return data_->workers_num; }

void RunnerConfig::SetContext(const std::shared_ptr<Context> &context) {
  if (context != nullptr) data_->context = context;
}
std::shared_ptr<Context> RunnerConfig::GetContext() const { return data_->context; }

void RunnerConfig::SetConfigInfo(const std::vector<char> &section,
                                 const std::map<std::vector<char>, std::vector<char>> &config) {
  if (data_->sections.size() > mslite::kMaxSections) {
    mslite::LogError("SetConfigInfo: there are more than 100 sections already; section '" +
                     CharToString(section) + "' is not taken");
    return;
  }
  if (config.size() > mslite::kMaxEntries) {
    mslite::LogError("SetConfigInfo: section '" + CharToString(section) + "' has " +
                     std::to_string(config.size()) +
                     " entries, at most 1000 are allowed; it is not taken");
    return;
  }
  data_->sections[section] = config;
}
std::map<std::vector<char>, std::map<std::vector<char>, std::vector<char>>>
RunnerConfig::GetConfigInfoChar() const {
  return data_->sections;
}

void RunnerConfig::SetConfigPath(const std::vector<char> &config_path) {
  data_->config_path = config_path;
}
std::vector<char> RunnerConfig::GetConfigPathChar() const { return data_->config_path; }

void RunnerConfig::SetDeviceIds(const std::vector<uint32_t> &device_ids) {
  data_->device_ids = device_ids;
}
std::vector<uint32_t> RunnerConfig::GetDeviceIds() const { return data_->device_ids; }
}  // namespace mindspore
