// Models and runners that come and go leave nothing behind, here or in the worker.
#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/models.h"

namespace {
using mindspore::MSTensor;

struct Holdings {
  int files = 0;
  int mappings = 0;
  int threads = 0;
  long pages = 0;  // resident
};

int Entries(const std::string &folder) {
  DIR *listed = opendir(folder.c_str());
  CHECK(listed != nullptr);
  int count = 0;
  while (readdir(listed) != nullptr) ++count;
  closedir(listed);
  return count;
}

Holdings Held(const std::string &process) {
  const std::string folder = "/proc/" + process;
  Holdings held;
  held.files = Entries(folder + "/fd");
  held.threads = Entries(folder + "/task");
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) ++held.mappings;
  long whole = 0;
  std::ifstream(folder + "/statm") >> whole >> held.pages;
  return held;
}

void Cycle() {
  auto model = mslite_test::Built("dense.mindir");
  mslite_test::Fill(mslite_test::Six(), model.GetInputs()[0]);
  std::vector<MSTensor> outputs;
  CHECK(model.Predict(model.GetInputs(), &outputs) == mindspore::kSuccess);
  CHECK_EQ(mslite_test::Floats(outputs[0]), mslite_test::Dense(mslite_test::Six()));
}

// A large tensor each time: memory that is shared comes and goes, too.
void LargeCycle() {
  auto runner = mslite_test::Runner("wide.mindir");
  auto inputs = runner.GetInputs();
  mslite_test::Fill(std::vector<float>(1 << 20, 1.0f), inputs[0]);
  std::vector<MSTensor> outputs;
  CHECK(runner.Predict(inputs, &outputs) == mindspore::kSuccess);
}

// Waits until a process has what it had. Something may be closed a little later than the call that
// asks for it returns, before the first count or before the second: it may be less, too. What a
// model leaves behind is there for each of them, of which there are 20 at least.
void CheckNoMore(const Holdings &before, const std::string &process) {
  Holdings now = Held(process);
  const auto is_more = [&] {
    return now.files > before.files + 8 || now.threads > before.threads + 8 ||
           now.mappings > before.mappings + 16;  // the heap may be in a few pieces more
  };
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (is_more() && std::chrono::steady_clock::now() < due) {
    std::this_thread::yield();
    now = Held(process);
  }
  CHECK(now.files <= before.files + 8);
  CHECK(now.threads <= before.threads + 8);
  CHECK(now.mappings <= before.mappings + 16);
}
}  // namespace

TEST(AThousandModelsLeaveNothingBehind) {
  auto one = mslite_test::Built("dense.mindir");  // keeps the worker's session in use
  const std::string worker = one.GetModelInfo("current_pid");
  for (int i = 0; i < 5; ++i) LargeCycle();
  for (int i = 0; i < 50; ++i) Cycle();
  const Holdings before = Held("self");
  const Holdings before_there = Held(worker);
  for (int i = 0; i < 1000; ++i) Cycle();
  const Holdings after_there = Held(worker);
  CheckNoMore(before, "self");
  CheckNoMore(before_there, worker);
  // The worker is never built with a sanitizer, which would keep what was freed. Models here take
  // some 30 KB: a leak of one per cycle would be 30 MB.
  const long grown_kib = (after_there.pages - before_there.pages) * (sysconf(_SC_PAGESIZE) / 1024);
  CHECK(grown_kib < 8 * 1024);
  for (int i = 0; i < 20; ++i) LargeCycle();
  CheckNoMore(before, "self");
  CheckNoMore(before_there, worker);
}
