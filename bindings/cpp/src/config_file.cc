#include "src/config_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "src/failure.h"
#include "src/wire/fields.h"

namespace mslite {
namespace {
constexpr size_t kMostLines = 100100;
constexpr size_t kMostUsefulLines = 100000;

Failure FileError(const std::string &message) {
  return Failure(mindspore::kLiteFileError, "ModelFileError", message);
}

std::string Trimmed(const std::string &text) {
  const char *blanks = " \t\r\n\v\f";
  size_t first = text.find_first_not_of(blanks);
  if (first == std::string::npos) {
    return "";
  }
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool CanBeSent(const std::string &text) { return text.size() <= kMaxText && IsUtf8(text); }

std::string WithoutQuotes(const std::string &text) {
  bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

void AddEntry(const std::string &line, std::map<std::string, std::string> *section) {
  size_t equals = line.find('=');
  if (equals == std::string::npos) {
    return;
  }
  std::string key = Trimmed(line.substr(0, equals));
  std::string value = WithoutQuotes(Trimmed(line.substr(equals + 1)));
  if (!key.empty() && CanBeSent(key) && CanBeSent(value)) {
    section->emplace(key, value);  // the first one counts
  }
}

// The next line, of which no more is kept than could mean something: a file may have no line ends.
bool NextLine(std::istream *file, std::string *line) {
  line->clear();
  std::streambuf *bytes = file->rdbuf();
  int byte = bytes->sbumpc();
  bool is_end = byte == std::char_traits<char>::eof();
  for (; byte != std::char_traits<char>::eof() && byte != '\n'; byte = bytes->sbumpc()) {
    if (line->size() <= 2 * kMaxText) {
      line->push_back(static_cast<char>(byte));
    }
  }
  return !is_end;
}

bool Exists(const std::string &path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0;
}

bool IsPath(const std::string &section, const std::string &key) {
  return (Lower(section) == "model_file" && key == "mindir_path") || key == "variable_weights_file";
}
}  // namespace

Sections ReadConfigFile(const std::string &path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) {
    throw FileError("configuration file '" + path + "' cannot be read: " + std::strerror(errno));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file || !S_ISREG(found.st_mode)) {
    throw FileError("configuration file '" + path +
                    "' cannot be read; wanted a file of [section] "
                    "and key=value lines");
  }
  Sections sections;
  std::map<std::string, std::string> *section = nullptr;  // null: lines belong to nothing
  size_t lines = 0;
  size_t useful = 0;
  for (std::string line; NextLine(&file, &line);) {
    line = Trimmed(line);
    bool says_nothing = line.size() <= 2 || line[0] == '#';
    useful += says_nothing ? 0 : 1;
    if (++lines >= kMostLines || useful >= kMostUsefulLines) {
      throw FileError("configuration file '" + path + "' has too many lines, at most " +
                      std::to_string(kMostUsefulLines) + " are read");
    }
    if (says_nothing) {
      continue;
    }
    if (line.front() == '[' && line.back() == ']') {
      std::string name = Trimmed(line.substr(1, line.size() - 2));
      bool is_new = CanBeSent(name) && sections.count(name) == 0;
      section = is_new ? &sections[name] : nullptr;
    } else if (section != nullptr) {
      AddEntry(line, section);
    }
  }
  size_t slash = path.rfind('/');
  MakePathsAbsolute(slash == std::string::npos ? "" : path.substr(0, slash + 1), &sections);
  return sections;
}

void Merge(const Sections &over, Sections *base) {
  for (const auto &section : over) {
    auto &entries = (*base)[section.first];
    for (const auto &entry : section.second) {
      entries[entry.first] = entry.second;
    }
  }
}

void MakePathsAbsolute(const std::string &beside, Sections *sections) {
  for (auto &section : *sections) {
    for (auto &entry : section.second) {
      std::string &path = entry.second;
      if (!IsPath(section.first, entry.first) || path.empty()) {
        continue;
      }
      if (path.front() != '/' && !Exists(path) && Exists(beside + path)) {
        path = beside + path;
      }
      path = Absolute(path);
    }
  }
}

std::string Absolute(const std::string &path) {
  if (path.empty() || path.front() == '/') {
    return path;
  }
  std::vector<char> directory(4096);
  while (getcwd(directory.data(), directory.size()) == nullptr) {
    if (errno != ERANGE) {
      throw FileError("'" + path +
                      "' is a relative path, and the working directory cannot be had: " +
                      std::strerror(errno) + "; give an absolute path");
    }
    directory.resize(directory.size() * 2);
  }
  return std::string(directory.data()) + "/" + path;
}

void CheckRoom(const Sections &sections, const std::string &section, size_t entries) {
  if (sections.count(section) == 0 && sections.size() >= kMaxSections) {
    throw FileError("section '" + section + "' is one too many, at most " +
                    std::to_string(kMaxSections) + " are taken");
  }
  if (entries > kMaxEntries) {
    throw FileError("section '" + section + "' has " + std::to_string(entries) +
                    " entries, at most " + std::to_string(kMaxEntries) + " are taken");
  }
}
}  // namespace mslite
