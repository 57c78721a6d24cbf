#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gpu_platform::api {

// The memory that a connection may have beside what counts against its user's budgets.
inline constexpr std::size_t kKeptBytes = 16 * 1024;

// The bytes and the time that one connection may take.
struct SessionLimits {
  std::uint64_t body_bytes = std::uint64_t{1} << 20;
  std::uint32_t header_bytes = 16 * 1024;
  std::size_t header_fields = 100;
  std::chrono::milliseconds request_time{30'000};  // from a request's first byte to its last
  std::chrono::milliseconds write_time{30'000};    // for the client to take what is written
  std::chrono::milliseconds slow_after{1'000};     // a client that takes nothing for so long
  std::chrono::milliseconds idle_time{300'000};    // between two requests
  std::chrono::milliseconds admit_every{5'000};    // a channel's credential is looked at again
};

}  // namespace gpu_platform::api
