#include "node/driver/reset_group.h"

#include <algorithm>
#include <set>

namespace gpu_platform::node {

namespace {

constexpr std::uint32_t kHopper = 9;  // its compute capability

// One whose generation is not known counts as an old one: more GPUs are kept free then.
bool is_reset_alone(const std::vector<hardware::GpuDescription>& gpus, std::uint32_t index) {
  const auto gpu = std::ranges::find(gpus, index, &hardware::GpuDescription::index);
  return gpu != gpus.end() && gpu->compute_capability && gpu->compute_capability->major >= kHopper;
}

}  // namespace

std::vector<std::uint32_t> reset_group(const std::vector<hardware::GpuDescription>& gpus,
                                       const std::vector<hardware::GpuLink>& links,
                                       std::uint32_t index) {
  std::set<std::uint32_t> group{index};
  std::vector<std::uint32_t> added{index};
  while (!added.empty() && !is_reset_alone(gpus, index)) {
    const std::uint32_t from = added.back();
    added.pop_back();
    for (const hardware::GpuLink& link : links) {
      if (link.kind != hardware::LinkKind::kNvLink || (link.a != from && link.b != from)) continue;
      const std::uint32_t other = link.a == from ? link.b : link.a;
      if (group.insert(other).second) added.push_back(other);
    }
  }
  return {group.begin(), group.end()};
}

}  // namespace gpu_platform::node
