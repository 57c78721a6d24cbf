#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"

namespace gpu_platform::scheduling {

// A place's number within one cluster. 0: a node that has no name at any level.
using LeafIndex = std::uint32_t;

// The levels at which nodes can be together, nearest first.
inline constexpr std::array kNearestFirst = {
    model::NetworkLevel::kDomain, model::NetworkLevel::kRack, model::NetworkLevel::kZone};

// The places of a cluster's nodes, numbered, and the places that are together at a level. There are
// as many as the site has domains; a place that no node has any more is kept. The numbers follow
// the order in which places became known, so nothing may be decided by them.
class NetworkPlaces {
 public:
  NetworkPlaces();

  LeafIndex number_of(const model::NetworkPlace& place);
  const model::NetworkPlace& place_of(LeafIndex leaf) const { return places_[leaf]; }
  std::size_t size() const { return places_.size(); }

  // Leaves of one group are together at the level. 0: of no group.
  std::uint32_t group_of(LeafIndex leaf, model::NetworkLevel level) const;
  // Groups are numbered below this.
  std::size_t groups_at(model::NetworkLevel level) const;
  std::string_view name_of(std::uint32_t group, model::NetworkLevel level) const;

 private:
  struct Level {
    std::vector<std::string> names;  // by group; of group 0 none
    std::map<std::string, std::uint32_t, std::less<>> groups;
    std::vector<std::uint32_t> group_of;  // by leaf
  };
  Level& at(model::NetworkLevel level) { return levels_[static_cast<std::size_t>(level)]; }
  const Level& at(model::NetworkLevel level) const {
    return levels_[static_cast<std::size_t>(level)];
  }

  std::vector<model::NetworkPlace> places_;  // by leaf
  std::map<model::NetworkPlace, LeafIndex> leaves_;
  std::array<Level, model::kNetworkLevels> levels_;
};

}  // namespace gpu_platform::scheduling
