// A session at a real worker.
#include "src/wire/session.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/failure.h"
#include "src/wire/block.h"
#include "tests/check.h"
#include "tests/live.h"

namespace {
using mslite::Filled;
using mslite::Session;
using mslite_test::AreRows;
using mslite_test::Digits;
using mslite_test::DigitsRequest;
using mslite_test::kDigitBytes;
using mslite_test::kScoreBytes;
using mslite_test::Scores;

TEST(AModelIsBuiltDescribedAndRun) {
  const auto session = Session::Current();
  const mslite::Built built = session->Build(DigitsRequest());
  CHECK_EQ(built.description.inputs.size(), 1u);
  CHECK_EQ(built.description.inputs[0].shape, (std::vector<int64_t>{-1, 1, 8, 8}));
  const auto outputs = session->Predict(built.model, {Digits(1, 0.1f)});
  CHECK_EQ(outputs.size(), 1u);
  CHECK_EQ(outputs[0].info.shape, (std::vector<int64_t>{1, 10}));
  CHECK_EQ(outputs[0].size, kScoreBytes);
  float sum = 0;
  for (float score : Scores(outputs[0])) sum += score;
  CHECK(sum > 0.99f && sum < 1.01f);
  const auto two = session->Resize(built.model, {{2, 1, 8, 8}});
  CHECK_EQ(two.outputs[0].name, built.description.outputs[0].name);
  CHECK_EQ(two.outputs[0].shape, (std::vector<int64_t>{2, 10}));
  session->Close(built.model);
}

TEST(LargeTensorsTravelInSharedMemoryBothWays) {
  const auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  const auto row = Scores(session->Predict(model, {Digits(1, 0.1f)})[0]);
  const int64_t count = 1000;
  const auto memory = session->Allocate(count * kDigitBytes);
  CHECK(memory != nullptr && memory->block() != nullptr);
  for (int i = 0; i < 3; ++i) {
    const auto shared = session->Predict(model, {Digits(count, 0.1f, memory)});
    CHECK(AreRows(shared[0], row));
    CHECK(shared[0].memory->block() != nullptr);
    CHECK(shared[0].memory->block() != memory->block());
    const auto copied = session->Predict(model, {Digits(count, 0.1f)});
    CHECK(AreRows(copied[0], row));
    CHECK(copied[0].memory->block() != shared[0].memory->block());
  }
  session->Close(model);
}

TEST(AModelIsBuiltFromItsBytes) {
  std::ifstream file(mslite_test::Setting("MSLITE_MODEL"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CHECK(bytes.size() > 16384);
  auto request = DigitsRequest();
  request.path.clear();
  request.content = bytes.data();
  request.content_size = bytes.size();
  const auto session = Session::Current();
  const auto model = session->Build(request).model;
  CHECK_EQ(session->Predict(model, {Digits(2, 0.1f)})[0].size, 2 * kScoreBytes);
  session->Close(model);
}

TEST(AModelIsResizedAndAskedForFacts) {
  const auto session = Session::Current();
  const auto model = session->Build(DigitsRequest()).model;
  const auto resized = session->Resize(model, {{300, 1, 8, 8}});
  CHECK_EQ(resized.outputs[0].shape, (std::vector<int64_t>{300, 10}));
  CHECK_EQ(session->Predict(model, {Digits(300, 0.1f)})[0].size, 300 * kScoreBytes);
  CHECK_EQ(session->Info(model, "input_shape"), std::string("x:[300,1,8,8]"));
  CHECK(!session->Info(0, "version").empty());
  session->Close(model);
}

TEST(WhatIsWrongWithARequestIsTheWorkersToSay) {
  const auto session = Session::Current();
  auto missing = DigitsRequest();
  missing.path = "/no/such/model.mindir";
  CHECK_THROWS(session->Build(missing), mslite::Failure);
  const auto model = session->Build(DigitsRequest()).model;
  CHECK_THROWS(session->Predict(model, {}), mslite::Failure);
  CHECK_THROWS(session->UpdateWeights(model, {{Digits(1000, 0.1f)}}), mslite::Failure);
  CHECK_EQ(session->Predict(model, {Digits(1, 0.1f)}).size(), 1u);
  session->Close(model);
  CHECK_THROWS(session->Predict(model, {Digits(1, 0.1f)}), mslite::Failure);
}
}  // namespace
