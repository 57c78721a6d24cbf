#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"

// Since when a GPU, or the part of it that no attempt holds, has been as it is. Each change ends an
// interval, which becomes a line of the ledger (model/ledger.h).

namespace gpu_platform::model {

// What becomes of the time of a GPU that no attempt holds.
enum class RestKind : std::uint8_t {
  kIdle,      // it could have been given to a job
  kReserved,  // kept for a reservation; in lines alone, for a reservation begins without an event
  kHeld,      // kept for a job that others were stopped for
  kOthers,    // used by processes or pods that are no jobs
  kDraining,
  kDegraded,
  kResetting,
  kOffline,  // out of service, or its node does not report
};
inline constexpr std::size_t kRestKinds = 8;
std::string_view to_string(RestKind kind);  // "reserved"

struct GpuClock {
  base::Instant since;  // unset: the GPU has not been seen yet
  RestKind kind = RestKind::kIdle;
  base::GpuShare rest = base::kWholeGpu;  // of the GPU that no attempt holds; zero: all is held

  friend bool operator==(const GpuClock&, const GpuClock&) = default;
};

}  // namespace gpu_platform::model
