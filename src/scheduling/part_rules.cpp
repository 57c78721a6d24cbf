#include "scheduling/part_rules.h"

#include <algorithm>

#include "model/gpu_catalogue.h"
#include "sharing/rungs.h"

namespace gpu_platform::scheduling {

namespace {

bool names_node(const model::Sharing& rules, const std::string& name) {
  return rules.nodes.empty() || std::ranges::find(rules.nodes, name) != rules.nodes.end();
}

bool names_type(const model::Sharing& rules, const std::string& type) {
  return rules.gpu_types.empty() ||
         std::ranges::any_of(rules.gpu_types, [&](const std::string& wanted) {
           return model::gpu_type_matches(wanted, type);
         });
}

constexpr std::uint32_t kVolta = 7;  // its compute capability; MPS servers before it have no limits

// Returns the wall of such a part where it is strong enough for the site.
std::optional<model::Wall> accepted_wall(const model::Sharing& rules, const model::Node& node,
                                         model::ShareMode mode, const model::Tenant& tenant) {
  const auto wall = wall_of(node, mode, tenant);
  if (!wall || std::min(wall->memory, wall->compute) < rules.weakest_rung) return std::nullopt;
  return wall;
}

constexpr std::uint32_t kAnyUser = 1;  // that is not root

}  // namespace

GpuMask gpus_with_mps_limits(const model::Node& node) {
  GpuMask gpus = 0;
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    if (node.gpus[i].info.compute_major.value_or(kVolta) >= kVolta) gpus |= GpuMask{1} << i;
  }
  return gpus;
}

std::optional<model::Wall> wall_of(const model::Node& node, model::ShareMode mode,
                                   const model::Tenant& tenant) {
  if (node.engine != model::EngineKind::kProcess) return std::nullopt;
  const auto& served = node.share_modes;
  if (std::ranges::find(served, mode) == served.end()) return std::nullopt;
  if (mode == model::ShareMode::kNone) return std::nullopt;
  // A node that says that its jobs can take turns freezes them.
  const sharing::NodeMeans means{.watches_memory = node.watches_gpu_memory, .freezes = true};
  return sharing::promised_wall(mode, means, {.is_of_root = model::is_root(tenant)}).wall;
}

PartTerms part_terms_of(const model::Sharing& rules, const model::Node& node) {
  PartTerms terms;
  if (!rules.is_on || node.share_modes.empty() || !names_node(rules, node.name)) return terms;
  bool has_mode = false;
  for (const model::ShareMode mode : rules.modes) {
    const auto at = static_cast<std::size_t>(mode);
    terms.walls[at] = accepted_wall(rules, node, mode, {kAnyUser});
    terms.walls_of_root[at] = accepted_wall(rules, node, mode, {});
    has_mode = has_mode || terms.walls[at] || terms.walls_of_root[at];
  }
  if (!has_mode) return terms;
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    if (names_type(rules, node.gpus[i].info.type)) terms.gpus |= GpuMask{1} << i;
  }
  terms.mps_gpus = terms.gpus & gpus_with_mps_limits(node);
  return terms;
}

std::vector<model::ShareMode> modes_for(const model::Sharing& rules,
                                        const model::ResourceRequest& request) {
  std::vector<model::ShareMode> modes;
  if (!rules.is_on) return modes;
  for (const model::ShareMode mode : rules.modes) {
    const bool is_wanted = request.share_mode.value_or(mode) == mode;
    if (is_wanted && mode != model::ShareMode::kNone) modes.push_back(mode);
  }
  return modes;
}

base::Bytes memory_of_part(const model::ResourceRequest& request, base::Bytes of_gpu) {
  if (request.gpu_memory > base::Bytes()) return request.gpu_memory;
  // The memory of a GPU times 7000 is far from the end of the number range.
  return base::Bytes((of_gpu * request.share_per_gpu.value()).value() / base::kWholeGpu.value());
}

}  // namespace gpu_platform::scheduling
