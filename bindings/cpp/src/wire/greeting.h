// The first bytes on a connection: who speaks which version, for which session.
#ifndef MSLITE_SRC_WIRE_GREETING_H_
#define MSLITE_SRC_WIRE_GREETING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/descriptor.h"

namespace mslite {
using Token = std::array<uint8_t, 16>;  // of a session; all zeros open a new one

constexpr size_t kWelcomeBytes = 40;  // before its text
constexpr int kGreetingMs = 10000;    // for a worker that runs to answer

struct Welcome {
  Token token = {};
  uint32_t pid = 0;
  std::string address;  // where further lanes connect to: a path, or "@" and an abstract name
};

std::vector<uint8_t> EncodedHello(const Token &token);
// How long the text is that follows the first 40 bytes; throws.
size_t WelcomeTextSize(const uint8_t *head);
// Throws a Failure when it is a refusal, or no worker's.
Welcome DecodedWelcome(const uint8_t *head, const std::string &text);

// Throws Lost when nobody answers there, and a Failure when no socket can be had.
Descriptor Connected(const std::string &address);
// Says hello, and hears whether we are welcome; throws Lost, or a Failure.
Welcome Greet(int socket, const Token &token, int limit_ms);
}  // namespace mslite
#endif  // MSLITE_SRC_WIRE_GREETING_H_
