#include "tests/vectors.h"

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "src/wire/frame.h"
#include "tests/live.h"

namespace mslite_test {
namespace {
std::vector<uint8_t> FromHex(const std::string &digits) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Field FieldOf(const std::string &line) {
  std::istringstream words(line);
  std::string digits;
  Field field;
  words >> digits >> field.type >> field.name;
  words.get();
  std::getline(words, field.value);
  field.bytes = FromHex(digits);
  return field;
}

Vector Read(const std::string &folder, const std::string &file) {
  std::ifstream lines(folder + "/" + file);
  Vector vector;
  vector.name = file.substr(0, file.size() - 4);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line.compare(0, 5, "from ") == 0) {
      vector.parts.emplace_back();
      vector.parts.back().side = line.substr(5);
    } else if (line.compare(0, 8, "verdict ") == 0) {
      std::istringstream words(line.substr(8));
      words >> vector.parts.back().verdict;
      words.get();
      std::getline(words, vector.parts.back().reason);
    } else {
      vector.parts.back().fields.push_back(FieldOf(line));
    }
  }
  return vector;
}
}  // namespace

bool Part::Has(const std::string &name) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Field &field) { return field.name == name; });
}

const Field &Part::Of(const std::string &name) const {
  for (const Field &field : fields) {
    if (field.name == name) return field;
  }
  throw Failed(__FILE__, __LINE__, "there is no field " + name);
}

uint64_t Part::Number(const std::string &name) const {
  const std::string &value = Of(name).value;
  return value[0] == '-' ? static_cast<uint64_t>(std::stoll(value)) : std::stoull(value);
}

std::string Part::Text(const std::string &name) const {
  const std::vector<uint8_t> &bytes = Of(name).bytes;
  return std::string(bytes.begin() + 4, bytes.end());
}

std::vector<uint8_t> Part::Raw(const std::string &name) const { return Of(name).bytes; }

std::vector<int64_t> Part::Dims(const std::string &name) const {
  std::istringstream values(Of(name).value);
  std::vector<int64_t> dims;
  std::string dim;
  while (std::getline(values, dim, ',')) dims.push_back(std::stoll(dim));
  return dims;
}

std::vector<uint8_t> Part::Encoded() const {
  std::vector<uint8_t> all;
  for (const Field &field : fields) all.insert(all.end(), field.bytes.begin(), field.bytes.end());
  return all;
}

std::vector<uint8_t> Part::Body() const {
  const std::vector<uint8_t> all = Encoded();
  return std::vector<uint8_t>(all.begin() + mslite::kHeaderBytes, all.end());
}

std::vector<Vector> Vectors(const std::string &prefix) {
  const std::string folder = Setting("MSLITE_VECTORS");
  std::vector<Vector> found;
  DIR *const entries = opendir(folder.c_str());
  CHECK(entries != nullptr);
  while (const dirent *entry = readdir(entries)) {
    const std::string name = entry->d_name;
    const bool is_vector = name.size() > 4 && name.compare(name.size() - 4, 4, ".txt") == 0;
    if (is_vector && name.compare(0, prefix.size(), prefix) == 0) {
      found.push_back(Read(folder, name));
    }
  }
  closedir(entries);
  CHECK(!found.empty());
  std::sort(found.begin(), found.end(),
            [](const Vector &one, const Vector &other) { return one.name < other.name; });
  return found;
}

Vector VectorOf(const std::string &name) { return Vectors(name + ".txt")[0]; }

std::vector<uint8_t> Written(mslite::Writer *out) {
  return std::vector<uint8_t>(out->data(), out->data() + out->size());
}

std::string Hex(const std::vector<uint8_t> &bytes) {
  std::ostringstream out;
  for (uint8_t byte : bytes) {
    out << "0123456789abcdef"[byte >> 4] << "0123456789abcdef"[byte & 15];
  }
  return out.str();
}
}  // namespace mslite_test
