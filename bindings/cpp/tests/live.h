// What tests need that talk to a real worker: MSLITE_PYTHON starts it, MSLITE_MODEL is a model of
// digits, float32 [-1, 1, 8, 8] in and [-1, 10] out.
#ifndef MSLITE_TESTS_LIVE_H_
#define MSLITE_TESTS_LIVE_H_

#include <sys/types.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/wire/session.h"
#include "tests/check.h"

namespace mslite_test {
constexpr size_t kDigitBytes = 8 * 8 * sizeof(float);
constexpr size_t kScoreBytes = 10 * sizeof(float);
constexpr uint16_t kFloat32 = 43;

inline std::string Setting(const char *name) {
  const char *const value = std::getenv(name);
  if (value == nullptr) SKIP(std::string(name) + " is not set");
  return value;
}

inline mslite::BuildRequest DigitsRequest() {
  mslite::BuildRequest request;
  request.path = Setting("MSLITE_MODEL");
  request.settings = {{"cpu.thread_num", "1"}};
  return request;
}

// So many digits, all of this value.
inline mslite::Filled Digits(int64_t count, float value,
                             std::shared_ptr<mslite::Memory> memory = nullptr) {
  mslite::Filled filled;
  filled.info.name = "x";
  filled.info.type = kFloat32;
  filled.info.shape = {count, 1, 8, 8};
  filled.size = static_cast<size_t>(count) * kDigitBytes;
  filled.memory = memory == nullptr ? mslite::Memory::OnHeap(filled.size) : memory;
  auto *const pixels = static_cast<float *>(filled.memory->data());
  for (size_t i = 0; i < filled.size / sizeof(float); ++i) {
    pixels[i] = value * static_cast<float>(i % 64);
  }
  return filled;
}

inline std::vector<float> Scores(const mslite::Filled &output) {
  const auto *const scores = static_cast<const float *>(output.memory->data());
  return std::vector<float>(scores, scores + output.size / sizeof(float));
}

// Runs it in a child of this process and ends that; whether it passed.
bool PassesInChild(const std::function<void()> &run);
// Waits until a process has ended, and is no zombie of this one.
void AwaitEnd(pid_t pid);
// The process id of a session's worker.
inline pid_t WorkerOf(mslite::Session *session) { return std::stoi(session->Info(0, "pid")); }
// What the descriptors of a process stand for, as "socket:[123]"; without its standard ones.
std::vector<std::string> OpenFiles(pid_t pid);

// Whether every row has the scores of a single one.
inline bool AreRows(const mslite::Filled &output, const std::vector<float> &row) {
  const std::vector<float> all = Scores(output);
  for (size_t i = 0; i < all.size(); ++i) {
    const float distance = all[i] - row[i % row.size()];
    if (distance > 1e-4f || distance < -1e-4f) return false;
  }
  return !all.empty();
}
}  // namespace mslite_test
#endif  // MSLITE_TESTS_LIVE_H_
