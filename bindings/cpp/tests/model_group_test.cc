#include "include/api/model_group.h"

#include "tests/models.h"

namespace {
using mindspore::Model;
using mindspore::ModelGroup;
using mindspore::ModelGroupFlag;
using mslite_test::Cpu;
using mslite_test::ModelFile;

void CheckDense(Model *model) {
  mslite_test::Fill(mslite_test::Six(), model->GetInputs()[0]);
  std::vector<mindspore::MSTensor> outputs;
  CHECK(model->Predict(model->GetInputs(), &outputs) == mindspore::kSuccess);
  CHECK_EQ(mslite_test::Floats(outputs[0]), mslite_test::Dense(mslite_test::Six()));
}
}  // namespace

TEST(ModelsThatShareWeightsRun) {
  ModelGroup group(ModelGroupFlag::kShareWeight);
  Model first, second;
  CHECK(group.AddModel({first, second}) == mindspore::kSuccess);
  CHECK(group.AddModel(std::vector<Model>{first}) == mindspore::kLiteError);  // it is in one
  CHECK(first.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu()).IsOk());
  CHECK(second.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu()).IsOk());
  CheckDense(&first);
  CheckDense(&second);
}

TEST(ModelsOfFilesThatShareWorkspaceRun) {
  ModelGroup group;
  CHECK(group
            .AddModel(
                std::vector<std::string>{ModelFile("dense.mindir"), "", ModelFile("digits.mindir")})
            .IsOk());
  mindspore::Status status = group.CalMaxSizeOfWorkspace(mindspore::kMindIR, Cpu());
  CHECK_EQ(status.ToString(), mindspore::Status::OK().ToString());
  CHECK(group.CalMaxSizeOfWorkspace(mindspore::kMindIR, Cpu()).IsError());  // the list is used up
  Model model = mslite_test::Built("dense.mindir");
  CheckDense(&model);
}

TEST(BytesOfModelsGoWithWorkspaceOnly) {
  std::string bytes = mslite_test::Contents(ModelFile("dense.mindir"));
  std::vector<std::pair<const void *, size_t>> contents = {{bytes.data(), bytes.size()}};
  CHECK(ModelGroup(ModelGroupFlag::kShareWeight).AddModel(contents) == mindspore::kLiteError);
  ModelGroup group(ModelGroupFlag::kShareWorkspace);
  CHECK(group.AddModel(contents).IsOk());
  CHECK(group.CalMaxSizeOfWorkspace(mindspore::kMindIR, Cpu()).IsOk());
  Model model;
  CHECK(model.Build(bytes.data(), bytes.size(), mindspore::kMindIR, Cpu()).IsOk());
  CheckDense(&model);
}

TEST(WhatAGroupRefuses) {
  ModelGroup group(ModelGroupFlag::kShareWorkspace);
  CHECK(group.AddModel(std::vector<std::string>()) == mindspore::kLiteParamInvalid);
  CHECK(group.AddModel(std::vector<Model>(1)) == mindspore::kLiteError);
  CHECK(group.CalMaxSizeOfWorkspace(mindspore::kMindIR, Cpu()).IsError());
  CHECK(group.AddModel(std::vector<std::string>{ModelFile("nothing.mindir")}).IsOk());
  mindspore::Status status = group.CalMaxSizeOfWorkspace(mindspore::kMindIR, Cpu());
  CHECK_CONTAINS(status.ToString(), "nothing.mindir");
  Model built = mslite_test::Built("dense.mindir");
  CHECK(ModelGroup(ModelGroupFlag::kShareWeight).AddModel({built}) == mindspore::kLiteError);
  CHECK(ModelGroup(ModelGroupFlag::kUnknown).AddModel({"x"}) == mindspore::kLiteError);
  const std::vector<std::pair<const void *, size_t>> nothing = {{nullptr, 0}};
  CHECK(group.AddModel(nothing) == mindspore::kLiteParamInvalid);
}
