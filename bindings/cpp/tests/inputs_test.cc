// Inputs that no model wants, and the same memory in several places.
#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/models.h"

namespace {
using mindspore::DataType;
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

// What a model says to a tensor on memory of the user, who is not asked how long that is.
Status Said(Model *model, enum DataType type, const std::vector<int64_t> &shape) {
  static float memory[64] = {};
  MSTensor tensor;
  tensor.SetDataType(type);
  tensor.SetShape(shape);
  tensor.SetData(memory, false);
  std::vector<MSTensor> outputs;
  return model->Predict({tensor}, &outputs);
}

TEST(WhatCannotBeSentIsRefusedBeforeItIs) {
  Model model = Built("dense.mindir");
  const auto check = [&](enum DataType type, const std::vector<int64_t> &shape, const char *words) {
    const Status status = Said(&model, type, shape);
    CHECK_EQ(status.StatusCode(), mindspore::kCoreFailed);
    CHECK_CONTAINS(status.ToString(), words);
  };
  const auto floats = DataType::kNumberTypeFloat32;
  check(floats, {INT64_MAX, INT64_MAX}, "no size in bytes");
  check(floats, {INT64_MAX / 2, 1}, "no size in bytes");
  check(floats, {INT64_C(1) << 40, 3}, "bytes, at most");
  check(floats, {0, INT64_MAX, INT64_MAX}, "no size in bytes");
  check(floats, {0, -5}, "no size in bytes");
  check(floats, std::vector<int64_t>(65, 1), "65 dims");
  check(DataType::kObjectTypeString, {24}, "data type 12");
  check(DataType::kTypeUnknown, {2, 3}, "data type 0");
  check(DataType::kInvalidType, {0}, "data type 2147483647");
  check(static_cast<enum DataType>(65536 + 43), {2, 3}, "data type 65579");
}

TEST(WordsThatAreNotUtf8AreTheCallersFault) {
  Model model;
  CHECK(model.UpdateConfig("section\xff", std::make_pair("key", "value")).IsOk());
  const Status status = model.Build(ModelFile("dense.mindir"), mindspore::kMindIR, Cpu());
  CHECK_EQ(status.StatusCode(), mindspore::kLiteParamInvalid);
  CHECK_CONTAINS(status.ToString(), "not UTF-8");
}

TEST(NamesOfInputsMayBeAnything) {
  Model model = Built("dense.mindir");
  for (const std::string &name : {std::string(5000, 'n'), std::string("\xff\xfe")}) {
    MSTensor tensor(name, DataType::kNumberTypeFloat32, {2, 3}, Six().data(), 6 * sizeof(float));
    std::vector<MSTensor> outputs;
    CHECK(model.Predict({tensor}, &outputs) == mindspore::kSuccess);
    CHECK_EQ(Floats(outputs[0]), Dense(Six()));
  }
}

TEST(ThereAreNoMoreInputsThanCanBeSent) {
  Model model = Built("dense.mindir");
  MSTensor one("x", DataType::kNumberTypeFloat32, {2, 3}, Six().data(), 6 * sizeof(float));
  std::vector<MSTensor> outputs;
  const Status status = model.Predict(std::vector<MSTensor>(70000, one), &outputs);
  CHECK_EQ(status.StatusCode(), mindspore::kCoreFailed);
  CHECK_CONTAINS(status.ToString(), "70000 inputs");
}

// "wide" gives back the million numbers that it got, none of which is negative.
TEST(AnInputMayBeItsOwnOutput) {
  Model model = Built("wide.mindir");
  auto tensors = model.GetInputs();
  Fill(std::vector<float>(1 << 20, 3.0f), tensors[0]);
  const void *const memory = tensors[0].MutableData();
  CHECK(model.Predict(tensors, &tensors) == mindspore::kSuccess);  // the very vector
  CHECK(tensors[0].Data().get() == memory);
  CHECK_EQ(Floats(tensors[0])[77], 3.0f);

  std::vector<float> lent(1 << 20, 4.0f);
  auto inputs = model.GetInputs();
  inputs[0].SetData(lent.data(), false);
  auto outputs = model.GetOutputs();
  outputs[0].SetData(lent.data(), false);
  CHECK(model.Predict(inputs, &outputs) == mindspore::kSuccess);
  CHECK(outputs[0].Data().get() == lent.data());
  CHECK_EQ(lent[99], 4.0f);
}

TEST(APointerOfDataSurvivesAnotherSetData) {
  Model model = Built("wide.mindir");
  MSTensor input = model.GetInputs()[0];
  Fill(std::vector<float>(1 << 20, 3.0f), input);
  const auto before = input.Data();
  std::vector<float> lent(1 << 20, 5.0f);
  input.SetData(lent.data(), false);
  std::vector<MSTensor> outputs;
  CHECK(model.Predict({input}, &outputs) == mindspore::kSuccess);
  CHECK_EQ(Floats(outputs[0])[5], 5.0f);
  CHECK_EQ(static_cast<const float *>(before.get())[5], 3.0f);
}
}  // namespace
