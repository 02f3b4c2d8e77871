// A test framework in one header: TEST(WhatIsTrueInCamelCase) { CHECK(...); }
//
// A check that fails ends its test, by an exception, and the program goes on with the next one. In
// a thread of a test's own an exception would end the program instead: threads are started by
// `mslite_test::Threads`, which keeps what failed there and fails the test when it is joined.
#ifndef MSLITE_TESTS_CHECK_H_
#define MSLITE_TESTS_CHECK_H_

#include <exception>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace mslite_test {
struct Test {
  const char *name;
  void (*run)();
};

// All tests of the program. Within a function, as the order in which files are set up is open.
inline std::vector<Test> &Tests() {
  static std::vector<Test> tests;
  return tests;
}

struct Registered {
  Registered(const char *name, void (*run)()) { Tests().push_back({name, run}); }
};

// A check that failed: where, and what.
class Failed : public std::exception {
 public:
  Failed(const char *file, int line, const std::string &what)
      : text_(std::string(file) + ":" + std::to_string(line) + ": " + what) {}
  const char *what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// The test cannot be done here, and says why.
class Skipped : public std::exception {
 public:
  explicit Skipped(std::string why) : why_(std::move(why)) {}
  const char *what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

template <typename T>
void Show(std::ostream &out, const T &value, std::false_type) {
  out << value;
}
template <typename T>
void Show(std::ostream &out, const T &value, std::true_type) {
  out << static_cast<long long>(value);
}
template <typename T>
std::string Shown(const T &value) {
  std::ostringstream out;
  out << std::boolalpha;
  Show(out, value, std::is_enum<T>());
  return out.str();
}
template <typename T>
std::string Shown(const std::vector<T> &values) {
  std::string text = "[";
  for (const auto &value : values) {
    text += (text.size() > 1 ? ", " : "") + Shown(value);
  }
  return text + "]";
}
inline std::string Shown(std::nullptr_t) { return "null"; }

// Out of line: tests are full of checks, and compilers would spend their time on what never runs.
#define MSLITE_OUT_OF_LINE __attribute__((noinline, cold))

[[noreturn]] MSLITE_OUT_OF_LINE inline void Fail(const char *file, int line, const char *what,
                                                 const std::string &more = "") {
  throw Failed(file, line, what + more);
}

template <typename Left, typename Right>
[[noreturn]] MSLITE_OUT_OF_LINE void FailEqual(const Left &left, const Right &right,
                                               const char *words, const char *file, int line) {
  Fail(file, line, words, ": " + Shown(left) + " is not " + Shown(right));
}

// A function, so that whatever the values are part of lives as long as they are looked at.
template <typename Left, typename Right>
void CheckEqual(const Left &left, const Right &right, const char *words, const char *file,
                int line) {
  if (!(left == right)) FailEqual(left, right, words, file, line);
}

MSLITE_OUT_OF_LINE inline void CheckContains(const std::string &text, const std::string &part,
                                             const char *file, int line) {
  if (text.find(part) == std::string::npos) {
    Fail(file, line, "", "'" + part + "' does not stand in '" + text + "'");
  }
}

// What an expression threw, as words for a failed check.
inline std::string Current() {
  try {
    throw;
  } catch (const std::exception &error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

// Threads of a test: the first check that failed in one of them fails the test in Join().
class Threads {
 public:
  ~Threads() {
    for (auto &thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  void Start(std::function<void()> run) {
    threads_.emplace_back([this, run] {
      try {
        run();
      } catch (...) {
        const std::lock_guard<std::mutex> guard(lock_);
        if (failed_ == nullptr) failed_ = std::current_exception();
      }
    });
  }

  void Join() {
    for (auto &thread : threads_) thread.join();
    threads_.clear();
    if (failed_ != nullptr) std::rethrow_exception(failed_);
  }

 private:
  std::vector<std::thread> threads_;
  std::mutex lock_;
  std::exception_ptr failed_;
};
}  // namespace mslite_test

#define TEST(name)                                                          \
  static void name();                                                       \
  static const ::mslite_test::Registered registered_##name(#name, &(name)); \
  static void name()

#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) ::mslite_test::Fail(__FILE__, __LINE__, "CHECK(" #condition ")"); \
  } while (false)

#define CHECK_EQ(left, right) \
  ::mslite_test::CheckEqual((left), (right), "CHECK_EQ(" #left ", " #right ")", __FILE__, __LINE__)

#define CHECK_CONTAINS(text, part) ::mslite_test::CheckContains((text), (part), __FILE__, __LINE__)

#define CHECK_THROWS(expression, Type)                                                          \
  do {                                                                                          \
    bool check_thrown = false;                                                                  \
    try {                                                                                       \
      static_cast<void>(expression);                                                            \
    } catch (const Type &) {                                                                    \
      check_thrown = true;                                                                      \
    } catch (...) {                                                                             \
      ::mslite_test::Fail(__FILE__, __LINE__, #expression " threw no " #Type ": ",              \
                          ::mslite_test::Current());                                            \
    }                                                                                           \
    if (!check_thrown) ::mslite_test::Fail(__FILE__, __LINE__, #expression " threw no " #Type); \
  } while (false)

#define SKIP(why) throw ::mslite_test::Skipped(why)

#endif  // MSLITE_TESTS_CHECK_H_
