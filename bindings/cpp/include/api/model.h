// A model: built once, run often.
#ifndef MINDSPORE_INCLUDE_API_MODEL_H
#define MINDSPORE_INCLUDE_API_MODEL_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "include/api/callback/callback.h"
#include "include/api/cell.h"
#include "include/api/cfg.h"
#include "include/api/context.h"
#include "include/api/dual_abi_helper.h"
#include "include/api/graph.h"
#include "include/api/status.h"
#include "include/api/types.h"

namespace mindspore {
class ModelImpl;
class Metrics;

// Copies are the same model; it goes with the last of them. Every function may be called by any
// thread; calls on one model run one after the other. For requests at the same time:
// ModelParallelRunner.
class MS_API Model {
 public:
  Model();
  ~Model();

  // From the bytes of a file, which are not needed after the call, or from a file. It starts the
  // worker process that runs models, where this process has none yet. A context is needed, with at
  // least one device. A model is built once: afterwards the code is kLiteModelRebuild.
  Status Build(const void *model_data, size_t data_size, ModelType model_type,
               const std::shared_ptr<Context> &model_context = nullptr);
  inline Status Build(const std::string &model_path, ModelType model_type,
                      const std::shared_ptr<Context> &model_context = nullptr);
  // The same for an encrypted model. The worker decrypts; `cropto_lib_path` is not looked at.
  inline Status Build(const void *model_data, size_t data_size, ModelType model_type,
                      const std::shared_ptr<Context> &model_context, const Key &dec_key,
                      const std::string &dec_mode, const std::string &cropto_lib_path);
  inline Status Build(const std::string &model_path, ModelType model_type,
                      const std::shared_ptr<Context> &model_context, const Key &dec_key,
                      const std::string &dec_mode, const std::string &cropto_lib_path);

  // Before Build: an INI file, and single entries, of which the later one counts.
  inline Status LoadConfig(const std::string &config_path);
  inline Status UpdateConfig(const std::string &section,
                             const std::pair<std::string, std::string> &config);

  // Gives the inputs other shapes, one for each; their data goes.
  Status Resize(const std::vector<MSTensor> &inputs, const std::vector<std::vector<int64_t>> &dims);

  // Waits for the result. An empty `outputs` gets tensors; of tensors in it, those whose memory is
  // just as large as the result receive it, and the others are replaced.
  // There are no operators to see from here, so the callbacks are not called.
  Status Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs,
                 const MSKernelCallBack &before = nullptr, const MSKernelCallBack &after = nullptr);
  // The same with the model's own tensors.
  Status RunStep(const MSKernelCallBack &before = nullptr, const MSKernelCallBack &after = nullptr);

  // The model's own tensors, the same ones at every call; none before Build.
  std::vector<MSTensor> GetInputs();
  std::vector<MSTensor> GetOutputs();
  inline MSTensor GetInputByTensorName(const std::string &tensor_name);   // invalid: unknown
  inline MSTensor GetOutputByTensorName(const std::string &tensor_name);  // invalid: unknown
  inline std::vector<std::string> GetOutputTensorNames();

  // New values for weights that may change, one group after the other.
  Status UpdateWeights(const std::vector<std::vector<MSTensor>> &new_weights);

  // One of user_info, input_shape, dynamic_dims, current_pid, shareable_weight_mem_handle; "" when
  // it is not known.
  inline std::string GetModelInfo(const std::string &key);

  static bool CheckModelSupport(enum DeviceType device_type, ModelType model_type);

  Status Finalize();

  const std::shared_ptr<ModelImpl> impl() const { return impl_; }

