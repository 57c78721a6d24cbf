#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "listener/upstream.h"

// The messages between the daemon and its listener, one per packet of a SOCK_SEQPACKET pair, with
// at most one descriptor beside it. Bytes are base/codec; a message that is longer than allowed,
// unknown or not exact is refused. The daemon believes nothing of what comes.
//
//   daemon -> listener   Settings, a Listen for each address (with its listening socket),
//                        CertificateTexts where there is TLS, and Begin: the listener gives up its
//                        rights and answers. Later CertificateTexts again when they change. The end
//                        of the connection ends the listener.
//   listener -> daemon   Begun once; Open (with one end of a stream socket pair) for each
//                        connection that a client needs; Note for the daemon's log.

namespace gpu_platform::listener {

inline constexpr std::uint32_t kLinkVersion = 2;
inline constexpr std::size_t kMaxToListener = 160 * 1024;
inline constexpr std::size_t kMaxFromListener = 32 * 1024;
inline constexpr std::size_t kMaxPem = 64 * 1024;     // of the certificate's chain, and of the key
inline constexpr std::size_t kMaxSecret = 24 * 1024;  // of a credential
inline constexpr std::size_t kMaxAddress = 64;
inline constexpr std::size_t kMaxNote = 1024;

// What is spoken behind a listening socket.
enum class Door : std::uint8_t { kRest, kGrpc };
inline constexpr std::size_t kDoors = 2;

// ---- daemon -> listener

struct Settings {
  std::uint32_t version = kLinkVersion;
  std::uint32_t threads = 2;
  std::uint64_t connections = 16'384;
  std::uint64_t connections_per_address = 1'024;
  std::uint64_t body_bytes = 64 << 20;   // of all requests under way
  bool asks_for_certificates = false;    // clients, in the handshake
  std::vector<std::string> host_names;   // that requests may name; empty: any
  std::vector<std::string> web_origins;  // of web pages that may call; empty: none
  friend bool operator==(const Settings&, const Settings&) = default;
};
struct Listen {
  Door door = Door::kRest;
  bool has_tls = false;
  std::string address;  // "127.0.0.1:8443", for notes
  friend bool operator==(const Listen&, const Listen&) = default;
};
struct CertificateTexts {
  std::string chain;  // PEM; the server's own first
  std::string key;    // PEM
  friend bool operator==(const CertificateTexts&, const CertificateTexts&) = default;
};
struct Begin {
  friend bool operator==(const Begin&, const Begin&) = default;
};
using ToListener = std::variant<Settings, Listen, CertificateTexts, Begin>;

std::string encode(const ToListener& message);
base::Result<ToListener> decode_to_listener(std::string_view bytes);

// ---- listener -> daemon

// One of the walls around the listener.
struct Guard {
  std::string name;
  bool is_held = false;
  std::string why;  // not
  friend bool operator==(const Guard&, const Guard&) = default;
};
struct Begun {
  std::uint32_t version = kLinkVersion;
  std::vector<Guard> guards;
  friend bool operator==(const Begun&, const Begun&) = default;
};
struct Open {
  Credential credential;
  friend bool operator==(const Open&, const Open&) = default;
};
struct Note {
  bool is_warning = false;
  std::string text;  // one printable line
  friend bool operator==(const Note&, const Note&) = default;
};
using FromListener = std::variant<Begun, Open, Note>;

std::string encode(const FromListener& message);
base::Result<FromListener> decode_from_listener(std::string_view bytes);

}  // namespace gpu_platform::listener
