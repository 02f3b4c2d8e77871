// The library held against the test vectors: what it writes, and what it makes of what it reads.
#include "tests/vectors.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "src/failure.h"
#include "src/wire/bodies.h"
#include "src/wire/errors.h"
#include "src/wire/frame.h"
#include "src/wire/greeting.h"
#include "tests/check.h"

namespace {
using mslite::Failure;
using mslite::Message;
using mslite::Reader;
using mslite::WireTensor;
using mslite::Writer;
using mslite_test::Hex;
using mslite_test::Part;
using mslite_test::Vectors;
using mslite_test::Written;

bool IsFrame(const Part &part) { return part.Has("frame.length"); }
std::string Item(const std::string &list, uint64_t index) {
  return list + "." + std::to_string(index);
}

// A tensor of a request; `kept` has its data.
WireTensor TensorOf(const Part &part, const std::string &at, std::vector<std::string> *kept) {
  WireTensor tensor;
  tensor.info.name = part.Text(at + ".name");
  tensor.info.type = static_cast<uint16_t>(part.Number(at + ".type"));
  tensor.info.shape = part.Dims(at + ".dims");
  tensor.where = static_cast<WireTensor::Where>(part.Number(at + ".place"));
  if (tensor.where == WireTensor::kInFrame) {
    kept->push_back(part.Text(at + ".data"));
    tensor.data = kept->back().data();
    tensor.size = kept->back().size();
  } else if (tensor.where == WireTensor::kInBlock) {
    tensor.place = {static_cast<uint32_t>(part.Number(at + ".block")), part.Number(at + ".offset"),
                    part.Number(at + ".length")};
  }
  return tensor;
}

std::vector<WireTensor> TensorsOf(const Part &part, const std::string &list,
                                  std::vector<std::string> *kept) {
  std::vector<WireTensor> tensors;
  for (uint64_t i = 0; i < part.Number(list); ++i) {
    tensors.push_back(TensorOf(part, Item(list, i), kept));
  }
  return tensors;
}

void RemakeBuild(const Part &part, Writer *out, std::vector<std::string> *kept) {
  mslite::BuildRequest request;
  request.kind = static_cast<mslite::BuildRequest::Kind>(part.Number("kind"));
  request.model_type = static_cast<uint32_t>(part.Number("model_type"));
  request.path = part.Text("path");
  for (uint64_t i = 0; i < part.Number("settings"); ++i) {
    const std::string at = Item("settings", i);
    request.settings.emplace_back(part.Text(at + ".name"), part.Text(at + ".value"));
  }
  for (uint64_t i = 0; i < part.Number("config"); ++i) {
    const std::string at = Item("config", i);
    request.config[part.Text(at + ".section")][part.Text(at + ".name")] = part.Text(at + ".value");
  }
  request.key = part.Text("key");
  request.key_mode = part.Text("key_mode");
  mslite::WriteBuild(out, request, TensorsOf(part, "content", kept), part.Text("config_path"));
}

// Requests that consist of plain fields, and those that the library has no function for.
void RemakeFields(const Part &part, Writer *out) {
  for (const auto &field : part.fields) {
    if (field.name.compare(0, 6, "frame.") == 0) continue;
    if (field.type == "text") {
      out->Text(part.Text(field.name));
    } else if (field.type == "u32") {
      out->U32(static_cast<uint32_t>(part.Number(field.name)));
    } else {
      CHECK_EQ(field.type, std::string("u64"));
      out->U64(part.Number(field.name));
    }
  }
}

void Remake(const Part &part, Writer *out) {
  std::vector<std::string> kept;
  kept.reserve(16);  // pointers to their bytes are held
  const auto model = [&] { return static_cast<uint32_t>(part.Number("model")); };
  switch (static_cast<Message>(part.Number("frame.message"))) {
    case Message::kBuild:
      return RemakeBuild(part, out, &kept);
    case Message::kPredict: {
      const mslite::Place room = {static_cast<uint32_t>(part.Number("room.block")),
                                  part.Number("room.offset"), part.Number("room.length")};
      mslite::CallOptions options;
      options.timeout_us = part.Number("timeout_us");
      options.priority = static_cast<int8_t>(std::stoi(part.Of("priority").value));
      return mslite::WritePredict(out, model(), options, room, TensorsOf(part, "inputs", &kept));
    }
    case Message::kResize: {
      std::vector<std::vector<int64_t>> shapes;
      for (uint64_t i = 0; i < part.Number("shapes"); ++i) {
        shapes.push_back(part.Dims(Item("shapes", i)));
      }
      return mslite::WriteResize(out, model(), shapes);
    }
    case Message::kUpdateWeights:
    case Message::kDerive: {
      std::vector<std::vector<WireTensor>> groups;
      for (uint64_t i = 0; i < part.Number("groups"); ++i) {
        groups.push_back(TensorsOf(part, Item("groups", i), &kept));
      }
      return mslite::WriteUpdate(out, model(), groups);
    }
    case Message::kFree: {
      std::vector<uint32_t> blocks;
      for (uint64_t i = 0; i < part.Number("blocks"); ++i) {
        blocks.push_back(static_cast<uint32_t>(part.Number(Item("blocks", i))));
      }
      return mslite::WriteFree(out, blocks);
    }
    default:
      return RemakeFields(part, out);
  }
}

void CheckTensors(const std::vector<WireTensor> &found, const Part &part, const std::string &list) {
  std::vector<std::string> kept;
  kept.reserve(16);
  const auto wanted = TensorsOf(part, list, &kept);
  CHECK_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK_EQ(found[i].info.name, wanted[i].info.name);
    CHECK_EQ(found[i].info.type, wanted[i].info.type);
    CHECK_EQ(found[i].info.shape, wanted[i].info.shape);
    CHECK_EQ(found[i].where, wanted[i].where);
    CHECK_EQ(found[i].place.block, wanted[i].place.block);
    CHECK_EQ(found[i].place.offset, wanted[i].place.offset);
    CHECK_EQ(found[i].place.size, wanted[i].place.size);
    if (found[i].where == WireTensor::kInFrame) {
      CHECK_EQ(std::string(static_cast<const char *>(found[i].data), found[i].size),
               std::string(static_cast<const char *>(wanted[i].data), wanted[i].size));
    }
  }
}

