// What a session makes of a worker that answers badly, ends early, or refuses.
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/failure.h"
#include "src/wire/bodies.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/fake_worker.h"
#include "tests/live.h"
#include "tests/support.h"
#include "tests/vectors.h"

namespace {
using mslite::Failure;
using mslite::Header;
using mslite::Message;
using mslite::Reader;
using mslite::Writer;
using mslite_test::Bytes;
using mslite_test::FailureOf;
using mslite_test::FakeWorker;
using mslite_test::Frame;

Bytes Told(const Header &header, const std::string &text) {
  return Frame(Message::kReply, header.request, [&](Writer *out) { out->Text(text); });
}

Bytes Refused(const Header &header) {
  return Frame(Message::kError, header.request, [](Writer *out) {
    out->U32(static_cast<uint32_t>(-3));
    for (const char *words : {"ValueError", "no such thing", "look elsewhere"}) out->Text(words);
  });
}

TEST(AnErrorIsTheCallersAndTheLaneGoesOn) {
  FakeWorker worker([](const Header &header, Reader) {
    return header.request == 1 ? Refused(header) : Told(header, "a fact");
  });
  const Failure failure = FailureOf([&] { worker.session()->Info(0, "x"); });
  CHECK_EQ(failure.code(), mindspore::kLiteParamInvalid);
  CHECK_EQ(failure.kind(), std::string("ValueError"));
  CHECK_EQ(std::string(failure.what()), std::string("no such thing\nlook elsewhere"));
  CHECK_EQ(worker.session()->Info(0, "x"), std::string("a fact"));
  CHECK_EQ(worker.lanes(), 1);
}

TEST(AnErrorThatSaysSuccessIsStillAnError) {
  FakeWorker worker([](const Header &header, Reader) {
    return Frame(Message::kError, header.request, [](Writer *out) {
      for (int i = 0; i < 4; ++i) out->U32(0);
    });
  });
  CHECK_EQ(FailureOf([&] { worker.session()->Info(0, "x"); }).code(), mindspore::kLiteError);
}

TEST(WhatFollowsInAnAnswerIsIgnored) {
  FakeWorker worker([](const Header &header, Reader) {
    return Frame(Message::kReply, header.request, [](Writer *out) {
      out->Text("a fact");
      out->U64(7);  // a field of a later release
    });
  });
  CHECK_EQ(worker.session()->Info(0, "x"), std::string("a fact"));
}

TEST(AnAnswerThatMakesNoSenseClosesTheLaneAndIsTold) {
  for (const auto &vector : mslite_test::Vectors("bad-answer")) {
    const mslite_test::Part bad = vector.parts[0];
    FakeWorker worker([&](const Header &header, Reader) {
      return header.request == 3 ? bad.Encoded() : Told(header, "a fact");
    });
    for (int i = 0; i < 2; ++i) worker.session()->Info(0, "x");  // that was requests 1 and 2
    const Failure failure =
        FailureOf([&] { worker.session()->Predict(1, {mslite_test::Digits(1, 1.0f)}); });
    CHECK_EQ(failure.kind(), std::string("WireError"));
    CHECK_EQ(worker.session()->Info(0, "x"), std::string("a fact"));
    CHECK_EQ(worker.lanes(), 2);
  }
}

TEST(MoreThanTheAnswerIsNoAnswer) {
  FakeWorker worker([](const Header &header, Reader) {
    Bytes twice = Told(header, "a fact");
    twice.push_back(0);
    return twice;
  });
  CHECK_EQ(FailureOf([&] { worker.session()->Info(0, "x"); }).kind(), std::string("WireError"));
}

TEST(AWorkerThatDiesIsNamedWithWhatToDo) {
  FakeWorker *dying = nullptr;
  FakeWorker worker([&](const Header &, Reader) {
    dying->Die();
    return Bytes();
  });
  dying = &worker;
  const Failure failure = FailureOf([&] { worker.session()->Info(0, "x"); });
  CHECK_EQ(failure.kind(), std::string("WorkerDiedError"));
  CHECK_EQ(failure.code(), mindspore::kCoreFailed);
  CHECK_CONTAINS(failure.what(), "the worker process " + std::to_string(getpid()) + " is gone");
  CHECK_CONTAINS(failure.what(), "build the model again");
  CHECK_EQ(FailureOf([&] { worker.session()->Resize(1, {}); }).kind(), failure.kind());
  CHECK(worker.session()->Allocate(100) == nullptr);
  worker.session()->Close(1);  // nothing to do, and no error
}

// A worker with a model whose output is its input; blocks are real.
class Echo {
 public:
  Bytes operator()(const Header &header, Reader body) {
    const std::lock_guard<std::mutex> guard(lock_);
    switch (header.message) {
      case Message::kBuild:
        return Frame(Message::kBuildFinish, header.request, [](Writer *out) {
          out->U32(1);
          for (int i = 0; i < 3; ++i) out->U32(0);
        });
      case Message::kAllocate:
        return Made(header, body.U64("size"));
      case Message::kPredict:
        return Predicted(header, &body);
      case Message::kFree:
        for (uint32_t i = body.Count("blocks", 4); i > 0; --i) files_.erase(body.U32("block"));
        return Frame(Message::kReply, header.request);
      default:
        return Frame(Message::kReply, header.request);
    }
  }

