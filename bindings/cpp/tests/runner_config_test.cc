#include <memory>

#include "include/api/model_parallel_runner.h"
#include "tests/check.h"

using mindspore::Context;
using mindspore::RunnerConfig;

namespace {
std::map<std::string, std::string> Entries(int count) {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < count; ++i) entries[std::to_string(i)] = "value";
  return entries;
}
}  // namespace

TEST(ARunnerConfigLeavesEverythingToTheMachineAtFirst) {
  const RunnerConfig config;
  CHECK_EQ(config.GetWorkersNum(), 0);
  CHECK(config.GetContext() == nullptr);
  CHECK(config.GetConfigInfo().empty());
  CHECK_EQ(config.GetConfigPath(), "");
  CHECK(config.GetDeviceIds().empty());
}

TEST(ARunnerConfigKeepsWhatIsSet) {
  RunnerConfig config;
  const auto context = std::make_shared<Context>();
  config.SetWorkersNum(2);
  config.SetContext(context);
  config.SetContext(nullptr);  // ignored
  config.SetConfigPath("config.ini");
  config.SetDeviceIds({0, 3});
  CHECK_EQ(config.GetWorkersNum(), 2);
  CHECK(config.GetContext() == context);
  CHECK_EQ(config.GetConfigPath(), "config.ini");
  CHECK_EQ(config.GetDeviceIds(), (std::vector<uint32_t>{0, 3}));
}

TEST(ASectionIsReplacedAsAWhole) {
  RunnerConfig config;
  config.SetConfigInfo("model_file", {{"mindir_path", "a"}, {"other", "b"}});
  config.SetConfigInfo("model_file", {{"mindir_path", "c"}});
  const auto sections = config.GetConfigInfo();
  CHECK_EQ(sections.size(), size_t{1});
  CHECK_EQ(sections.at("model_file").size(), size_t{1});
  CHECK_EQ(sections.at("model_file").at("mindir_path"), "c");
}

TEST(TooMuchConfigurationIsNotTaken) {
  RunnerConfig config;
  config.SetConfigInfo("many", Entries(1001));
  CHECK(config.GetConfigInfo().empty());
  config.SetConfigInfo("many", Entries(1000));
  CHECK_EQ(config.GetConfigInfo().at("many").size(), size_t{1000});
  for (int i = 0; i < 200; ++i) config.SetConfigInfo("s" + std::to_string(i), {});
  CHECK_EQ(config.GetConfigInfo().size(), size_t{101});
}

TEST(CopiesOfARunnerConfigShareTheirState) {
  RunnerConfig config;
  RunnerConfig copy = config;
  copy.SetWorkersNum(5);
  CHECK_EQ(config.GetWorkersNum(), 5);
}