void CheckInfos(const std::vector<mslite::TensorInfo> &found, const Part &part,
                const std::string &list) {
  CHECK_EQ(found.size(), part.Number(list));
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK_EQ(found[i].name, part.Text(Item(list, i) + ".name"));
    CHECK_EQ(found[i].type, part.Number(Item(list, i) + ".type"));
    CHECK_EQ(found[i].shape, part.Dims(Item(list, i) + ".dims"));
  }
}

void CheckMade(const std::vector<mslite::Made> &found, const Part &part) {
  CHECK_EQ(found.size(), part.Number("blocks"));
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK_EQ(found[i].block, part.Number(Item("blocks", i) + ".block"));
    CHECK_EQ(found[i].descriptor, part.Number(Item("blocks", i) + ".descriptor"));
    CHECK_EQ(found[i].size, part.Number(Item("blocks", i) + ".size"));
  }
}

void CheckAnswer(Message request, const Part &part) {
  const std::vector<uint8_t> bytes = part.Body();
  Reader body(bytes.data(), bytes.size());
  if (request == Message::kBuild || request == Message::kDerive) {
    const mslite::Built built = mslite::ReadBuilt(&body);
    CHECK_EQ(built.model, part.Number("model"));
    CheckInfos(built.description.inputs, part, "inputs");
    CheckInfos(built.description.outputs, part, "outputs");
    CHECK_EQ(built.notes.size(), part.Number("notes"));
    for (size_t i = 0; i < built.notes.size(); ++i) {
      CHECK_EQ(built.notes[i], part.Text(Item("notes", i)));
    }
  } else if (request == Message::kPredict) {
    CheckMade(mslite::ReadMade(&body), part);
    CheckTensors(mslite::ReadTensors(&body, "outputs"), part, "outputs");
  } else if (request == Message::kDescribe || request == Message::kResize) {
    const mslite::Description found = mslite::ReadDescription(&body);
    CheckInfos(found.inputs, part, "inputs");
    CheckInfos(found.outputs, part, "outputs");
  } else if (request == Message::kAllocate) {
    CheckMade(mslite::ReadMade(&body), part);
  } else if (request == Message::kInfo || request == Message::kStatistics) {
    CHECK_EQ(body.Text("a text"), part.Text(request == Message::kInfo ? "value" : "statistics"));
  } else if (request == Message::kCancel) {
    CHECK_EQ(body.U8("an answer"), part.Number("answer"));
  }
  CHECK_EQ(body.left(), 0u);
}

TEST(RequestsOfTheVectorsAreMadeAgainByteByByte) {
  int frames = 0;
  for (const auto &vector : Vectors()) {
    for (const Part &part : vector.parts) {
      if (part.side != "client" || part.verdict != "good") continue;
      if (!IsFrame(part)) {
        mslite::Token token;
        const auto raw = part.Raw("token");
        std::copy(raw.begin(), raw.end(), token.begin());
        CHECK_EQ(Hex(mslite::EncodedHello(token)), Hex(part.Encoded()));
        continue;
      }
      Writer out(mslite::kHeaderBytes);
      Remake(part, &out);
      mslite::WriteHeader(&out, static_cast<Message>(part.Number("frame.message")),
                          part.Number("frame.request"));
      CHECK_EQ(Hex(Written(&out)), Hex(part.Encoded()));
      ++frames;
    }
  }
  CHECK(frames >= 16);
}

