#include "monitoring/hang_watch.h"

#include <algorithm>

namespace gpu_platform::monitoring {

void HangWatch::take_reading(const std::string& uuid,
                             std::optional<std::uint32_t> utilization_percent, base::Instant at) {
  const auto [entry, is_new] = gpus_.try_emplace(uuid, GpuSeen{at, at});
  GpuSeen& gpu = entry->second;
  const bool is_idle = utilization_percent == 0U;
  if (is_new || !is_idle || at - gpu.read_at > kLongestGap) gpu.quiet_since = at;
  gpu.read_at = at;
}

std::optional<base::Instant> HangWatch::quiet_since(const std::vector<std::string>& gpus,
                                                    base::Instant now) const {
  base::Instant since;
  for (const std::string& uuid : gpus) {
    const auto seen = gpus_.find(uuid);
    if (seen == gpus_.end() || now - seen->second.read_at > kLongestGap) return std::nullopt;
    since = std::max(since, seen->second.quiet_since);
  }
  return gpus.empty() ? std::nullopt : std::optional(since);
}

std::vector<model::AttemptId> HangWatch::look(const std::vector<Watched>& watched,
                                              const OutputMark& output_of, base::Instant now) {
  std::erase_if(attempts_,
                [&](const auto& entry) { return now - entry.second.looked_at > kLongestGap; });
  std::vector<model::AttemptId> hung;
  for (const Watched& each : watched) {
    const std::optional<std::uint64_t> output = output_of(each.attempt);
    const auto [entry, is_new] = attempts_.try_emplace(each.attempt, AttemptSeen{now, now, output});
    AttemptSeen& seen = entry->second;
    seen.looked_at = now;
    if (is_new || !output || seen.output != output) seen.quiet_since = now;
    seen.output = output;
    const auto gpus_since = quiet_since(each.gpus, now);
    if (!gpus_since) continue;
    const base::Instant since = std::max(*gpus_since, seen.quiet_since);
    if (now - since >= each.timeout) hung.push_back(each.attempt);
  }
  return hung;
}

}  // namespace gpu_platform::monitoring
