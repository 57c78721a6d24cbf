#include "monitoring/xid_sources.h"

#include <algorithm>

namespace gpu_platform::monitoring {

std::uint32_t XidSources::take(XidTeller teller, const std::string& gpu, std::uint64_t xid,
                               std::uint32_t count, std::int64_t boot_ns) {
  forget_ended(boot_ns);
  Burst& burst = bursts_[{gpu, xid}];
  if (boot_ns - burst.latest_ns >= kQuiet.value()) burst.told = {};
  burst.latest_ns = boot_ns;
  const std::uint64_t known = std::ranges::max(burst.told);
  std::uint64_t& told = burst.told[static_cast<std::size_t>(teller)];
  told += count;
  return told > known ? static_cast<std::uint32_t>(told - known) : 0;
}

void XidSources::forget_ended(std::int64_t boot_ns) {
  if (boot_ns < next_look_ns_) return;
  next_look_ns_ = boot_ns + kQuiet.value();
  std::erase_if(bursts_, [&](const auto& entry) {
    return boot_ns - entry.second.latest_ns >= kQuiet.value();
  });
}

}  // namespace gpu_platform::monitoring
