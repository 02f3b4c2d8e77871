// Runs the tests: all of them, or those whose names contain one of the arguments. `--list` names
// them. Exit status 1 when one failed, or when no test has such a name.
#include <cstdio>
#include <cstring>

#include "tests/check.h"

namespace {
using mslite_test::Test;
using mslite_test::Tests;

bool IsMeant(const Test &test, int count, char **words) {
  for (int i = 1; i < count; ++i) {
    if (std::strstr(test.name, words[i]) != nullptr) return true;
  }
  return count <= 1;
}

bool Passes(const Test &test) {
  std::printf("%s ...", test.name);
  std::fflush(stdout);  // a test may end the program: then it is the last one named
  try {
    test.run();
    std::printf(" ok\n");
    return true;
  } catch (const mslite_test::Skipped &skipped) {
    std::printf(" skipped: %s\n", skipped.what());
    return true;
  } catch (const std::exception &error) {
    std::printf(" FAILED\n  %s\n", error.what());
  } catch (...) {
    std::printf(" FAILED\n  something was thrown that is no std::exception\n");
  }
  return false;
}
}  // namespace

int main(int count, char **words) {
  const bool lists = count > 1 && std::strcmp(words[1], "--list") == 0;
  int ran = 0;
  int failed = 0;
  for (const Test &test : Tests()) {
    if (lists) {
      std::printf("%s\n", test.name);
    } else if (IsMeant(test, count, words)) {
      ++ran;
      failed += Passes(test) ? 0 : 1;
      std::fflush(stdout);
    }
  }
  if (lists) return 0;
  std::printf("%d tests, %d failed\n", ran, failed);
  return failed > 0 || ran == 0 ? 1 : 0;
}
