// What this process has at its worker: the models there, the memory both share, the lanes.
//
// One worker per process serves all models; it is started, or attached to, by the first Build.
// Every request takes a lane of its own, so any number of threads may be in here at once. When the
// worker dies, whatever is under way fails with kCoreFailed, everything that was built there stays
// unusable, and the next Current() starts another worker.
#ifndef MSLITE_SRC_WIRE_SESSION_H_
#define MSLITE_SRC_WIRE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/memory.h"

namespace mslite {
// A tensor without its data. `type` is the number of docs/wire.md, which is that of DataType.
struct TensorInfo {
  std::string name;
  uint16_t type = 0;
  std::vector<int64_t> shape;
};

// A tensor with data: what a request carries, and what an answer brings.
struct Filled {
  TensorInfo info;
  std::shared_ptr<Memory> memory;
  size_t size = 0;  // bytes that count, from the start of the memory
};

struct Description {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

struct Built {
  uint32_t model = 0;
  Description description;
  std::vector<std::string> notes;  // warnings for the user
};

using Sections = std::map<std::string, std::map<std::string, std::string>>;

// What BUILD carries; docs/wire.md.
struct BuildRequest {
  enum Kind : uint8_t { kModel = 0, kRunner = 1 };
  Kind kind = kModel;
  uint32_t model_type = 0;
  std::string path;  // absolute; empty when there is content
  const void *content = nullptr;
  size_t content_size = 0;
  std::vector<std::pair<std::string, std::string>> settings;
  Sections config;
  std::string key;
  std::string key_mode;
};

// What a request asks for besides its inputs.
struct CallOptions {
  uint64_t timeout_us = 0;  // 0: none
  int8_t priority = 0;      // -100 to 100; higher ones start first
};

// All functions throw Failure, but for those that say noexcept.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // The one of this process; starts the worker where there is none, or none that lives.
  static std::shared_ptr<Session> Current();
  // The same, but null where a worker would have to be started.
  static std::shared_ptr<Session> Running() noexcept;

  ~Session();

  Built Build(const BuildRequest &request);
  Description Resize(uint32_t model, const std::vector<std::vector<int64_t>> &shapes);
  // The outputs lie in memory of their own, or in shared memory that goes back with the last one.
  // With a limit, a request that has no answer by then is cancelled and fails with kMDTimeOut.
  std::vector<Filled> Predict(uint32_t model, const std::vector<Filled> &inputs,
                              const CallOptions &options = CallOptions());
  void UpdateWeights(uint32_t model, const std::vector<std::vector<Filled>> &groups);
  // A fact about a model; of the worker itself when `model` is 0.
  std::string Info(uint32_t model, const std::string &key);
  // How long a request of a model may take, in microseconds, as the worker read it; 0: no limit.
  uint64_t TimeoutUs(uint32_t model);
  // Waits for the model's requests under way, then releases it. Nothing when the worker is gone.
  void Close(uint32_t model) noexcept;
  // A piece of shared memory; null when it cannot be had.
  std::shared_ptr<Memory> Allocate(size_t size) noexcept;

  struct State;  // wire/session_state.h
  explicit Session(std::unique_ptr<State> state);

 private:
  // Throws in a child of the process that the session is of.
  State &Mine() const;

  std::unique_ptr<State> state_;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_SESSION_H_
