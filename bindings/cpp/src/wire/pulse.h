// For how long a worker has been silent: not by a clock alone, for one that computes may have no
// time to answer, as when its interpreter is held by what it builds.
#ifndef MSLITE_SRC_WIRE_PULSE_H_
#define MSLITE_SRC_WIRE_PULSE_H_

#include <cstdint>

namespace mslite {
// The processor time of a process in ticks of the kernel, from /proc; -1 when it is gone.
int64_t CpuTicks(uint32_t pid);

// One thread at a time.
class Pulse {
 public:
  explicit Pulse(uint32_t pid) : pid_(pid) {}

  // Before it is asked. If that was long ago, it counts from now on: nobody waited meanwhile.
  void Begin();
  // It answered.
  void Heard();
  // It did not. For how long it has neither answered nor computed.
  int64_t SilentMs();

 private:
  const uint32_t pid_;
  int64_t asked_ns_ = 0;
  int64_t since_ns_ = 0;  // the last sign of life
  int64_t ticks_ = -1;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_PULSE_H_
