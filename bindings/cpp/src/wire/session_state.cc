#include "src/wire/session_state.h"

#include <cstring>
#include <string>
#include <utility>

#include "src/wire/errors.h"

namespace mslite {
namespace {
void CheckData(const Filled &tensor) {
  const Memory *const memory = tensor.memory.get();
  const bool is_there = memory != nullptr && memory->data() != nullptr &&
                        (memory->size() == Memory::kUnknownSize || memory->size() >= tensor.size);
  if (tensor.size == 0 || is_there) return;
  throw Failure(mindspore::kLiteInputTensorError, "InputError",
                "tensor '" + tensor.info.name + "' has no data, or less than the " +
                    std::to_string(tensor.size) + " bytes of its shape; fill it first");
}

bool IsShared(const Filled &tensor, uint64_t session) {
  return tensor.size > 0 && tensor.memory->block() != nullptr &&
         tensor.memory->block()->IsKnown(session) && tensor.memory->offset() % kAlignment == 0;
}

Failure NoRoom(const std::string &bytes) {
  return ResourceFailure(bytes +
                         " bytes of shared memory cannot be had for the tensors of a "
                         "request; free memory, or send fewer at once");
}
}  // namespace

std::vector<WireTensor> Session::State::Placed(const std::vector<Filled> &tensors, Call *call,
                                               bool once) {
  std::vector<WireTensor> placed(tensors.size());
  std::vector<size_t> copied;
  uint64_t end = 0;
  size_t left = kInlineTotal;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Filled &from = tensors[i];
    CheckData(from);
    WireTensor &to = placed[i];
    to.info = from.info;
    to.size = from.size;
    to.where = WireTensor::kInBlock;
    to.place.size = from.size;
    if (IsShared(from, link->serial())) {
      to.place.block = from.memory->block()->number();
      to.place.offset = from.memory->offset();
    } else if (from.size <= kInlineBytes && from.size <= left) {
      to.where = WireTensor::kInFrame;
      to.data = from.size == 0 ? nullptr : from.memory->data();
      left -= from.size;
    } else {
      if (from.size > kMaxBlock - end) throw NoRoom("more than " + std::to_string(kMaxBlock));
      to.place.offset = end;
      end = Aligned(end + from.size);
      copied.push_back(i);
    }
  }
  if (copied.empty()) return placed;
  const std::shared_ptr<Block> block = once ? pool->TakeOnce(end) : pool->Take(end, call->due_ns());
  if (block == nullptr) {
    throw NoRoom(std::to_string(end));
  }
  call->Lend(block);
  for (size_t i : copied) {
    placed[i].place.block = block->number();
    std::memcpy(block->data() + placed[i].place.offset, tensors[i].memory->data(), tensors[i].size);
  }
  return placed;
}

uint64_t Session::State::RoomFor(uint32_t model) {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = rooms_.find(model);
  return found == rooms_.end() ? 0 : found->second;
}

void Session::State::SetRoom(uint32_t model, uint64_t bytes) {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto found = rooms_.find(model);
  if (found != rooms_.end()) found->second = bytes;  // else it was closed meanwhile
}

void Session::State::Remember(uint32_t model) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    rooms_[model] = 0;
  }
  pool->AddModel();
}

void Session::State::Forget(uint32_t model) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (rooms_.erase(model) == 0) return;
  }
  pool->RemoveModel();
}
}  // namespace mslite
