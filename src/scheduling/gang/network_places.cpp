#include "scheduling/gang/network_places.h"

namespace gpu_platform::scheduling {

NetworkPlaces::NetworkPlaces() {
  for (const model::NetworkLevel level : kNearestFirst) at(level).names.emplace_back();
  number_of({});
}

LeafIndex NetworkPlaces::number_of(const model::NetworkPlace& place) {
  const auto [known, is_new] = leaves_.try_emplace(place, static_cast<LeafIndex>(places_.size()));
  if (!is_new) return known->second;
  places_.push_back(place);
  for (const model::NetworkLevel each : kNearestFirst) {
    Level& level = at(each);
    const std::string_view name = place.name_at(each);
    std::uint32_t group = 0;
    if (!name.empty()) {
      const auto next = static_cast<std::uint32_t>(level.names.size());
      group = level.groups.try_emplace(std::string(name), next).first->second;
      if (group == next) level.names.emplace_back(name);
    }
    level.group_of.push_back(group);
  }
  return known->second;
}

std::uint32_t NetworkPlaces::group_of(LeafIndex leaf, model::NetworkLevel level) const {
  return at(level).group_of[leaf];
}

std::size_t NetworkPlaces::groups_at(model::NetworkLevel level) const {
  return at(level).names.size();
}

std::string_view NetworkPlaces::name_of(std::uint32_t group, model::NetworkLevel level) const {
  return at(level).names[group];
}

}  // namespace gpu_platform::scheduling
