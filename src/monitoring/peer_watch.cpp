#include "monitoring/peer_watch.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::monitoring {

void PeerWatch::take(const std::string& uuid, std::optional<Sample> sample, std::int64_t boot_ns) {
  Seen& seen = gpus_[uuid];
  const bool is_same = seen.sample && sample && seen.sample->job == sample->job;
  if (!is_same) seen.looks_slow.reset();
  seen.sample = std::move(sample);
  seen.at_ns = boot_ns;
}

std::optional<std::uint32_t> PeerWatch::median_of_peers(const Sample& sample,
                                                        std::int64_t boot_ns) const {
  std::vector<std::uint32_t> clocks;
  for (const auto& [uuid, seen] : gpus_) {
    if (!seen.sample || boot_ns - seen.at_ns > kFresh.value()) continue;
    if (seen.sample->job != sample.job || seen.sample->kind != sample.kind) continue;
    clocks.push_back(seen.sample->clock_mhz);
  }
  if (clocks.size() < kPeers) return std::nullopt;
  const auto middle = clocks.begin() + static_cast<std::ptrdiff_t>(clocks.size() / 2);
  std::ranges::nth_element(clocks, middle);
  if (*middle == 0) return std::nullopt;
  return *middle;
}

std::vector<PeerWatch::Change> PeerWatch::take_changes(const std::vector<std::string>& uuids,
                                                       std::int64_t boot_ns) {
  std::vector<Change> changes;
  for (const std::string& uuid : uuids) {
    const auto found = gpus_.find(uuid);
    if (found == gpus_.end() || !found->second.sample) continue;
    Seen& seen = found->second;
    const auto median = median_of_peers(*seen.sample, boot_ns);
    if (!median) {
      seen.looks_slow.reset();
      continue;
    }
    const auto percent =
        static_cast<std::uint32_t>(std::uint64_t{seen.sample->clock_mhz} * 100 / *median);
    std::optional<bool> looks = seen.is_slow;
    if (percent < kSlowPercent) looks = true;
    if (percent >= kFastPercent) looks = false;
    if (looks == seen.is_slow) {
      seen.looks_slow.reset();
      continue;
    }
    if (seen.looks_slow != looks) {
      seen.looks_slow = looks;
      seen.since_ns = boot_ns;
    }
    if (boot_ns - seen.since_ns < (*looks ? kSlowFor : kFastFor).value()) continue;
    seen.is_slow = std::exchange(seen.looks_slow, std::nullopt);
    changes.push_back({uuid, *seen.is_slow, percent});
  }
  return changes;
}

}  // namespace gpu_platform::monitoring
