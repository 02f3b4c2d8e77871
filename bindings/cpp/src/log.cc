#include "src/log.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

namespace mslite {
namespace {
// One call for the whole line, so that lines of several threads do not mix.
void Log(const char *kind, const std::string &words) noexcept {
  try {
    std::string line = std::string("mslite: ") + kind + words;
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    // Where it cannot be written, nobody can read it.
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(written);
  } catch (const std::exception &) {
    // No memory for words: what they were about matters more.
  }
}
}  // namespace

void LogWarning(const std::string &words) noexcept { Log("warning: ", words); }
void LogError(const std::string &words) noexcept { Log("error: ", words); }
}  // namespace mslite
