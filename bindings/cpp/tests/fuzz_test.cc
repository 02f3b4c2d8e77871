// A worker that lies: its messages of the vectors, damaged in some thousand ways that are the same
// in every run. Whatever is made of them, it is a value or a Failure; sanitizers see what is read.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/failure.h"
#include "src/wire/bodies.h"
#include "src/wire/descriptor.h"
#include "src/wire/errors.h"
#include "src/wire/frame.h"
#include "src/wire/greeting.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/fake_worker.h"
#include "tests/live.h"
#include "tests/vectors.h"

namespace {
using mslite::Failure;
using mslite::Message;
using mslite::Reader;
using mslite::Writer;
using mslite_test::Bytes;
using mslite_test::Vectors;

constexpr int kTurns = 60;  // for each message and reader

// One to three changes: a byte, a number of 1 to 8 bytes that is often wrong, some bytes less or
// more.
Bytes Damaged(Bytes bytes, std::mt19937_64 *random) {
  const auto below = [&](size_t most) { return static_cast<size_t>((*random)() % most); };
  for (size_t change = 0; change <= below(3) && !bytes.empty(); ++change) {
    const size_t at = below(bytes.size());
    const size_t width = std::min(bytes.size() - at, size_t{1} << below(4));
    const uint64_t numbers[] = {
        0,          1, 64, 65, 4097, 0x7fffffff, UINT64_MAX, uint64_t{1} << 62, uint64_t{1} << 63,
        (*random)()};
    const uint64_t number = numbers[below(10)];
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(4)) {
      case 0:
        bytes[at] = static_cast<uint8_t>((*random)());
        break;
      case 1:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(width));
        break;
      case 2:
        bytes.insert(place, width, static_cast<uint8_t>((*random)()));
        break;
      default:
        std::memcpy(&bytes[at], &number, width);
    }
  }
  return bytes;
}

// Reads a body whose end is that of its memory.
template <typename Read>
void MustNotBreak(const Bytes &bytes, const Read &read) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  Reader body(exact.get(), bytes.size());
  try {
    read(&body);
  } catch (const Failure &) {
    // what it should do
  }
}

void ReadInAllWays(const Bytes &body) {
  MustNotBreak(body, [](Reader *in) { mslite::ReadBuilt(in); });
  MustNotBreak(body, [](Reader *in) { mslite::ReadDescription(in); });
  MustNotBreak(body, [](Reader *in) { mslite::ReadError(in); });
  MustNotBreak(body, [](Reader *in) { in->Text("a fact"); });
  MustNotBreak(body, [](Reader *in) {
    mslite::ReadMade(in);
    for (const auto &tensor : mslite::ReadTensors(in, "outputs")) {
      // what a tensor has in the frame can be read, all of it
      Bytes copy(tensor.where == mslite::WireTensor::kInFrame ? tensor.size : 0);
      if (!copy.empty()) std::memcpy(copy.data(), tensor.data, copy.size());
    }
  });
}

TEST(NoDamagedMessageBreaksAReader) {
  std::mt19937_64 random(8);
  for (const auto &vector : Vectors()) {
    for (const auto &part : vector.parts) {
      if (part.side != "worker" || !part.Has("frame.message")) continue;
      const Bytes body = part.Body();
      if (body.size() > 4096) continue;  // truncations of those are as good
      for (size_t size = 0; size < body.size(); ++size) {
        ReadInAllWays(Bytes(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size)));
      }
      for (int turn = 0; turn < kTurns; ++turn) ReadInAllWays(Damaged(body, &random));
    }
  }
}

TEST(NoDamagedGreetingBreaksAReader) {
  std::mt19937_64 random(8);
  for (const char *name : {"01-greeting", "02-greeting-lane", "refused-full"}) {
    const Bytes whole = mslite_test::VectorOf(name).parts.back().Encoded();
    for (int turn = 0; turn < 20 * kTurns; ++turn) {
      const Bytes bytes = Damaged(whole, &random);
      auto ends = mslite::Descriptor::Pair();
      mslite::SendAll(ends.second.number(), bytes.data(), bytes.size());
      ends.second.Close();
      try {
        mslite::Greet(ends.first.number(), mslite::Token{}, 1000);
      } catch (const Failure &) {
      } catch (const mslite::Lost &) {
      }
    }
  }
}

TEST(AFrameThatEndsAnywhereOrIsDamagedIsToldFromAWholeOne) {
  std::mt19937_64 random(8);
  const Bytes whole =
      mslite_test::Frame(Message::kReply, 7, [](Writer *out) { out->Text("fact"); });
  for (size_t turn = 0; turn < whole.size() + 1000; ++turn) {
    const Bytes bytes =
        turn < whole.size()
            ? Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(turn))
            : Damaged(whole, &random);
    auto ends = mslite::Descriptor::Pair();
    mslite::SendAll(ends.second.number(), bytes.data(), bytes.size());
    ends.second.Close();
    mslite::Receiver in;
    try {
      const mslite::Header header = in.Receive(ends.first.number());
      CHECK(turn >= whole.size());
      CHECK_EQ(in.body().left(), header.size);
    } catch (const Failure &) {
    } catch (const mslite::Lost &) {
    }
  }
}

// Outputs in memory that the worker made: every number of the answer may be wrong.
TEST(WhateverAWorkerSaysOfItsMemoryOnlyWhatIsThereIsRead) {
  const uint64_t size = 1 << 17;
  const mslite_test::SharedFile file(size);
  std::mt19937_64 random(8);
  int turn = 0;
  mslite_test::FakeWorker worker([&](const mslite::Header &header, Reader) {
    if (header.message != Message::kPredict)
      return mslite_test::Frame(Message::kReply, header.request);
    Writer out;
    const mslite::Made made = file.made(5);
    out.U32(1);
    out.U32(made.block);
    out.U32(made.descriptor);
    out.U64(made.size);
    out.U32(1);
    mslite::WireTensor tensor;
    tensor.info = {"y", mslite_test::kFloat32, {1 << 14}};
    tensor.where = mslite::WireTensor::kInBlock;
    tensor.place = {made.block, 64, uint64_t{1} << 16};
    mslite::WriteTensor(&out, tensor);
    Bytes body(out.data(), out.data() + out.size());
    if (turn > 0) body = Damaged(body, &random);
    return mslite_test::Frame(Message::kReply, header.request,
                              [&](Writer *to) { to->Bytes(body.data(), body.size()); });
  });
  float sum = 0;
  int passed = 0;
  for (; turn < 1500; ++turn) {
    try {
      for (const auto &output : worker.session()->Predict(1, {mslite_test::Digits(1, 0.5f)})) {
        const auto *const bytes = static_cast<const uint8_t *>(output.memory->data());
        for (size_t i = 0; i < output.size; i += 512) sum += bytes[i];
        if (output.size > 0) sum += bytes[output.size - 1];
      }
      ++passed;
    } catch (const Failure &) {
      CHECK(turn > 0);
    }
  }
  CHECK_EQ(sum, 0.0f);  // the memory is full of zeros, and so is all that was read
  CHECK(passed > 0 && passed < 1500);
}

TEST(AnAnswerOfTheLargestSizeIsTaken) {
  mslite_test::FakeWorker worker([](const mslite::Header &header, Reader) {
    return mslite_test::Frame(Message::kReply, header.request, [](Writer *out) {
      out->Text("fact");
      const Bytes rest(mslite::kMaxBody - out->body_size());
      out->Bytes(rest.data(), rest.size());
    });
  });
  CHECK_EQ(worker.session()->Info(1, "key"), "fact");
}
}  // namespace
