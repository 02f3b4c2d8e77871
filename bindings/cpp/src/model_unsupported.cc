// The parts of Model that are for training, preprocessing and screens: a Status that says so.
#include "include/api/model.h"

namespace mindspore {
namespace {
Status NotSupported(const char *what) {
  return Status(kLiteNotSupport, std::string(what) + " is not supported: models are only run here");
}
}  // namespace

Status Model::Build(GraphCell, const std::shared_ptr<Context> &,
                    const std::shared_ptr<TrainCfg> &) {
  return NotSupported("Build from a graph");
}
Status Model::Predict(const MSKernelCallBack &, const MSKernelCallBack &) {
  return Status(kLiteNotSupport, "Predict needs inputs and outputs; RunStep uses the model's own");
}
Status Model::PredictWithPreprocess(const std::vector<std::vector<MSTensor>> &,
                                    std::vector<MSTensor> *, const MSKernelCallBack &,
                                    const MSKernelCallBack &) {
  return NotSupported("preprocessing");
}
Status Model::Preprocess(const std::vector<std::vector<MSTensor>> &, std::vector<MSTensor> *) {
  return NotSupported("preprocessing");
}
bool Model::HasPreprocess() { return false; }
Status Model::UpdateWeights(const std::vector<MSTensor> &) {
  return Status(kLiteNotSupport, "UpdateWeights takes groups of weights: a vector of vectors");
}
std::vector<MSTensor> Model::GetOutputsByNodeName(const std::vector<char> &) { return {}; }
Status Model::BindGLTextures() { return NotSupported("BindGLTexture2DMemory"); }
std::vector<MSTensor> Model::GetGradients() const { return {}; }
Status Model::ApplyGradients(const std::vector<MSTensor> &) { return NotSupported("training"); }
std::vector<MSTensor> Model::GetFeatureMaps() const { return {}; }
std::vector<MSTensor> Model::GetTrainableParams() const { return {}; }
Status Model::UpdateFeatureMaps(const std::vector<MSTensor> &) { return NotSupported("training"); }
std::vector<MSTensor> Model::GetOptimizerParams() const { return {}; }
Status Model::SetOptimizerParams(const std::vector<MSTensor> &) { return NotSupported("training"); }
Status Model::SetupVirtualBatch(int, float, float) { return NotSupported("training"); }
Status Model::SetLearningRate(float) { return NotSupported("training"); }
float Model::GetLearningRate() { return 0.0f; }
Status Model::InitMetrics(std::vector<Metrics *>) { return NotSupported("training"); }
std::vector<Metrics *> Model::GetMetrics() { return {}; }
Status Model::SetTrainMode(bool) { return NotSupported("training"); }
bool Model::GetTrainMode() const { return false; }
}  // namespace mindspore
