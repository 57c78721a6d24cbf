#include "api/identity/handshake_proof.h"
#include "base/check.h"
#include "target.h"

// The messages of a TLS handshake, which the listener hands on for a client with a certificate.

namespace gpu_platform::fuzz {

namespace {

std::string message(char type, const std::string& body) {
  std::string bytes{type, '\0', static_cast<char>(body.size() >> 8),
                    static_cast<char>(body.size())};
  return bytes + body;
}

std::string server_hello(char cipher) {
  return message(2, "\x03\x03" + std::string(32, 'r') + std::string(1, '\0') + '\x13' + cipher);
}

}  // namespace

void run(std::string_view input) {
  static const api::ClientAuthorities none;
  const auto proven = api::check_handshake(
      input, none, [](std::string_view digest) { return digest.size() == 32; },
      base::Instant(1'800'000'000'000'000'000));
  CHECK(!proven && !proven.error().message.empty());
  CHECK(api::certificate_digest(std::string(input)).size() % 32 == 0);
}

std::vector<std::string> seeds() {
  const std::string list(
      "\0\0\0\x08\0\0\x03"
      "abc"
      "\0\0",
      12);
  const std::string rest = message(8, {}) + message(13, {}) + message(11, list) +
                           message(15, "\x04\x03" + std::string("\0\x01s", 3)) + message(20, "f") +
                           message(11, list) + message(15, "\x04\x03" + std::string("\0\x01s", 3));
  return {message(1, "hello") + server_hello('\x01') + rest,
          message(1, "hello") + server_hello('\x02') + rest};
}

}  // namespace gpu_platform::fuzz
