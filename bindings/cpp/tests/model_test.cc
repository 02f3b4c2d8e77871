#include "include/api/model.h"

#include <cstring>
#include <fstream>
#include <limits>

#include "tests/models.h"

namespace {
using mindspore::Model;
using mindspore::MSTensor;
using mindspore::Status;
using mslite_test::Built;
using mslite_test::Cpu;
using mslite_test::Dense;
using mslite_test::Fill;
using mslite_test::Floats;
using mslite_test::ModelFile;
using mslite_test::Six;

std::vector<MSTensor> Predicted(Model *model) {
  std::vector<MSTensor> outputs;
  Status status = model->Predict(model->GetInputs(), &outputs);
  CHECK_EQ(status.ToString(), Status::OK().ToString());
  return outputs;
}
}  // namespace

TEST(AModelComputesWhatItShould) {
  Model model = Built("dense.mindir");
  auto inputs = model.GetInputs();
  CHECK_EQ(inputs.size(), 1u);
  CHECK_EQ(inputs[0].Name(), "x");
  CHECK(inputs[0].Shape() == (std::vector<int64_t>{2, 3}));
  CHECK(inputs[0].DataType() == mindspore::DataType::kNumberTypeFloat32);
  Fill(Six(), inputs[0]);
  auto outputs = Predicted(&model);
  CHECK_EQ(outputs.size(), 1u);
  CHECK_EQ(Floats(outputs[0]), Dense(Six()));
  CHECK(outputs[0].Shape() == (std::vector<int64_t>{2, 4}));
}

TEST(TensorsThatGetInputsGivesAreTheSameOnesEachTime) {
  Model model = Built("dense.mindir");
  CHECK(model.GetInputs()[0] == model.GetInputs()[0]);
  CHECK(model.GetOutputs()[0] == model.GetOutputs()[0]);
  auto by_value = model.GetInputs();  // as the samples do: written through a copy
  Fill(Six(), by_value[0]);
  CHECK_EQ(Floats(Predicted(&model)[0]), Dense(Six()));
}

TEST(OutputsAreOnTheModelsOwnTensors) {
  Model model = Built("dense.mindir");
  Fill(Six(), model.GetInputs()[0]);
  auto outputs = Predicted(&model);
  CHECK(outputs[0] == model.GetOutputs()[0]);
  CHECK(outputs[0] == model.GetOutputByTensorName(outputs[0].Name()));
  CHECK_EQ(model.GetOutputTensorNames(), std::vector<std::string>{outputs[0].Name()});
  CHECK(model.GetInputByTensorName("x") == model.GetInputs()[0]);
  CHECK(model.GetInputByTensorName("y") == nullptr);
}

TEST(ADataPointerKeepsItsMemoryWhateverTheModelDoes) {
  std::shared_ptr<const void> kept;
  {
    Model model = Built("wide.mindir");
    Fill(std::vector<float>(1 << 20, 7.0f), model.GetInputs()[0]);
    kept = Predicted(&model)[0].Data();
    Fill(std::vector<float>(1 << 20, 8.0f), model.GetInputs()[0]);
    Predicted(&model);
  }
  CHECK_EQ(static_cast<const float *>(kept.get())[(1 << 20) - 1], 7.0f);
}

TEST(MemoryOfTheUserIsReadAndWrittenInPlace) {
  Model model = Built("dense.mindir");
  std::vector<float> x = Six();
  std::vector<float> y(8);
  auto inputs = model.GetInputs();
  auto outputs = model.GetOutputs();
  inputs[0].SetData(x.data(), false);
  outputs[0].SetData(y.data(), false);
  CHECK(model.Predict(inputs, &outputs) == mindspore::kSuccess);
  CHECK_EQ(y, Dense(x));
  CHECK(outputs[0].Data().get() == y.data());
  inputs[0].SetData(nullptr, false);
}

TEST(AnOutputOfTheWrongSizeIsReplaced) {
  Model model = Built("dense.mindir");
  Fill(Six(), model.GetInputs()[0]);
  auto outputs = model.GetOutputs();
  outputs[0].SetShape({1, 1001});
  outputs[0].SetData(std::malloc(1001 * sizeof(float)));
  CHECK(model.Predict(model.GetInputs(), &outputs) == mindspore::kSuccess);
  CHECK(outputs[0].Shape() == (std::vector<int64_t>{2, 4}));
  CHECK_EQ(Floats(outputs[0]), Dense(Six()));
}

