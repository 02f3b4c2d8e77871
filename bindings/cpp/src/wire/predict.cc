// Session::Predict: inputs out, outputs in, copied as little as can be.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "src/wire/bodies.h"
#include "src/wire/errors.h"
#include "src/wire/session_state.h"

namespace mslite {
namespace {
using Blocks = std::vector<std::shared_ptr<Block>>;

// How much longer than a deadline to wait for the worker, which says better what it was about.
constexpr uint64_t kLateUs = 250000;

// The blocks that the worker made for the outputs; they are the pool's from now on.
Blocks Opened(const std::vector<Made> &all, Session::State *state, const LaneLife &life) {
  Blocks opened;
  for (size_t i = 0; i < all.size(); ++i) {
    try {
      opened.push_back(state->pool->Adopt(state->link->OpenBlock(all[i], life)));
    } catch (...) {
      for (size_t j = i; j < all.size(); ++j) state->pool->Disown(all[j].block);
      throw;
    }
  }
  return opened;
}

std::shared_ptr<Memory> OnHeap(const void *data, size_t size) {
  std::shared_ptr<Memory> memory = Memory::OnHeap(size);
  if (memory == nullptr) throw std::bad_alloc();
  if (size > 0) std::memcpy(memory->data(), data, size);
  return memory;
}

// The block that an output lies in, all of it.
const std::shared_ptr<Block> &BlockOf(const WireTensor &tensor, const Blocks &blocks) {
  const Place &place = tensor.place;
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const auto &block) {
    return block->number() == place.block;
  });
  if (found == blocks.end()) {
    throw WireFailure("the worker's output '" + tensor.info.name +
                      "' lies in a block that is not "
                      "its: there is no block " +
                      std::to_string(place.block));
  }
  if (place.offset % kAlignment != 0 || place.offset > (*found)->size() ||
      place.size > (*found)->size() - place.offset) {
    throw WireFailure("the worker's output '" + tensor.info.name + "' lies at byte " +
                      std::to_string(place.offset) + " of a block of " +
                      std::to_string((*found)->size()) + " bytes, which cannot be");
  }
  return *found;
}

Filled Result(WireTensor *tensor, const Blocks &blocks, uint64_t *room) {
  Filled result;
  result.size = tensor->size;
  if (tensor->where == WireTensor::kNowhere) {
    throw WireFailure("the worker's output '" + tensor->info.name + "' came without data");
  }
  if (tensor->where == WireTensor::kInFrame) {
    result.memory = OnHeap(tensor->data, tensor->size);
  } else {
    const Place &place = tensor->place;
    const std::shared_ptr<Block> &block = BlockOf(*tensor, blocks);
    *room = std::max(*room, Aligned(place.offset + place.size));
    // what is small does not keep a block
    result.memory = tensor->size <= kInlineBytes
                        ? OnHeap(block->data() + place.offset, tensor->size)
                        : Memory::InBlock(block, place.offset, tensor->size);
  }
  result.info = std::move(tensor->info);
  return result;
}
}  // namespace

std::vector<Filled> Session::Predict(uint32_t model, const std::vector<Filled> &inputs,
                                     const CallOptions &options) {
  State &state = Mine();
  const int64_t due_ns = options.timeout_us == 0
                             ? 0
                             : NowNs() + static_cast<int64_t>(options.timeout_us + kLateUs) * 1000;
  Call call(&state.lanes, due_ns);
  std::vector<WireTensor> placed = state.Placed(inputs, &call, false);
  // a worker does not look at the names, but at whether they are UTF-8, as the user's need not be
  for (WireTensor &input : placed) input.info.name.clear();

  Blocks blocks;
  Place room;
  const uint64_t wanted = state.RoomFor(model);
  const std::shared_ptr<Block> spare = wanted == 0 ? nullptr : state.pool->Take(wanted, due_ns);
  if (spare != nullptr) {
    call.Lend(spare);
    blocks.push_back(spare);
    room = {spare->number(), 0, spare->size()};
  }

  WritePredict(call.Begin(), model, options, room, placed);
  Reader body = call.Ask(Message::kPredict);
  for (auto &block : Opened(ReadMade(&body), &state, call.life())) blocks.push_back(block);
  std::vector<WireTensor> outputs = ReadTensors(&body, "outputs");
  std::vector<Filled> results;
  results.reserve(outputs.size());
  uint64_t needed = 0;
  for (WireTensor &output : outputs) results.push_back(Result(&output, blocks, &needed));
  call.Accept();
  state.SetRoom(model, needed);
  return results;
}
}  // namespace mslite
