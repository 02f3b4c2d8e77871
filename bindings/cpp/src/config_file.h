// Configuration files: `[section]` and `key=value` lines go in, sections come out.
#ifndef MSLITE_SRC_CONFIG_FILE_H_
#define MSLITE_SRC_CONFIG_FILE_H_

#include <cstddef>
#include <string>

#include "src/wire/session.h"

namespace mslite {
constexpr size_t kMaxSections = 100;  // the original's
constexpr size_t kMaxEntries = 1000;  // of one section

// Lines that mean nothing are left out, whatever bytes they have: programs pass model files here.
// Of two equal keys or sections the first one counts. Paths in it are made absolute. Throws Failure
// (kLiteFileError) when it cannot be read or is too long.
Sections ReadConfigFile(const std::string &path);

// Entries of `over` count before those of `base`.
void Merge(const Sections &over, Sections *base);

// Entries that are paths, as seen from this process, which may change its directory later; what is
// not there is looked for in `beside` next.
void MakePathsAbsolute(const std::string &beside, Sections *sections);

// The path as seen from any directory. Throws Failure when there is none to start from.
std::string Absolute(const std::string &path);

// Refuses a section or entry too many with kLiteFileError, as the original does.
void CheckRoom(const Sections &sections, const std::string &section, size_t entries);
}  // namespace mslite
#endif  // MSLITE_SRC_CONFIG_FILE_H_