  size_t blocks() {
    const std::lock_guard<std::mutex> guard(lock_);
    return files_.size();
  }
  std::vector<mslite::WireTensor::Where> places;  // of the inputs
  uint32_t room = 0;                              // the block of the last one

 private:
  Bytes Made(const Header &header, uint64_t size) {
    return Frame(Message::kReply, header.request, [&](Writer *out) {
      out->U32(1);
      Tell(size, out);
    });
  }

  uint32_t Tell(uint64_t size, Writer *out) {
    const uint32_t number = ++last_;
    files_[number].reset(new mslite_test::SharedFile(size));
    const mslite::Made made = files_[number]->made(number);
    out->U32(made.block);
    out->U32(made.descriptor);
    out->U64(made.size);
    return number;
  }

  Bytes Predicted(const Header &header, Reader *body) {
    body->Take(13, "model, timeout and priority");
    room = body->U32("room");
    body->Take(16, "room");
    auto tensors = mslite::ReadTensors(body, "inputs");
    places.clear();
    for (const auto &tensor : tensors) places.push_back(tensor.where);
    return Frame(Message::kReply, header.request, [&](Writer *out) {
      uint64_t needed = 0;
      for (const auto &tensor : tensors) needed += mslite::Aligned(tensor.size);
      const bool is_new = needed > mslite::kInlineBytes && room == 0;
      out->U32(is_new ? 1 : 0);
      const uint32_t block = is_new ? Tell(needed, out) : room;
      out->U32(static_cast<uint32_t>(tensors.size()));
      uint64_t at = 0;
      for (auto tensor : tensors) {
        if (tensor.where == mslite::WireTensor::kInBlock) {
          tensor.place = {block, at, tensor.size};
          at = mslite::Aligned(at + tensor.size);
        }
        mslite::WriteTensor(out, tensor);
      }
    });
  }

  std::mutex lock_;
  uint32_t last_ = 0;
  std::map<uint32_t, std::unique_ptr<mslite_test::SharedFile>> files_;
};

TEST(TensorsTravelWhereTheyAreCheapest) {
  Echo echo;
  FakeWorker worker(std::ref(echo));
  const auto session = worker.session();
  const auto shared = session->Allocate(100 * mslite_test::kDigitBytes);
  session->Predict(1, {mslite_test::Digits(1, 1), mslite_test::Digits(64, 1),
                       mslite_test::Digits(65, 1), mslite_test::Digits(100, 1, shared)});
  using Tensor = mslite::WireTensor;
  CHECK_EQ(echo.places, (std::vector<Tensor::Where>{Tensor::kInFrame, Tensor::kInFrame,
                                                    Tensor::kInBlock, Tensor::kInBlock}));
}

TEST(ABlockOfAnotherSessionIsCopied) {
  Echo echo;
  Echo other;
  FakeWorker worker(std::ref(echo));
  FakeWorker elsewhere(std::ref(other));
  elsewhere.session()->Allocate(1 << 17);
  const auto foreign = elsewhere.session()->Allocate(1 << 17);
  const uint32_t model = worker.session()->Build(mslite::BuildRequest()).model;
  worker.session()->Predict(model, {mslite_test::Digits(100, 1, foreign)});
  CHECK_EQ(echo.blocks(), 2u);  // one was made for the copy, one for the output
}

TEST(MemoryThatAResultNeedsIsNoRoomForTheNextOne) {
  Echo echo;
  FakeWorker worker(std::ref(echo));
  const auto session = worker.session();
  const uint32_t model = session->Build(mslite::BuildRequest()).model;
  const auto input = mslite_test::Digits(100, 1);
  const auto first = session->Predict(model, {input});
  const uint32_t block_of_first = first[0].memory->block()->number();
  CHECK_EQ(echo.room, 0u);
  session->Predict(model, {input});
  CHECK(echo.room != 0 && echo.room != block_of_first);
}

TEST(IdleMemoryGoesWithTheLastModelAndResultsStay) {
  Echo echo;
  FakeWorker worker(std::ref(echo));
  const uint32_t model = worker.session()->Build(mslite::BuildRequest()).model;
  const auto results = worker.session()->Predict(model, {mslite_test::Digits(100, 1)});
  CHECK_EQ(echo.blocks(), 2u);
  worker.session()->Close(model);
  CHECK_EQ(echo.blocks(), 1u);
  CHECK_EQ(results[0].memory->block()->number(), 2u);
}

TEST(AnInputWithoutDataIsRefusedBeforeItIsSent) {
  FakeWorker worker([](const Header &, Reader) { return Bytes(); });
  auto empty = mslite_test::Digits(1, 1);
  empty.memory = nullptr;
  const Failure failure = FailureOf([&] { worker.session()->Predict(1, {empty}); });
  CHECK_EQ(failure.code(), mindspore::kLiteInputTensorError);
  auto less = mslite_test::Digits(1, 1);
  less.size *= 2;
  CHECK_EQ(FailureOf([&] { worker.session()->Predict(1, {less}); }).kind(), failure.kind());
}
}  // namespace