TEST(OutputsOfAnotherModelAreReplacedAndKeepTheirNumbers) {
  Model first = Built("dense.mindir");
  Model second = Built("wide.mindir");
  Fill(Six(), first.GetInputs()[0]);
  Fill(std::vector<float>(1 << 20, -1.0f), second.GetInputs()[0]);
  auto outputs = Predicted(&first);
  auto kept = outputs[0];
  CHECK(second.Predict(second.GetInputs(), &outputs) == mindspore::kSuccess);
  CHECK_EQ(outputs[0].ElementNum(), 1 << 20);
  CHECK_EQ(Floats(kept), Dense(Six()));
}

TEST(OutputsOfOneModelAreInputsOfAnother) {
  Model model = Built("wide.mindir");
  Fill(std::vector<float>(1 << 20, 3.0f), model.GetInputs()[0]);
  auto outputs = Predicted(&model);
  auto again = outputs;
  CHECK(model.Predict(outputs, &again) == mindspore::kSuccess);  // also of itself
  CHECK_EQ(Floats(again[0])[12345], 3.0f);
}

TEST(ResizeChangesTheTensorsThatAreThere) {
  Model model = Built("any.mindir");
  auto input = model.GetInputs()[0];
  CHECK_EQ(input.Shape()[0], -1);
  CHECK_EQ(input.DataSize(), 0u);
  CHECK(model.Resize(model.GetInputs(), {{4, 3}}) == mindspore::kSuccess);
  CHECK(input.Shape() == (std::vector<int64_t>{4, 3}));
  CHECK(model.GetOutputs()[0].Shape() == (std::vector<int64_t>{4, 4}));
  std::vector<float> x(12, 2.0f);
  Fill(x, input);
  CHECK_EQ(Floats(Predicted(&model)[0]), Dense(x));
  CHECK(model.Resize({input}, {{1, 3}}) == mindspore::kSuccess);
  CHECK(input.Data() == nullptr);
}

TEST(ResizeRefusesWhatIsNoShape) {
  Model model = Built("any.mindir");
  auto inputs = model.GetInputs();
  auto code = [&](const std::vector<MSTensor> &tensors, std::vector<std::vector<int64_t>> dims) {
    return model.Resize(tensors, dims).StatusCode();
  };
  CHECK_EQ(code({}, {}), mindspore::kLiteInputParamInvalid);
  CHECK_EQ(code(inputs, {}), mindspore::kLiteInputParamInvalid);
  CHECK_EQ(code(inputs, {{1, 3}, {1, 3}}), mindspore::kLiteInputParamInvalid);
  CHECK_EQ(code(inputs, {{0, 3}}), mindspore::kLiteInputParamInvalid);
  CHECK_EQ(code(inputs, {{int64_t{1} << 31, 3}}), mindspore::kLiteInputParamInvalid);
  CHECK(model.Resize(inputs, {{2, 5}}).IsError());  // the model has 3 columns
  CHECK(Model().Resize(inputs, {{2, 3}}) == mindspore::kLiteError);
}

TEST(WhatIsWrongWithInputsIsSaid) {
  Model model = Built("dense.mindir");
  std::vector<MSTensor> outputs;
  auto status = [&](const std::vector<MSTensor> &inputs) {
    return model.Predict(inputs, &outputs);
  };
  auto check = [&](const Status &found, const char *words) {
    CHECK_EQ(found.StatusCode(), mindspore::kCoreFailed);
    CHECK_CONTAINS(found.ToString(), words);
  };
  check(status(model.GetInputs()), "input 0 'x' has no data");
  check(status({}), "0");
  check(status({MSTensor(nullptr)}), "input 0 is an invalid tensor");
  float six[6] = {};
  int64_t whole[6] = {};
  MSTensor small("x", mindspore::DataType::kNumberTypeFloat32, {1, 3}, six, sizeof(six) / 2);
  MSTensor other("x", mindspore::DataType::kNumberTypeInt64, {2, 3}, whole, sizeof(whole));
  check(status({small}), "x");
  check(status({other}), "int64");
  MSTensor two("x", mindspore::DataType::kNumberTypeFloat32, {2, 3}, six, sizeof(six));
  check(status({two, two}), "2");
  two.SetShape({1000, 3});  // more than its memory has
  check(status({two}), "has 24 bytes");
  CHECK_EQ(model.Predict({two}, nullptr).StatusCode(), mindspore::kCoreFailed);
}

