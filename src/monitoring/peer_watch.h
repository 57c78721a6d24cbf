#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::monitoring {

// Finds GPUs that are slow among their peers: those of the same kind that work for the same job at
// the same time, all of them busy. Only clocks are compared, which every driver tells. Pure; one
// owner.
class PeerWatch {
 public:
  static constexpr std::size_t kPeers = 3;  // fewer tell nothing
  static constexpr std::uint32_t kBusyPercent = 95;
  // Below this of the median for so long it is slow; above the other for so long it is not.
  static constexpr std::uint32_t kSlowPercent = 80;
  static constexpr std::uint32_t kFastPercent = 90;
  static constexpr base::Duration kSlowFor = base::minutes(3);
  static constexpr base::Duration kFastFor = base::minutes(1);
  // Readings that are older are not compared.
  static constexpr base::Duration kFresh = base::seconds(30);

  struct Sample {
    model::JobId job;  // that holds the GPU alone
    std::string kind;  // equal for GPUs that should be equally fast: model and power limit
    std::uint32_t clock_mhz = 0;
  };
  // The GPU was read; none: it is not busy, has no job, or its clocks were set.
  void take(const std::string& uuid, std::optional<Sample> sample, std::int64_t boot_ns);

  struct Change {
    std::string uuid;
    bool is_slow = false;
    std::uint32_t percent = 0;  // of the median
  };
  // Returns what is new of these GPUs. Call it after take() of all that were read together.
  std::vector<Change> take_changes(const std::vector<std::string>& uuids, std::int64_t boot_ns);

 private:
  struct Seen {
    std::optional<Sample> sample;
    std::int64_t at_ns = 0;
    std::optional<bool> is_slow;  // as it was told; none: not yet
    // What it looks like since then; none: as it was told.
    std::optional<bool> looks_slow;
    std::int64_t since_ns = 0;
  };

  std::optional<std::uint32_t> median_of_peers(const Sample& sample, std::int64_t boot_ns) const;

  std::map<std::string, Seen, std::less<>> gpus_;
};

}  // namespace gpu_platform::monitoring
