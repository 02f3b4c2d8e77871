#include "src/wire/spawn_actions.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "src/wire/errors.h"

namespace mslite {
namespace {
constexpr int kSocket = 3;  // the number that the child is told

void Must(int error) {
  if (error != 0) throw ResourceFailure("the worker cannot be started: " + SystemWords(error));
}

#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 34))
void CloseOthers(posix_spawn_file_actions_t *files) {
  Must(posix_spawn_file_actions_addclosefrom_np(files, kSocket + 1));
}
#else
// Those of now: one that another thread opens meanwhile is inherited, unless it is close-on-exec.
void CloseOthers(posix_spawn_file_actions_t *files) {
  DIR *const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent *entry = readdir(folder)) {
    const int number = std::atoi(entry->d_name);
    if (number > kSocket) Must(posix_spawn_file_actions_addclose(files, number));
  }
  closedir(folder);
}
#endif
}  // namespace

SpawnActions::SpawnActions(int socket) {
  Must(posix_spawn_file_actions_init(&files_));
  Must(posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
  if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
    Must(posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0));
  }
  Must(posix_spawn_file_actions_adddup2(&files_, STDERR_FILENO, STDOUT_FILENO));
  Must(posix_spawn_file_actions_adddup2(&files_, socket, kSocket));
  CloseOthers(&files_);

  sigset_t signals;
  Must(posix_spawnattr_init(&attributes_));
  sigemptyset(&signals);
  Must(posix_spawnattr_setsigmask(&attributes_, &signals));
  sigfillset(&signals);
  sigdelset(&signals, SIGKILL);
  sigdelset(&signals, SIGSTOP);
  Must(posix_spawnattr_setsigdefault(&attributes_, &signals));
  Must(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

SpawnActions::~SpawnActions() {
  posix_spawn_file_actions_destroy(&files_);
  posix_spawnattr_destroy(&attributes_);
}
}  // namespace mslite