TEST(WhatCannotBeBuiltHasACodeAndWords) {
  auto build = [](const std::string &path, const std::shared_ptr<mindspore::Context> &context) {
    return Model().Build(path, mindspore::kMindIR, context);
  };
  Status missing = build(ModelFile("nothing.mindir"), Cpu());
  CHECK_EQ(missing.StatusCode(), mindspore::kLiteError);
  CHECK_CONTAINS(missing.ToString(), "nothing.mindir' cannot be read: No such file");
  CHECK_EQ(build("", Cpu()).StatusCode(), mindspore::kLiteError);
  Status garbage = build(ModelFile("garbage.mindir"), Cpu());
  CHECK_EQ(garbage.StatusCode(), mindspore::kLiteGraphFileError);
  CHECK_CONTAINS(garbage.ToString(), "garbage.mindir");
  std::string dense = ModelFile("dense.mindir");
  CHECK_EQ(build(dense, nullptr).StatusCode(), mindspore::kLiteError);
  CHECK_EQ(build(dense, std::make_shared<mindspore::Context>()).StatusCode(),
           mindspore::kLiteError);
  auto context = Cpu();
  context->SetThreadNum(-1);
  CHECK_EQ(build(dense, context).StatusCode(), mindspore::kLiteError);
  context = Cpu();
  context->MutableDeviceInfo().push_back(nullptr);
  CHECK_EQ(build(dense, context).StatusCode(), mindspore::kLiteError);
  CHECK_EQ(Model().Build(nullptr, 4, mindspore::kMindIR, Cpu()).StatusCode(),
           mindspore::kLiteError);
  CHECK_EQ(Model().Build("abc", 0, mindspore::kMindIR, Cpu()).StatusCode(), mindspore::kLiteError);
  CHECK_EQ(Model().Build(mindspore::GraphCell()).StatusCode(), mindspore::kLiteNotSupport);
}

TEST(AModelIsBuiltOnceAndMayBeTriedAgainAfterAFailure) {
  Model model;
  CHECK(model.Build(ModelFile("garbage.mindir"), mindspore::kMindIR, Cpu()).IsError());
  CHECK(model.GetInputs().empty());
  CHECK(model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu()).IsOk());
  Status again = model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu());
  CHECK_EQ(again.StatusCode(), mindspore::kLiteModelRebuild);
  Fill(Six(), model.GetInputs()[0]);
  CHECK_EQ(Floats(Predicted(&model)[0]), Dense(Six()));
}

TEST(NothingRunsBeforeBuild) {
  Model model;
  std::vector<MSTensor> outputs;
  CHECK(model.GetInputs().empty());
  CHECK(model.GetOutputs().empty());
  CHECK_CONTAINS(model.Predict({}, &outputs).ToString(), "call Build first");
  CHECK_EQ(model.GetModelInfo("user_info"), "");
  CHECK(model.UpdateWeights(std::vector<std::vector<MSTensor>>()).IsError());
}

TEST(CopiesAreTheSameModel) {
  Model copy;
  {
    Model model = Built("dense.mindir");
    copy = model;
  }
  Fill(Six(), copy.GetInputs()[0]);
  CHECK_EQ(Floats(Predicted(&copy)[0]), Dense(Six()));
}

TEST(ModelsInMemoryFindTheirWeightsByConfiguration) {
  for (const char *section : {"model_file", "model_File"}) {
    std::string bytes = mslite_test::Contents(ModelFile("net_graph.mindir"));
    Model model;
    CHECK(model.Build(bytes.data(), bytes.size(), mindspore::kMindIR, Cpu()).IsError());
    model.UpdateConfig(section, {"mindir_path", ModelFile("net_graph.mindir")});
    Status status = model.Build(bytes.data(), bytes.size(), mindspore::kMindIR, Cpu());
    CHECK_EQ(status.ToString(), Status::OK().ToString());
    Fill(Six(), model.GetInputs()[0]);
    CHECK_EQ(Floats(Predicted(&model)[0]), Dense(Six()));
  }
}

TEST(AModelFileIsNoConfigurationAndDoesNoHarm) {
  Model model;
  CHECK(model.LoadConfig(ModelFile("dense.mindir")) == mindspore::kSuccess);
  CHECK(model.LoadConfig(ModelFile("nothing.ini")) == mindspore::kLiteFileError);
  CHECK(model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu()).IsOk());
  CHECK(model.LoadConfig(ModelFile("dense.mindir")) == mindspore::kLiteFileError);
}

TEST(AConfigurationHasRoomForAHundredSections) {
  Model model;
  for (int i = 0; i < 100; ++i) {
    CHECK(model.UpdateConfig("s" + std::to_string(i), {"key", "value"}).IsOk());
  }
  CHECK(model.UpdateConfig("one more", {"key", "value"}) == mindspore::kLiteFileError);
  for (int i = 1; i < 1000; ++i) {
    CHECK(model.UpdateConfig("s1", {"key" + std::to_string(i), "value"}).IsOk());
  }
  CHECK(model.UpdateConfig("s1", {"key", "changed"}).IsOk());
  CHECK(model.UpdateConfig("s1", {"one more", "value"}) == mindspore::kLiteFileError);
}

