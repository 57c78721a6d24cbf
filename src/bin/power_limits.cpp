#include "bin/power_limits.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"

namespace gpu_platform::bin {

namespace {

constexpr std::int64_t kMilliwattsPerWatt = 1000;

// That of the node, else of the type, else of the family.
std::optional<std::uint32_t> watts_for(const std::vector<config::PowerLimit>& wanted,
                                       const std::string& node_name, const std::string& type) {
  const auto named = [&](const std::string& name) {
    return std::ranges::find(wanted, name, &config::PowerLimit::of);
  };
  auto found = named(node_name);
  // The reader writes what may be a type as the catalogue does.
  if (found == wanted.end()) {
    found = named(model::canonical_gpu_type(node_name).value_or(node_name));
  }
  if (found == wanted.end()) found = named(type);
  if (found == wanted.end()) {
    found = std::ranges::find_if(wanted, [&](const config::PowerLimit& limit) {
      return model::gpu_type_matches(limit.of, type);
    });
  }
  if (found == wanted.end()) return std::nullopt;
  return found->watts;
}

std::string type_of(const hardware::GpuDescription& gpu) {
  return model::gpu_type_of_model(gpu.model.value_or(""), gpu.memory.value_or(base::Bytes()));
}

// Whether the name of an entry is that of the node, or of the type or family.
bool fits(const std::string& name, const std::string& node_name, const std::string& type) {
  return name == node_name || name == model::canonical_gpu_type(node_name).value_or(node_name) ||
         name == type || model::gpu_type_matches(name, type);
}

// Within what the board allows, in whole watts.
base::Milliwatts allowed_limit(std::uint32_t watts, const hardware::GpuDescription& gpu) {
  std::int64_t limit = watts;
  if (gpu.power_limit_max)
    limit = std::min(limit, gpu.power_limit_max->value() / kMilliwattsPerWatt);
  if (gpu.power_limit_min) {
    const std::int64_t least =
        (gpu.power_limit_min->value() + kMilliwattsPerWatt - 1) / kMilliwattsPerWatt;
    limit = std::max(limit, least);
  }
  return base::Milliwatts(limit * kMilliwattsPerWatt);
}

}  // namespace

std::string to_text(const ChangedLimits& changed) {
  std::string text;
  for (const auto& [uuid, limit] : changed) {
    text += fmt::format("{} {} {}\n", uuid, limit.former.value(), limit.ours.value());
  }
  return text;
}

ChangedLimits parse_changed_limits(std::string_view text) {
  ChangedLimits changed;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string uuid;
    std::int64_t former = 0;
    std::int64_t ours = 0;
    if (!(words >> uuid >> former >> ours) || former <= 0 || ours <= 0) continue;
    changed[uuid] = {base::Milliwatts(former), base::Milliwatts(ours)};
  }
  return changed;
}

LimitChange limit_change(const std::vector<config::PowerLimit>& wanted,
                         const std::string& node_name, const hardware::GpuDescription& gpu,
                         const ChangedLimits& changed) {
  using Kind = LimitChange::Kind;
  if (!gpu.uuid || !gpu.power_limit) return {};
  if (const auto watts = watts_for(wanted, node_name, type_of(gpu))) {
    LimitChange change{Kind::kIsSet, allowed_limit(*watts, gpu), {}};
    if (change.limit.value() != *watts * kMilliwattsPerWatt) change.cut_watts = *watts;
    if (*gpu.power_limit != change.limit) change.kind = Kind::kSet;
    return change;
  }
  const auto known = changed.find(*gpu.uuid);
  if (known == changed.end()) return {};
  if (*gpu.power_limit != known->second.ours) return {Kind::kForget, {}, {}};
  return {Kind::kReturn, known->second.former, {}};
}

std::vector<std::string> unused_limits(const std::vector<config::PowerLimit>& wanted,
                                       const GpusByNode& nodes) {
  std::vector<std::string> unused;
  for (const config::PowerLimit& limit : wanted) {
    const bool is_used = std::ranges::any_of(nodes, [&](const auto& node) {
      return std::ranges::any_of(node.second, [&](const hardware::GpuDescription& gpu) {
        return fits(limit.of, node.first, type_of(gpu));
      });
    });
    if (!is_used) unused.push_back(limit.of);
  }
  return unused;
}

}  // namespace gpu_platform::bin
