#include "src/wire/pulse.h"

#include <fstream>
#include <sstream>
#include <string>

#include "src/wire/frame.h"

namespace mslite {
int64_t CpuTicks(uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string facts;
  std::getline(file, facts, '\0');
  const size_t name_ends = facts.rfind(')');  // the name before may hold anything
  if (name_ends == std::string::npos) return -1;
  std::istringstream fields(facts.substr(name_ends + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  return fields.fail() ? -1 : user + system;
}

void Pulse::Begin() {
  const int64_t now_ns = NowNs();
  // who waits asks every every_ms, for ask_ms at most
  const int64_t longest_ms = 2 * (int64_t{TheTimes().every_ms} + TheTimes().ask_ms);
  if (asked_ns_ == 0 || now_ns - asked_ns_ > longest_ms * 1000000) Heard();
  asked_ns_ = now_ns;
}

void Pulse::Heard() {
  since_ns_ = asked_ns_ = NowNs();
  ticks_ = -1;
}

int64_t Pulse::SilentMs() {
  const int64_t ticks = CpuTicks(pid_);
  if (ticks != ticks_) {
    ticks_ = ticks;
    since_ns_ = NowNs();
  }
  return (NowNs() - since_ns_) / 1000000;
}
}  // namespace mslite
