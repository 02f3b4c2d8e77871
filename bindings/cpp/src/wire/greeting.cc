#include "src/wire/greeting.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/wire/errors.h"
#include "src/wire/fields.h"
#include "src/wire/frame.h"

namespace mslite {
namespace {
constexpr char kGreetingMagic[] = "MSLITE\r\n";
constexpr size_t kMagicBytes = 8;
constexpr uint16_t kProtocolVersion = 2;
constexpr size_t kMaxWelcomeText = 4096;

void CheckPeer(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    throw Lost{"cannot be asked for its user", errno};
  }
  if (peer.uid != geteuid()) {
    throw WireFailure("the other side of the connection is user " + std::to_string(peer.uid) +
                      ", wanted " + std::to_string(geteuid()) +
                      "; a worker serves only the user that it runs as");
  }
}

void ReceiveExactly(int socket, uint8_t *to, size_t size, int64_t due_ns) {
  while (size > 0) {
    const int ready = PolledUntil(socket, POLLIN, due_ns);
    if (ready == 0) throw Lost{"did not answer the greeting in time", 0};
    const ssize_t got = ready < 0 ? -1 : recv(socket, to, size, MSG_DONTWAIT);
    if (got > 0) {
      to += got;
      size -= static_cast<size_t>(got);
    } else if (got == 0) {
      throw Lost{"closed the connection in the greeting", 0};
    } else if (errno != EINTR && errno != EAGAIN) {
      throw Lost{"broke the connection in the greeting", errno};
    }
  }
}
}  // namespace

std::vector<uint8_t> EncodedHello(const Token &token) {
  Writer out;
  out.Bytes(kGreetingMagic, kMagicBytes);
  out.U16(kProtocolVersion);  // the lowest one spoken, and the highest
  out.U16(kProtocolVersion);
  out.U32(0);
  out.Bytes(token.data(), token.size());
  return std::vector<uint8_t>(out.data(), out.data() + out.size());
}

size_t WelcomeTextSize(const uint8_t *head) {
  if (std::memcmp(head, kGreetingMagic, kMagicBytes) != 0) {
    throw WireFailure("what answered the greeting is no worker of mslite");
  }
  const uint32_t size = Reader(head + kWelcomeBytes - 4, 4).U32("the greeting");
  if (size > kMaxWelcomeText) {
    throw WireFailure("the answer to the greeting announces a text of " + std::to_string(size) +
                      " bytes, at most " + std::to_string(kMaxWelcomeText) + " are allowed");
  }
  return size;
}

Welcome DecodedWelcome(const uint8_t *head, const std::string &text) {
  Reader fields(head, kWelcomeBytes);
  const uint8_t *const magic = fields.Take(kMagicBytes, "the greeting");
  const bool is_magic = std::memcmp(magic, kGreetingMagic, kMagicBytes) == 0;
  const uint16_t version = fields.U16("the version");
  const uint16_t reserved = fields.U16("a greeting");
  const int32_t code = fields.I32("the code");
  if (!is_magic || reserved != 0) {
    throw WireFailure("what answered the greeting is no worker of mslite");
  }
  if (version == 0) {
    const std::string words = "the worker refused the connection: " + text;
    const bool is_full = code == static_cast<int32_t>(mindspore::kLiteMemoryFailed);
    throw is_full ? ResourceFailure(words) : WireFailure(words);
  }
  if (version != kProtocolVersion) {
    throw WireFailure("the worker chose version " + std::to_string(version) +
                      " of the protocol, this library speaks " + std::to_string(kProtocolVersion) +
                      "; install the same release of mslite on both sides");
  }
  Welcome welcome;
  std::copy_n(fields.Take(welcome.token.size(), "the token"), welcome.token.size(),
              welcome.token.begin());
  welcome.pid = fields.U32("the process id");
  welcome.address = text;
  return welcome;
}

Descriptor Connected(const std::string &address) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const bool is_abstract = !address.empty() && address[0] == '@';
  // a path ends with a zero byte, an abstract name with the length of the address
  const size_t most = sizeof(name.sun_path) - (is_abstract ? 0 : 1);
  if (address.empty() || address.size() > most) {
    throw WireFailure("a worker cannot listen on '" + address + "': wanted a path of 1 to " +
                      std::to_string(most) + " bytes");
  }
  std::memcpy(name.sun_path, address.data(), address.size());
  if (is_abstract) name.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() +
                                           (is_abstract ? 0 : 1));
  Descriptor made = Descriptor::Socket();
  // only connect() heeds it, which waits where too many others do
  const timeval limit = {kGreetingMs / 1000, 0};
  setsockopt(made.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const int64_t due_ns = NowNs() + int64_t{kGreetingMs} * 1000000;
  while (connect(made.number(), reinterpret_cast<sockaddr *>(&name), size) != 0) {
    // begun anew by every signal of the program
    if (errno != EINTR || NowNs() >= due_ns) throw Lost{"does not take the connection", errno};
  }
  return made;
}

Welcome Greet(int socket, const Token &token, int limit_ms) {
  CheckPeer(socket);
  const int64_t due_ns = NowNs() + int64_t{limit_ms} * 1000000;
  const std::vector<uint8_t> hello = EncodedHello(token);
  try {
    SendAll(socket, hello.data(), hello.size());
  } catch (const Lost &) {
    // a worker that is full refuses before it reads, and its reason is there to be read
  }
  uint8_t head[kWelcomeBytes];
  ReceiveExactly(socket, head, sizeof(head), due_ns);
  std::string text(WelcomeTextSize(head), '\0');
  ReceiveExactly(socket, reinterpret_cast<uint8_t *>(&text[0]), text.size(), due_ns);
  return DecodedWelcome(head, text);
}
}  // namespace mslite
