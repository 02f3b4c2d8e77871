// What happens between fork and exec when the worker is started.
#ifndef MSLITE_SRC_WIRE_SPAWN_ACTIONS_H_
#define MSLITE_SRC_WIRE_SPAWN_ACTIONS_H_

#include <spawn.h>

namespace mslite {
// The child has /dev/null as stdin, this process's stderr as stdout and stderr (its stdout may be
// anything's input), the socket as 3, and nothing else that this process has open: a server's
// sockets must not stay open in it. All signals are let in and do what they do by default.
class SpawnActions {
 public:
  explicit SpawnActions(int socket);
  ~SpawnActions();
  SpawnActions(const SpawnActions &) = delete;
  SpawnActions &operator=(const SpawnActions &) = delete;

  const posix_spawn_file_actions_t *files() const { return &files_; }
  const posix_spawnattr_t *attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_SPAWN_ACTIONS_H_
