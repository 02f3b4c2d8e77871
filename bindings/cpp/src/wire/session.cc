#include "src/wire/session.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "src/wire/bodies.h"
#include "src/wire/errors.h"
#include "src/wire/session_state.h"

namespace mslite {
namespace {
constexpr uint16_t kUint8 = 37;

// The content of a model as one tensor; in a block when it is large.
std::vector<WireTensor> Content(const BuildRequest &request, Session::State *state, Call *call) {
  if (request.content == nullptr) return {};
  WireTensor tensor;
  tensor.info.name = "model";
  tensor.info.type = kUint8;
  tensor.info.shape = {static_cast<int64_t>(request.content_size)};
  tensor.size = request.content_size;
  if (tensor.size <= kInlineBytes) {
    tensor.where = WireTensor::kInFrame;
    tensor.data = request.content;
    return {tensor};
  }
  const std::shared_ptr<Block> block = state->pool->TakeOnce(tensor.size);
  if (block == nullptr) {
    throw ResourceFailure("the " + std::to_string(tensor.size) +
                          " bytes of a model cannot be had as shared memory; free memory, or "
                          "build the model from its file");
  }
  call->Lend(block);
  std::memcpy(block->data(), request.content, tensor.size);
  tensor.where = WireTensor::kInBlock;
  tensor.place = {block->number(), 0, tensor.size};
  return {tensor};
}

// What the outputs that are too large for the frame take; 0 when nobody knows before an answer.
uint64_t RoomOf(const Description &description) {
  uint64_t room = 0;
  for (const TensorInfo &output : description.outputs) {
    uint64_t bytes = 0;
    if (!BytesOf(output, &bytes) || bytes > kMaxBlock - room) return 0;
    if (bytes > kInlineBytes) room = Aligned(room + bytes);
  }
  return room;
}
}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Session::~Session() {
  // in a child of the process, threads that are not there may hold its locks: it stays as it is
  if (!state_->link->is_ours()) state_.release();
}

Session::State &Session::Mine() const {
  if (!state_->link->is_ours()) throw ForkedFailure();
  return *state_;
}

Built Session::Build(const BuildRequest &request) {
  State &state = Mine();
  Call call(&state.lanes);
  const std::vector<WireTensor> content = Content(request, &state, &call);
  WriteBuild(call.Begin(), request, content);
  Reader body = call.Ask(Message::kBuild);
  Built built = ReadBuilt(&body);
  call.Accept();
  state.Remember(built.model);
  state.SetRoom(built.model, RoomOf(built.description));
  return built;
}

Description Session::Resize(uint32_t model, const std::vector<std::vector<int64_t>> &shapes) {
  State &state = Mine();
  Call call(&state.lanes);
  WriteResize(call.Begin(), model, shapes);
  Reader body = call.Ask(Message::kResize);
  Description description = ReadDescription(&body);
  call.Accept();
  state.SetRoom(model, RoomOf(description));
  return description;
}

void Session::UpdateWeights(uint32_t model, const std::vector<std::vector<Filled>> &groups) {
  State &state = Mine();
  Call call(&state.lanes);
  std::vector<std::vector<WireTensor>> placed;
  for (const auto &group : groups) placed.push_back(state.Placed(group, &call, true));
  WriteUpdate(call.Begin(), model, placed);
  call.Ask(Message::kUpdateWeights);
  call.Accept();
}

std::string Session::Info(uint32_t model, const std::string &key) {
  Call call(&Mine().lanes);
  Writer *const out = call.Begin();
  out->U32(model);
  out->Text(key);
  std::string fact = call.Ask(Message::kInfo).Text("a fact");
  call.Accept();
  return fact;
}

uint64_t Session::TimeoutUs(uint32_t model) {
  return std::strtoull(Info(model, "timeout_us").c_str(), nullptr, 10);
}

void Session::Close(uint32_t model) noexcept {
  if (!state_->link->is_ours()) return;
  try {
    Call call(&state_->lanes);
    Writer *const out = call.Begin();
    out->U32(model);
    out->U64(0);  // its requests under way have as long as they take
    call.Ask(Message::kClose);
    call.Accept();
  } catch (const std::exception &) {
    // the worker is gone, and the model with it
  }
  state_->Forget(model);
}

std::shared_ptr<Memory> Session::Allocate(size_t size) noexcept {
  if (size == 0 || !state_->link->is_ours()) return nullptr;
  try {
    std::shared_ptr<Block> block = state_->pool->Take(size);
    return block == nullptr ? nullptr : Memory::InBlock(std::move(block), 0, size);
  } catch (const std::exception &) {
    return nullptr;
  }
}
}  // namespace mslite
