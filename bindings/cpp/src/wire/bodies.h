// The body of each message; docs/wire.md describes it byte by byte.
#ifndef MSLITE_SRC_WIRE_BODIES_H_
#define MSLITE_SRC_WIRE_BODIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/block.h"
#include "src/wire/fields.h"
#include "src/wire/session.h"
#include "src/wire/tensors.h"

namespace mslite {
// `content` are the model's bytes, and its weights', if they are not in files. The library reads a
// configuration file itself: `config_path` is for who does not.
void WriteBuild(Writer *out, const BuildRequest &request, const std::vector<WireTensor> &content,
                const std::string &config_path = "");
// A room whose block is 0 is none.
void WritePredict(Writer *out, uint32_t model, const CallOptions &options, const Place &room,
                  const std::vector<WireTensor> &inputs);
void WriteResize(Writer *out, uint32_t model, const std::vector<std::vector<int64_t>> &shapes);
void WriteUpdate(Writer *out, uint32_t model, const std::vector<std::vector<WireTensor>> &groups);
void WriteFree(Writer *out, const std::vector<uint32_t> &blocks);

Description ReadDescription(Reader *body);
Built ReadBuilt(Reader *body);
std::vector<Made> ReadMade(Reader *body);
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_BODIES_H_
