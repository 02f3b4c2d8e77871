// Configurations mean here what they mean in Python: tests/settings/vectors.txt, through a worker.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/config_file.h"
#include "src/failure.h"
#include "src/wire/session.h"
#include "tests/check.h"
#include "tests/live.h"

namespace {
struct SettingsCase {
  std::string name;
  std::map<std::string, std::string> parts;  // settings, ini, spec, error
};

std::vector<SettingsCase> SettingsCases() {
  const char *folder = std::getenv("MSLITE_VECTORS");
  if (folder == nullptr) SKIP("MSLITE_VECTORS is not set");
  std::ifstream file(std::string(folder) + "/../../../settings/vectors.txt");
  std::vector<SettingsCase> cases;
  std::string *part = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 3, "== ") == 0) {
      cases.push_back({line.substr(3), {}});
      part = nullptr;
    } else if (line.compare(0, 3, "-- ") == 0) {
      part = &cases.back().parts[line.substr(3)];
    } else if (part != nullptr && !line.empty()) {
      *part += line + "\n";
    }
  }
  return cases;
}

mslite::BuildRequest RequestOf(const SettingsCase &one) {
  auto parts = one.parts;
  const std::string path = "/tmp/mslite_settings_" + std::to_string(getpid()) + ".ini";
  std::ofstream(path) << parts["ini"];
  mslite::BuildRequest request = mslite_test::DigitsRequest();
  request.kind = mslite::BuildRequest::kRunner;
  request.settings.clear();
  request.config = mslite::ReadConfigFile(path);
  std::remove(path.c_str());
  std::istringstream lines(parts["settings"]);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    request.settings.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return request;
}

TEST(AConfigurationSettlesAsItDoesInPython) {
  const auto cases = SettingsCases();
  CHECK(cases.size() >= 16);
  const auto session = mslite::Session::Current();
  for (const auto &one : cases) {
    const auto error = one.parts.find("error");
    if (error != one.parts.end()) {
      const std::string words = error->second.substr(0, error->second.size() - 1);
      try {
        session->Build(RequestOf(one));
        CHECK_EQ(one.name, std::string("refused"));
      } catch (const mslite::Failure &failure) {
        CHECK_CONTAINS(failure.what(), words);
      }
      continue;
    }
    const mslite::Built built = session->Build(RequestOf(one));
    CHECK_EQ(one.name + "\n" + session->Info(built.model, "spec"),
             one.name + "\n" + one.parts.at("spec"));
    session->Close(built.model);
  }
}
}  // namespace
