// Which group a model is in: the worker lets models of one group share memory.
#ifndef MSLITE_SRC_GROUP_H_
#define MSLITE_SRC_GROUP_H_

#include <cstddef>
#include <string>

#include "src/wire/session.h"

namespace mslite {
// The settings group.name and group.share of docs/wire.md; without a name: no group.
struct GroupKey {
  std::string name;
  std::string share;
};

// Models that are built from this file, or from these bytes, are in the group from now on.
void AddFile(const std::string &path, const GroupKey &group);
void AddContent(const void *data, size_t size, const GroupKey &group);

// The group that what a request builds was last added to.
GroupKey GroupOf(const BuildRequest &request);

void AddGroup(const GroupKey &group, BuildRequest *request);
}  // namespace mslite
#endif  // MSLITE_SRC_GROUP_H_