TEST(WeightsChangeWhileAModelIsBuilt) {
  Model model;
  model.UpdateConfig("ascend_context", {"variable_weights_list", "w"});
  CHECK(model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu()).IsOk());
  Fill(Six(), model.GetInputs()[0]);
  std::vector<float> zeros(12);
  MSTensor weight("w", mindspore::DataType::kNumberTypeFloat32, {3, 4}, zeros.data(), 48);
  Status status = model.UpdateWeights(std::vector<std::vector<MSTensor>>{{weight}});
  CHECK_EQ(status.ToString(), Status::OK().ToString());
  CHECK_EQ(Floats(Predicted(&model)[0]), std::vector<float>(8, 1.0f));
  CHECK_EQ(model.GetModelInfo("weights_version"), "1");
  MSTensor unknown("v", mindspore::DataType::kNumberTypeFloat32, {3, 4}, zeros.data(), 48);
  CHECK(model.UpdateWeights(std::vector<std::vector<MSTensor>>{{unknown}}).IsError());
  CHECK(model.UpdateWeights(std::vector<std::vector<MSTensor>>{}).IsOk());  // as the file has them
  CHECK_EQ(Floats(Predicted(&model)[0]), Dense(Six()));
}

TEST(FactsAboutAModelAreTold) {
  Model model = Built("dense.mindir");
  CHECK_CONTAINS(model.GetModelInfo("input_shape"), "x:[2,3]");
  CHECK(std::stoi(model.GetModelInfo("current_pid")) > 0);
  CHECK_EQ(model.GetModelInfo("nonsense"), "");
}

TEST(ManyThreadsOnOneModelFollowEachOther) {
  Model model = Built("dense.mindir");
  mslite_test::Threads threads;
  for (int i = 0; i < 8; ++i) {
    threads.Start([&model, i] {
      std::vector<float> x(6, static_cast<float>(i));
      MSTensor input("x", mindspore::DataType::kNumberTypeFloat32, {2, 3}, x.data(), 24);
      for (int turn = 0; turn < 20; ++turn) {
        std::vector<float> y(8);
        auto *given = MSTensor::CreateRefTensor("y", mindspore::DataType::kNumberTypeFloat32,
                                                {2, 4}, y.data(), 32, false);
        std::vector<MSTensor> outputs = {*given};
        MSTensor::DestroyTensorPtr(given);
        CHECK(model.Predict({input}, &outputs) == mindspore::kSuccess);
        CHECK_EQ(y, Dense(x));
      }
    });
  }
  threads.Join();
}

TEST(RunStepUsesTheModelsOwnTensors) {
  Model model = Built("dense.mindir");
  Fill(Six(), model.GetInputs()[0]);
  CHECK(model.RunStep() == mindspore::kSuccess);
  CHECK_EQ(Floats(model.GetOutputs()[0]), Dense(Six()));
}

TEST(EveryTypeAndSeveralEndsPassThrough) {
  Model model = Built("two.mindir");
  CHECK_EQ(model.GetInputs().size(), 2u);
  for (auto input : model.GetInputs()) {
    std::memset(input.MutableData(), 0, input.DataSize());
  }
  CHECK_EQ(Predicted(&model).size(), 2u);
  CHECK(!(model.GetOutputs()[0] == model.GetOutputs()[1]));
}

TEST(WhatIsForTrainingSaysThatItIsNotThere) {
  Model model;
  CHECK_EQ(model.SetTrainMode(true).StatusCode(), mindspore::kLiteNotSupport);
  CHECK_EQ(model.Predict().StatusCode(), mindspore::kLiteNotSupport);
  CHECK_CONTAINS(model.SetLearningRate(1.0f).ToString(), "not supported");
  CHECK(!model.HasPreprocess());
  CHECK(model.GetGradients().empty());
  CHECK(model.Finalize() == mindspore::kLiteError);
}

TEST(SupportedDevicesAreKnown) {
  CHECK(Model::CheckModelSupport(mindspore::kCPU, mindspore::kMindIR));
  CHECK(!Model::CheckModelSupport(mindspore::kKirinNPU, mindspore::kMindIR));
  CHECK(!Model::CheckModelSupport(mindspore::kAscend, mindspore::kOM));
  bool is_emulated = std::getenv("MSLITE_ASCEND") != nullptr;
  CHECK_EQ(Model::CheckModelSupport(mindspore::kAscend, mindspore::kMindIR), is_emulated);
}