  // Not supported: kLiteNotSupport, or what stands for nothing.
  Status Build(GraphCell graph, const std::shared_ptr<Context> &model_context = nullptr,
               const std::shared_ptr<TrainCfg> &train_cfg = nullptr);
  Status Predict(const MSKernelCallBack &before = nullptr, const MSKernelCallBack &after = nullptr);
  Status PredictWithPreprocess(const std::vector<std::vector<MSTensor>> &inputs,
                               std::vector<MSTensor> *outputs,
                               const MSKernelCallBack &before = nullptr,
                               const MSKernelCallBack &after = nullptr);
  Status Preprocess(const std::vector<std::vector<MSTensor>> &inputs,
                    std::vector<MSTensor> *outputs);
  bool HasPreprocess();
  Status UpdateWeights(const std::vector<MSTensor> &new_weights);
  inline std::vector<MSTensor> GetOutputsByNodeName(const std::string &node_name);
  inline Status BindGLTexture2DMemory(const std::map<std::string, unsigned int> &inputGLTexture,
                                      std::map<std::string, unsigned int> *outputGLTexture);
  std::vector<MSTensor> GetGradients() const;
  Status ApplyGradients(const std::vector<MSTensor> &gradients);
  std::vector<MSTensor> GetFeatureMaps() const;
  std::vector<MSTensor> GetTrainableParams() const;
  Status UpdateFeatureMaps(const std::vector<MSTensor> &new_weights);
  std::vector<MSTensor> GetOptimizerParams() const;
  Status SetOptimizerParams(const std::vector<MSTensor> &params);
  Status SetupVirtualBatch(int virtual_batch_multiplier, float lr = -1.0f, float momentum = -1.0f);
  Status SetLearningRate(float learning_rate);
  float GetLearningRate();
  Status InitMetrics(std::vector<Metrics *> metrics);
  std::vector<Metrics *> GetMetrics();
  Status SetTrainMode(bool train);
  bool GetTrainMode() const;

 private:
  Status Build(const std::vector<char> &model_path, ModelType model_type,
               const std::shared_ptr<Context> &model_context);
  Status Build(const void *model_data, size_t data_size, ModelType model_type,
               const std::shared_ptr<Context> &model_context, const Key &dec_key,
               const std::vector<char> &dec_mode, const std::vector<char> &cropto_lib_path);
  Status Build(const std::vector<char> &model_path, ModelType model_type,
               const std::shared_ptr<Context> &model_context, const Key &dec_key,
               const std::vector<char> &dec_mode, const std::vector<char> &cropto_lib_path);
  Status LoadConfig(const std::vector<char> &config_path);
  Status UpdateConfig(const std::vector<char> &section,
                      const std::pair<std::vector<char>, std::vector<char>> &config);
  MSTensor GetInputByTensorName(const std::vector<char> &tensor_name);
  MSTensor GetOutputByTensorName(const std::vector<char> &tensor_name);
  std::vector<std::vector<char>> GetOutputTensorNamesChar();
  std::vector<char> GetModelInfo(const std::vector<char> &key);
  std::vector<MSTensor> GetOutputsByNodeName(const std::vector<char> &node_name);
  Status BindGLTextures();  // refuses, so it takes no names

  std::shared_ptr<ModelImpl> impl_;
};

Status Model::Build(const std::string &model_path, ModelType model_type,
                    const std::shared_ptr<Context> &model_context) {
  return Build(StringToChar(model_path), model_type, model_context);
}
Status Model::Build(const void *model_data, size_t data_size, ModelType model_type,
                    const std::shared_ptr<Context> &model_context, const Key &dec_key,
                    const std::string &dec_mode, const std::string &cropto_lib_path) {
  return Build(model_data, data_size, model_type, model_context, dec_key, StringToChar(dec_mode),
               StringToChar(cropto_lib_path));
}
Status Model::Build(const std::string &model_path, ModelType model_type,
                    const std::shared_ptr<Context> &model_context, const Key &dec_key,
                    const std::string &dec_mode, const std::string &cropto_lib_path) {
  return Build(StringToChar(model_path), model_type, model_context, dec_key, StringToChar(dec_mode),
               StringToChar(cropto_lib_path));
}
Status Model::LoadConfig(const std::string &config_path) {
  return LoadConfig(StringToChar(config_path));
}
Status Model::UpdateConfig(const std::string &section,
                           const std::pair<std::string, std::string> &config) {
  return UpdateConfig(StringToChar(section),
                      std::make_pair(StringToChar(config.first), StringToChar(config.second)));
}
MSTensor Model::GetInputByTensorName(const std::string &tensor_name) {
  return GetInputByTensorName(StringToChar(tensor_name));
}
MSTensor Model::GetOutputByTensorName(const std::string &tensor_name) {
  return GetOutputByTensorName(StringToChar(tensor_name));
}
std::vector<std::string> Model::GetOutputTensorNames() {
  return VectorCharToString(GetOutputTensorNamesChar());
}
std::string Model::GetModelInfo(const std::string &key) {
  return CharToString(GetModelInfo(StringToChar(key)));
}
std::vector<MSTensor> Model::GetOutputsByNodeName(const std::string &node_name) {
  return GetOutputsByNodeName(StringToChar(node_name));
}
Status Model::BindGLTexture2DMemory(const std::map<std::string, unsigned int> &,
                                    std::map<std::string, unsigned int> *) {
  return BindGLTextures();
}
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_MODEL_H