TEST(AnswersOfTheVectorsAreUnderstood) {
  int answers = 0;
  for (const auto &vector : Vectors()) {
    if (vector.parts.size() != 2 || vector.parts[1].verdict != "good") continue;
    const Part &asked = vector.parts[0];
    const Part &told = vector.parts[1];
    const std::vector<uint8_t> bytes = told.Encoded();
    if (!IsFrame(told)) {
      const std::string text = told.Text("text");
      CHECK_EQ(mslite::WelcomeTextSize(bytes.data()), text.size());
      const mslite::Welcome welcome = mslite::DecodedWelcome(bytes.data(), text);
      CHECK_EQ(welcome.pid, told.Number("pid"));
      CHECK_EQ(welcome.address, text);
      CHECK_EQ(Hex({welcome.token.begin(), welcome.token.end()}), Hex(told.Raw("token")));
      continue;
    }
    const mslite::Header header = mslite::ReadHeader(bytes.data());
    CHECK_EQ(header.request, asked.Number("frame.request"));
    CHECK_EQ(header.size, bytes.size() - mslite::kHeaderBytes);
    CheckAnswer(static_cast<Message>(asked.Number("frame.message")), told);
    ++answers;
  }
  CHECK(answers >= 16);
}

TEST(ErrorsOfTheVectorsKeepCodeKindAndWords) {
  for (const auto &vector : Vectors("error-")) {
    const Part &part = vector.parts[0];
    const std::vector<uint8_t> bytes = part.Body();
    Reader body(bytes.data(), bytes.size());
    const Failure failure = mslite::ReadError(&body);
    CHECK_EQ(static_cast<uint32_t>(failure.code()), static_cast<uint32_t>(part.Number("code")));
    CHECK_EQ(failure.kind(), part.Text("kind"));
    CHECK_EQ(std::string(failure.what()).find(part.Text("message")), 0u);
    CHECK_CONTAINS(failure.what(), part.Text("detail"));
  }
}

TEST(GreetingsThatMakeNoSenseAreRefused) {
  std::vector<mslite_test::Vector> all = Vectors("bad-welcome");
  all.push_back(mslite_test::VectorOf("refused-full"));
  for (const auto &vector : all) {
    const Part &part = vector.parts.back();
    auto ends = mslite::Descriptor::Pair();
    const std::vector<uint8_t> bytes = part.Encoded();
    mslite::SendAll(ends.second.number(), bytes.data(), bytes.size());
    try {
      mslite::Greet(ends.first.number(), mslite::Token{}, 1000);
      CHECK(!"it was welcome");
    } catch (const Failure &failure) {
      CHECK_CONTAINS(failure.what(), part.reason);
      const bool is_full = vector.name == "refused-full";
      CHECK_EQ(failure.kind(), std::string(is_full ? "ResourceError" : "WireError"));
    }
  }
}

TEST(HeadersThatMakeNoSenseAreRefused) {
  for (const char *name : {"bad-frame-magic", "bad-frame-message", "bad-frame-reserved",
                           "bad-frame-length-over", "bad-frame-length-huge"}) {
    const std::vector<uint8_t> bytes = mslite_test::VectorOf(name).parts[0].Encoded();
    CHECK(bytes.size() >= mslite::kHeaderBytes);
    CHECK_THROWS(mslite::ReadHeader(bytes.data()), Failure);
  }
}

TEST(AConnectionThatEndsInsideOfAFrameIsLost) {
  for (const char *name : {"bad-frame-short", "bad-frame-header"}) {
    const std::vector<uint8_t> bytes = mslite_test::VectorOf(name).parts[0].Encoded();
    auto ends = mslite::Descriptor::Pair();
    mslite::SendAll(ends.second.number(), bytes.data(), bytes.size());
    ends.second.Close();
    mslite::Receiver in;
    CHECK_THROWS(in.Receive(ends.first.number()), mslite::Lost);
  }
}

TEST(TensorsThatMakeNoSenseAreRefused) {
  for (const char *name :
       {"bad-tensor-data-short", "bad-tensor-dim", "bad-tensor-huge", "bad-tensor-name",
        "bad-tensor-open", "bad-tensor-place", "bad-tensor-rank", "bad-tensor-size",
        "bad-tensor-size-block", "bad-tensor-type"}) {
    const std::vector<uint8_t> bytes = mslite_test::VectorOf(name).parts[0].Body();
    Reader body(bytes.data(), bytes.size());
    body.Take(33, "the head of PREDICT");
    CHECK_THROWS(mslite::ReadTensors(&body, "inputs"), Failure);
  }
}
}  // namespace
