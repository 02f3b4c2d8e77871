#include "src/wire/bodies.h"

#include <utility>

#include "src/failure.h"
#include "src/wire/errors.h"

namespace mslite {
namespace {
constexpr size_t kMaxKey = 1024;
constexpr size_t kMadeBytes = 16;

void WriteCount(Writer *out, size_t count, const char *what) {
  if (count > kMaxItems) {
    throw Failure(mindspore::kLiteParamInvalid, "InputError",
                  "a request has " + std::to_string(count) + " " + what + ", at most " +
                      std::to_string(kMaxItems) + " can be sent to the worker");
  }
  out->U32(static_cast<uint32_t>(count));
}

void WriteTensors(Writer *out, const std::vector<WireTensor> &tensors, const char *what) {
  WriteCount(out, tensors.size(), what);
  for (const auto &tensor : tensors) WriteTensor(out, tensor);
}

void WriteConfig(Writer *out, const Sections &config) {
  size_t count = 0;
  for (const auto &section : config) count += section.second.size();
  WriteCount(out, count, "entries of a configuration");
  for (const auto &section : config) {
    for (const auto &entry : section.second) {
      out->Text(section.first);
      out->Text(entry.first);
      out->Text(entry.second);
    }
  }
}

std::vector<TensorInfo> ReadInfos(Reader *body, const char *what) {
  std::vector<TensorInfo> infos;
  for (auto &tensor : ReadTensors(body, what)) infos.push_back(std::move(tensor.info));
  return infos;
}
}  // namespace

void WriteBuild(Writer *out, const BuildRequest &request, const std::vector<WireTensor> &content,
                const std::string &config_path) {
  out->U8(request.kind);
  out->U32(request.model_type);
  out->Path(request.path);
  WriteTensors(out, content, "contents");
  WriteCount(out, request.settings.size(), "settings");
  for (const auto &setting : request.settings) {
    out->Text(setting.first);
    out->Text(setting.second);
  }
  out->Path(config_path);
  WriteConfig(out, request.config);
  if (request.key.size() > kMaxKey) {
    throw Failure(mindspore::kLiteParamInvalid, "ValueError",
                  "the key has " + std::to_string(request.key.size()) + " bytes, at most " +
                      std::to_string(kMaxKey) + " can be sent to the worker");
  }
  out->Blob(request.key.data(), request.key.size());
  out->Text(request.key_mode);
}

void WritePredict(Writer *out, uint32_t model, const CallOptions &options, const Place &room,
                  const std::vector<WireTensor> &inputs) {
  out->U32(model);
  out->U64(options.timeout_us);
  out->U8(static_cast<uint8_t>(options.priority));
  out->U32(room.block);
  out->U64(room.offset);
  out->U64(room.size);
  WriteTensors(out, inputs, "inputs");
}

void WriteResize(Writer *out, uint32_t model, const std::vector<std::vector<int64_t>> &shapes) {
  out->U32(model);
  WriteCount(out, shapes.size(), "shapes");
  for (const auto &shape : shapes) out->Dims(shape);
}

void WriteUpdate(Writer *out, uint32_t model, const std::vector<std::vector<WireTensor>> &groups) {
  out->U32(model);
  WriteCount(out, groups.size(), "groups of weights");
  for (const auto &group : groups) WriteTensors(out, group, "weights");
}

void WriteFree(Writer *out, const std::vector<uint32_t> &blocks) {
  WriteCount(out, blocks.size(), "blocks");
  for (uint32_t block : blocks) out->U32(block);
}

Description ReadDescription(Reader *body) {
  Description description;
  description.inputs = ReadInfos(body, "inputs");
  description.outputs = ReadInfos(body, "outputs");
  return description;
}

Built ReadBuilt(Reader *body) {
  Built built;
  built.model = body->U32("the model");
  if (built.model == 0) throw WireFailure("the worker built a model and gave it number 0");
  built.description = ReadDescription(body);
  const uint32_t count = body->Count("notes", 4);
  for (uint32_t i = 0; i < count; ++i) built.notes.push_back(body->Text("a note"));
  return built;
}

std::vector<Made> ReadMade(Reader *body) {
  std::vector<Made> found(body->Count("blocks", kMadeBytes));
  for (Made &made : found) {
    made.block = body->U32("a block");
    made.descriptor = body->U32("a descriptor");
    made.size = body->U64("the size of a block");
  }
  return found;
}
}  // namespace mslite
