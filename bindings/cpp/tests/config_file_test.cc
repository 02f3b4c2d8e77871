#include "src/config_file.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "src/failure.h"
#include "tests/check.h"
#include "tests/support.h"

namespace {
using mslite_test::TemporaryFile;

mslite::Sections Read(const std::string &bytes) {
  return mslite::ReadConfigFile(TemporaryFile(bytes).path());
}
}  // namespace

TEST(SectionsAndEntriesAreTrimmed) {
  auto found = Read("  [ a ]  \r\n  key  =  a = b  \n[b]\nother=\"quoted\"\n");
  CHECK_EQ(found.size(), 2u);
  CHECK_EQ(found["a"]["key"], "a = b");
  CHECK_EQ(found["b"]["other"], "quoted");
}

TEST(OfEqualKeysAndSectionsTheFirstCounts) {
  auto found = Read("[a]\nkey=1\nkey=2\n[b]\nkey=3\n[a]\nkey=4\nmore=5\n");
  CHECK_EQ(found["a"]["key"], "1");
  CHECK_EQ(found["a"].count("more"), 0u);
  CHECK_EQ(found["b"]["key"], "3");
}

TEST(LinesThatMeanNothingAreLeftOut) {
  auto found = Read("lost=1\n# [c]\n[a]\nwithout equals\n=nothing\n#key=1\nok\nkey=2\n");
  CHECK_EQ(found.size(), 1u);
  CHECK_EQ(found["a"].size(), 1u);
  CHECK_EQ(found["a"]["key"], "2");
}

TEST(BytesThatAreNoTextDoNotMakeAFileUnreadable) {
  const char bytes[] = "\x08\xff\x00[a\n\xfe\xff\n[\xff]\nkey=1\n[a]\nkey=\xc0\x80\nother=1\n";
  auto found = Read(std::string(bytes, sizeof(bytes) - 1));
  CHECK_EQ(found.count("\xff"), 0u);
  CHECK_EQ(found["a"].count("key"), 0u);
  CHECK_EQ(found["a"]["other"], "1");
}

TEST(AnEmptyFileHasNoSections) { CHECK(Read("").empty()); }

TEST(ALineWithoutEndTakesNoMemory) {
  std::string bytes(8 << 20, 'x');
  CHECK(Read("[a]\nkey=" + bytes).at("a").empty());
}

TEST(TooManyLinesAreRefused) {
  std::string lines = "[a]\n";
  for (int i = 0; i < 100000; ++i) lines += "key=1\n";
  CHECK_THROWS(Read(lines), mslite::Failure);
}

TEST(AMissingConfigurationFileIsNamed) {
  try {
    mslite::ReadConfigFile("/nowhere/config.ini");
    CHECK(false);
  } catch (const mslite::Failure &failure) {
    CHECK_EQ(failure.code(), mindspore::kLiteFileError);
    CHECK_CONTAINS(failure.what(), "/nowhere/config.ini");
  }
  CHECK_THROWS(mslite::ReadConfigFile("/tmp"), mslite::Failure);
}

TEST(PathsAreMadeAbsoluteAndOthersAreNot) {
  mslite::Sections sections = {{"model_File", {{"mindir_path", "x.mindir"}, {"other", "y"}}}};
  mslite::MakePathsAbsolute("", &sections);
  CHECK_EQ(sections["model_File"]["mindir_path"].front(), '/');
  CHECK_CONTAINS(sections["model_File"]["mindir_path"], "/x.mindir");
  CHECK_EQ(sections["model_File"]["other"], "y");
}

TEST(APathThatIsOnlyBesideTheFileIsFoundThere) {
  TemporaryFile names("w\n");
  std::string name = names.path().substr(names.path().rfind('/') + 1);
  mslite::Sections sections = {{"ascend_context", {{"variable_weights_file", name}}}};
  mslite::MakePathsAbsolute("/tmp/", &sections);
  CHECK_EQ(sections["ascend_context"]["variable_weights_file"], names.path());
}

TEST(LaterEntriesCount) {
  mslite::Sections base = {{"a", {{"x", "1"}, {"y", "2"}}}};
  mslite::Merge({{"a", {{"x", "3"}}}, {"b", {{"z", "4"}}}}, &base);
  CHECK_EQ(base["a"]["x"], "3");
  CHECK_EQ(base["a"]["y"], "2");
  CHECK_EQ(base["b"]["z"], "4");
}
