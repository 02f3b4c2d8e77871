// Texts as std::vector<char>, and back.
//
// std::string has two binary forms in libstdc++ (_GLIBCXX_USE_CXX11_ABI 0 and 1), std::vector<char>
// has one. Only vectors cross the border of the library; what stands in the headers turns them into
// strings, compiled with the program. So one library serves programs of either form.
#ifndef MINDSPORE_INCLUDE_API_DUAL_ABI_HELPER_H
#define MINDSPORE_INCLUDE_API_DUAL_ABI_HELPER_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mindspore {
using VecChar = std::vector<char>;

inline std::vector<char> StringToChar(const std::string &s) { return {s.begin(), s.end()}; }

inline std::string CharToString(const std::vector<char> &c) { return {c.begin(), c.end()}; }

inline std::pair<std::vector<char>, int32_t> PairStringToChar(
    const std::pair<std::string, int32_t> &s) {
  return {StringToChar(s.first), s.second};
}

inline std::pair<std::string, int32_t> PairCharToString(
    const std::pair<std::vector<char>, int32_t> &c) {
  return {CharToString(c.first), c.second};
}

inline std::vector<std::vector<char>> VectorStringToChar(const std::vector<std::string> &s) {
  std::vector<std::vector<char>> c;
  c.reserve(s.size());
  for (const auto &text : s) c.push_back(StringToChar(text));
  return c;
}

inline std::vector<std::string> VectorCharToString(const std::vector<std::vector<char>> &c) {
  std::vector<std::string> s;
  s.reserve(c.size());
  for (const auto &text : c) s.push_back(CharToString(text));
  return s;
}

inline std::set<std::vector<char>> SetStringToChar(const std::set<std::string> &s) {
  std::set<std::vector<char>> c;
  for (const auto &text : s) c.insert(StringToChar(text));
  return c;
}

inline std::set<std::string> SetCharToString(const std::set<std::vector<char>> &c) {
  std::set<std::string> s;
  for (const auto &text : c) s.insert(CharToString(text));
  return s;
}

template <class T>
inline std::map<std::vector<char>, T> MapStringToChar(const std::map<std::string, T> &s) {
  std::map<std::vector<char>, T> c;
  for (const auto &entry : s) c.emplace(StringToChar(entry.first), entry.second);
  return c;
}

template <class T>
inline std::map<std::string, T> MapCharToString(const std::map<std::vector<char>, T> &c) {
  std::map<std::string, T> s;
  for (const auto &entry : c) s.emplace(CharToString(entry.first), entry.second);
  return s;
}

inline std::map<std::vector<char>, std::vector<char>> UnorderedMapStringToChar(
    const std::unordered_map<std::string, std::string> &s) {
  std::map<std::vector<char>, std::vector<char>> c;
  for (const auto &entry : s) c.emplace(StringToChar(entry.first), StringToChar(entry.second));
  return c;
}

inline std::unordered_map<std::string, std::string> UnorderedMapCharToString(
    const std::map<std::vector<char>, std::vector<char>> &c) {
  std::unordered_map<std::string, std::string> s;
  for (const auto &entry : c) s.emplace(CharToString(entry.first), CharToString(entry.second));
  return s;
}

inline std::map<std::vector<char>, std::vector<char>> MapStringToVectorChar(
    const std::map<std::string, std::string> &s) {
  std::map<std::vector<char>, std::vector<char>> c;
  for (const auto &entry : s) c.emplace(StringToChar(entry.first), StringToChar(entry.second));
  return c;
}

inline std::map<std::string, std::string> MapVectorCharToString(
    const std::map<std::vector<char>, std::vector<char>> &c) {
  std::map<std::string, std::string> s;
  for (const auto &entry : c) s.emplace(CharToString(entry.first), CharToString(entry.second));
  return s;
}

inline std::vector<std::pair<std::vector<char>, std::vector<int32_t>>> ClassIndexStringToChar(
    const std::vector<std::pair<std::string, std::vector<int32_t>>> &s) {
  std::vector<std::pair<std::vector<char>, std::vector<int32_t>>> c;
  c.reserve(s.size());
  for (const auto &entry : s) c.emplace_back(StringToChar(entry.first), entry.second);
  return c;
}

inline std::vector<std::pair<std::string, std::vector<int32_t>>> ClassIndexCharToString(
    const std::vector<std::pair<std::vector<char>, std::vector<int32_t>>> &c) {
  std::vector<std::pair<std::string, std::vector<int32_t>>> s;
  s.reserve(c.size());
  for (const auto &entry : c) s.emplace_back(CharToString(entry.first), entry.second);
  return s;
}

inline std::vector<std::pair<std::vector<char>, int64_t>> PairStringInt64ToPairCharInt64(
    const std::vector<std::pair<std::string, int64_t>> &s) {
  std::vector<std::pair<std::vector<char>, int64_t>> c;
  c.reserve(s.size());
  for (const auto &entry : s) c.emplace_back(StringToChar(entry.first), entry.second);
  return c;
}

// Adds to `s`; names that it has already stay as they are.
template <class T>
inline void TensorMapCharToString(const std::map<std::vector<char>, T> *c,
                                  std::unordered_map<std::string, T> *s) {
  if (c == nullptr || s == nullptr) return;
  for (const auto &entry : *c) s->emplace(CharToString(entry.first), entry.second);
}

inline std::map<std::string, std::map<std::string, std::string>> MapMapCharToString(
    const std::map<std::vector<char>, std::map<std::vector<char>, std::vector<char>>> &c) {
  std::map<std::string, std::map<std::string, std::string>> s;
  for (const auto &entry : c) {
    s.emplace(CharToString(entry.first), MapVectorCharToString(entry.second));
  }
  return s;
}

inline std::map<std::vector<char>, std::map<std::vector<char>, std::vector<char>>>
MapMapStringToChar(const std::map<std::string, std::map<std::string, std::string>> &s) {
  std::map<std::vector<char>, std::map<std::vector<char>, std::vector<char>>> c;
  for (const auto &entry : s) {
    c.emplace(StringToChar(entry.first), MapStringToVectorChar(entry.second));
  }
  return c;
}
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_API_DUAL_ABI_HELPER_H
