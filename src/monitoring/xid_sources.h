#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/units.h"

namespace gpu_platform::monitoring {

// Who tells of an XID.
enum class XidTeller : std::uint8_t {
  kDriver,     // an event of NVML
  kKernelLog,  // its line in the kernel's log
  kOffTheBus,  // the other line that comes with an XID 79
};

// Counts each XID once, though the driver's events and the kernel's log both tell of it, moments
// apart and in any order. Within a burst what counts is the teller that tells of the most. Pure;
// one owner.
class XidSources {
 public:
  // A burst of one XID on one GPU ends when no teller has told of it for so long.
  static constexpr base::Duration kQuiet = base::seconds(5);

  // A teller has told `count` of them. Returns how many of these are news. `gpu` is a name of the
  // GPU that is the same for all tellers, `boot_ns` is on the boot clock.
  std::uint32_t take(XidTeller teller, const std::string& gpu, std::uint64_t xid,
                     std::uint32_t count, std::int64_t boot_ns);

 private:
  struct Burst {
    std::array<std::uint64_t, 3> told{};  // by teller
    std::int64_t latest_ns = 0;
  };
  void forget_ended(std::int64_t boot_ns);

  std::map<std::tuple<std::string, std::uint64_t>, Burst> bursts_;
  std::int64_t next_look_ns_ = 0;
};

}  // namespace gpu_platform::monitoring
