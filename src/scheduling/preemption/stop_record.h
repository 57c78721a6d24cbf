#pragma once

#include <cstdint>

namespace gpu_platform::scheduling {

// What a waiting job or an attempt has come to by preemption, as far as the rules ask for it.
struct StopRecord {
  std::uint32_t stops = 0;          // how often the job was stopped for others before
  bool had_others_stopped = false;  // others were stopped for this start of it

  friend bool operator==(const StopRecord&, const StopRecord&) = default;
};

}  // namespace gpu_platform::scheduling
