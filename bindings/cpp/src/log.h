// Messages for the user of the program, on stderr: one line each, beginning with "mslite: ".
#ifndef MSLITE_SRC_LOG_H_
#define MSLITE_SRC_LOG_H_

#include <string>

namespace mslite {
void LogWarning(const std::string &words) noexcept;
void LogError(const std::string &words) noexcept;
}  // namespace mslite
#endif  // MSLITE_SRC_LOG_H_
