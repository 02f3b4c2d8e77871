#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "src/failure.h"
#include "src/wire/worker_process.h"

namespace mslite {
namespace {
std::string Setting(const char *name) {
  const char *const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsProgram(const std::string &path) {
  struct stat facts;
  return access(path.c_str(), X_OK) == 0 && stat(path.c_str(), &facts) == 0 &&
         S_ISREG(facts.st_mode);  // others may search a folder, but nobody can run it
}

// The first program of that name on PATH; empty when there is none.
std::string FoundOnPath(const std::string &name) {
  std::istringstream folders(Setting("PATH"));
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (IsProgram(path)) return path;
  }
  return "";
}
}  // namespace

std::vector<std::string> WorkerCommand() {
  const std::string python = Setting("MSLITE_PYTHON");
  // -P: no module of the working directory stands in for one of the runtime
  if (!python.empty()) return {python, "-P", "-m", "mindspore_lite", "worker", "--fd", "3"};
  const std::string program = FoundOnPath("mslite");
  if (!program.empty()) return {program, "worker", "--fd", "3"};
  throw Failure(mindspore::kLiteNotSupport, "EngineUnavailableError",
                "the runtime is not found: MSLITE_PYTHON is not set, and there is no 'mslite' on "
                "PATH; install it (pip install mslite) and put its command on PATH, or set "
                "MSLITE_PYTHON to the Python interpreter that it is installed for");
}

std::string Joined(const std::vector<std::string> &command) {
  std::string line;
  for (const auto &word : command) line += (line.empty() ? "" : " ") + word;
  return line;
}
}  // namespace mslite
