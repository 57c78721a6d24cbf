#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "base/units.h"

// How moving bytes to a daemon and back can end.

namespace gpu_platform::http {

struct TransportError {
  enum class Kind {
    kNoDaemon,     // nothing answers there: the request was not sent
    kUntrusted,    // certificates do not fit: the request was not sent, or not read
    kBroken,       // the connection ended early: whether the request was carried out is not known
    kTimedOut,     // no answer in time; the result is not known, either
    kInterrupted,  // the interrupt descriptor became readable; the call may be repeated
    kMalformed,    // what came is not HTTP, or not TLS
  };
  Kind kind = Kind::kNoDaemon;
  std::string message;
  // With kNoDaemon: the machine or the socket exists, but nothing accepts at it.
  bool is_refused = false;
};

template <class T = void>
using Transported = std::expected<T, TransportError>;

// How long to wait for bytes, and what may end the wait early.
struct Waiting {
  std::optional<base::Duration> at_most;  // between two arrivals; absent: for ever
  int interrupt_fd = -1;                  // readable = stop waiting; never read from here
};

// What must be possible before a step is tried again.
enum class Wants : std::uint8_t { kNothing, kReadable, kWritable };

// What a step came to: bytes that were moved, or what it waits for. Neither of both, when reading:
// the other side has ended the stream in good order.
struct Step {
  std::size_t bytes = 0;
  Wants wants = Wants::kNothing;
};

}  // namespace gpu_platform::http
