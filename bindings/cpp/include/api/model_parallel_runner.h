// Many requests at once on one model: a pool of workers behind one object.
#ifndef MINDSPORE_INCLUDE_API_MODEL_PARALLEL_RUNNER_H
#define MINDSPORE_INCLUDE_API_MODEL_PARALLEL_RUNNER_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "include/api/context.h"
#include "include/api/status.h"

namespace mindspore {
// How a runner is made. Read by Init, never written to; copies share their state. Not to be changed
// by one thread while another one uses it.
class MS_API RunnerConfig {
 public:
  struct Data;
  RunnerConfig();
  ~RunnerConfig();

  void SetWorkersNum(int32_t workers_num);  // 0: as many as suit the machine
  int32_t GetWorkersNum() const;

  // Null is ignored. Without a context the runner is one for the CPU.
  void SetContext(const std::shared_ptr<Context> &context);
  std::shared_ptr<Context> GetContext() const;

  // Sets a whole section of the configuration; refused, with words on stderr, when there are more
  // than 100 sections already, or more than 1000 entries. For a model from memory whose weights
  // are in files: section "model_file", key "mindir_path".
  inline void SetConfigInfo(const std::string &section,
                            const std::map<std::string, std::string> &config);
  inline std::map<std::string, std::map<std::string, std::string>> GetConfigInfo() const;

  // An INI file; what SetConfigInfo sets counts before it.
  inline void SetConfigPath(const std::string &config_path);
  inline std::string GetConfigPath() const;

  // Worker i runs on device i modulo their number; not for the CPU.
  void SetDeviceIds(const std::vector<uint32_t> &device_ids);
  std::vector<uint32_t> GetDeviceIds() const;

 private:
  void SetConfigInfo(const std::vector<char> &section,
                     const std::map<std::vector<char>, std::vector<char>> &config);
  std::map<std::vector<char>, std::map<std::vector<char>, std::vector<char>>> GetConfigInfoChar()
      const;
  void SetConfigPath(const std::vector<char> &config_path);
  std::vector<char> GetConfigPathChar() const;

  std::shared_ptr<Data> data_;
};

class ModelParallelRunnerImpl;

// Any number of threads may be in GetInputs, GetOutputs and Predict at once, each with tensors of
// its own. Copies are the same runner; it goes with the last of them, after the calls in it.
class MS_API ModelParallelRunner {
 public:
  ModelParallelRunner();
  ~ModelParallelRunner();

  // A file of suffix .ms is a lite model, which is refused; any other one is a MindIR. After a
  // failure it may be called again; after success it changes nothing more.
  inline Status Init(const std::string &model_path,
                     const std::shared_ptr<RunnerConfig> &runner_config = nullptr);
  // The bytes of a MindIR; they are not needed after the call.
  Status Init(const void *model_data, const size_t data_size,
              const std::shared_ptr<RunnerConfig> &runner_config = nullptr);

  // New tensors without data at every call; none before Init.
  std::vector<MSTensor> GetInputs();
  std::vector<MSTensor> GetOutputs();

  // Waits for the result. An empty `outputs` gets new tensors; of tensors in it, those whose memory
  // is just as large as the result receive it, and the others are replaced.
  // There are no operators to see from here, so the callbacks are not called.
  Status Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs,
                 const MSKernelCallBack &before = nullptr, const MSKernelCallBack &after = nullptr);

  // Not in the original. The same for a request of a priority from -100 to 100; Predict has 0. Of
  // the requests that wait, those of a higher one start first; every 100 ms of waiting count as one
  // more. Any other number is kLiteParamInvalid.
  Status PredictWithPriority(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs,
                             int32_t priority);

 private:
  Status Init(const std::vector<char> &model_path,
              const std::shared_ptr<RunnerConfig> &runner_config);

  std::shared_ptr<ModelParallelRunnerImpl> impl_;
};

void RunnerConfig::SetConfigInfo(const std::string &section,
                                 const std::map<std::string, std::string> &config) {
  SetConfigInfo(StringToChar(section), MapStringToVectorChar(config));
}
std::map<std::string, std::map<std::string, std::string>> RunnerConfig::GetConfigInfo() const {
  return MapMapCharToString(GetConfigInfoChar());
}
void RunnerConfig::SetConfigPath(const std::string &config_path) {
  SetConfigPath(StringToChar(config_path));
}
std::string RunnerConfig::GetConfigPath() const { return CharToString(GetConfigPathChar()); }

Status ModelParallelRunner::Init(const std::string &model_path,
                                 const std::shared_ptr<RunnerConfig> &runner_config) {
  return Init(StringToChar(model_path), runner_config);
}
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_MODEL_PARALLEL_RUNNER_H
