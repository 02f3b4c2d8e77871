// The worker as a child of this process: how it is found, started and reaped.
#ifndef MSLITE_SRC_WIRE_WORKER_PROCESS_H_
#define MSLITE_SRC_WIRE_WORKER_PROCESS_H_

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/wire/descriptor.h"

namespace mslite {
// The command that starts a worker for `--fd 3`; throws a Failure when there is none.
std::vector<std::string> WorkerCommand();
// As a person would type it.
std::string Joined(const std::vector<std::string> &command);

// A child. A thread waits for its end, as only this process can, so that it never stays a zombie
// and everybody can be told how it ended. It is not stopped when this goes: the end of its
// connection does that.
class WorkerProcess {
 public:
  // Starts the command, with the socket as its descriptor 3; throws a Failure.
  static std::shared_ptr<WorkerProcess> Start(const std::vector<std::string> &command,
                                              const Descriptor &socket);
  explicit WorkerProcess(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  // Waits for its end for so long. How it ended, as "exit status 1" or "killed by signal 9"; empty
  // when it did not, or when nobody knows.
  std::string Ending(int limit_ms);
  // Ends it, if it has not.
  void Kill();
  // Waits for the end, and reaps; for the thread that does so.
  void Await();

 private:
  const pid_t pid_;
  std::mutex lock_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::string ending_;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_WORKER_PROCESS_H_
