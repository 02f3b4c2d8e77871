#include "src/group.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace mslite {
namespace {
struct Registry {
  std::mutex lock;
  std::map<std::string, GroupKey> files;
  std::map<std::pair<const void *, size_t>, GroupKey> contents;
};

// Never destroyed: threads may build models while the process exits.
Registry &TheRegistry() {
  static Registry *registry = new Registry;
  return *registry;
}

// One name for all ways to a file.
std::string RealPath(const std::string &path) {
  std::unique_ptr<char, decltype(&std::free)> found(realpath(path.c_str(), nullptr), &std::free);
  return found == nullptr ? path : std::string(found.get());
}

template <class Map, class Key>
GroupKey Found(const Map &map, const Key &key) {
  auto found = map.find(key);
  return found == map.end() ? GroupKey() : found->second;
}
}  // namespace

void AddFile(const std::string &path, const GroupKey &group) {
  std::lock_guard<std::mutex> guard(TheRegistry().lock);
  TheRegistry().files[RealPath(path)] = group;
}

void AddContent(const void *data, size_t size, const GroupKey &group) {
  std::lock_guard<std::mutex> guard(TheRegistry().lock);
  TheRegistry().contents[{data, size}] = group;
}

GroupKey GroupOf(const BuildRequest &request) {
  std::lock_guard<std::mutex> guard(TheRegistry().lock);
  if (request.content != nullptr) {
    return Found(TheRegistry().contents, std::make_pair(request.content, request.content_size));
  }
  return TheRegistry().files.empty() ? GroupKey()
                                     : Found(TheRegistry().files, RealPath(request.path));
}

void AddGroup(const GroupKey &group, BuildRequest *request) {
  if (!group.name.empty()) {
    request->settings.emplace_back("group.name", group.name);
    request->settings.emplace_back("group.share", group.share);
  }
}
}  // namespace mslite
