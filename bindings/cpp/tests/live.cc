#include "tests/live.h"

#include <dirent.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

namespace mslite_test {
bool PassesInChild(const std::function<void()> &run) {
  std::fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    int failed = 1;
    try {
      run();
      failed = 0;
    } catch (...) {
      std::printf(" (in the child: %s)", Current().c_str());
      std::fflush(stdout);
    }
    _exit(failed);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) CHECK_EQ(errno, EINTR);
  return status == 0;
}

void AwaitEnd(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  for (;;) {
    std::ifstream file(path);
    std::string facts;
    std::getline(file, facts, '\0');  // which takes an end in the middle for nothing to read
    const size_t name_ends = facts.rfind(')');
    if (name_ends == std::string::npos) return;
    const bool is_zombie = facts[name_ends + 2] == 'Z';
    const std::string parent = ' ' + std::to_string(getpid()) + ' ';
    const bool is_ours = facts.compare(name_ends + 3, parent.size(), parent) == 0;
    if (is_zombie && !is_ours) return;  // who should reap it is none of us
    sched_yield();
  }
}

std::vector<std::string> OpenFiles(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd/";
  std::vector<std::string> found;
  DIR *const entries = opendir(folder.c_str());
  CHECK(entries != nullptr);
  while (const dirent *entry = readdir(entries)) {
    char target[256] = {};
    const ssize_t size = readlink((folder + entry->d_name).c_str(), target, sizeof(target) - 1);
    const bool is_listing = std::string(target).find("/proc/") == 0;
    if (size > 0 && !is_listing && std::atoi(entry->d_name) > 2) found.push_back(target);
  }
  closedir(entries);
  return found;
}
}  // namespace mslite_test
