#include "scheduling/gang/place_gang.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "scheduling/gang/candidates.h"
#include "scheduling/placement/choose_gpus.h"

namespace gpu_platform::scheduling {

namespace {

using model::NetworkLevel;
using Leaves = std::vector<LeafIndex>;

// Leaves that are together, and the number of their nodes that could give a part.
struct Site {
  NetworkLevel level = NetworkLevel::kAnywhere;
  std::string_view name;
  std::size_t nodes = 0;
  Leaves leaves;
};

// Returns the next nearer level; nothing below a domain.
std::optional<NetworkLevel> nearer(NetworkLevel level) {
  if (level == NetworkLevel::kDomain) return std::nullopt;
  return static_cast<NetworkLevel>(static_cast<int>(level) + 1);
}

// The places where the parts of one gang, all on GPUs of one type, could lie.
class Choice {
 public:
  Choice(const Cluster& cluster, std::vector<Candidate> candidates)
      : places_(cluster.places()),
        candidates_(std::move(candidates)),
        at_leaf_(cluster.places().size()) {
    for (const Candidate& candidate : candidates_) {
      candidate.for_each_leaf([this](LeafIndex leaf, std::size_t nodes) {
        if (at_leaf_[leaf] == 0) leaves_.push_back(leaf);
        at_leaf_[leaf] += nodes;
        total_ += nodes;
      });
    }
  }

  std::optional<Site> best_site(std::size_t parts, NetworkLevel within) const;
  model::Allocation take(const Site& site, std::size_t parts) const;

 private:
  std::vector<Site> sites_at(NetworkLevel level, const Leaves& leaves) const;
  void take_from(const Site& site, std::size_t parts, model::Allocation& out) const;
  void take_best(Leaves leaves, std::size_t parts, model::Allocation& out) const;

  const NetworkPlaces& places_;
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> at_leaf_;
  Leaves leaves_;  // with a candidate
  std::size_t total_ = 0;
};

// Fewest nodes first, then by name. Leaves without a name at the level form one site without a
// name.
std::vector<Site> Choice::sites_at(NetworkLevel level, const Leaves& leaves) const {
  std::vector<Site> by_group(places_.groups_at(level));
  for (const LeafIndex leaf : leaves) {
    Site& site = by_group[places_.group_of(leaf, level)];
    site.nodes += at_leaf_[leaf];
    site.leaves.push_back(leaf);
  }
  std::vector<Site> sites;
  for (std::size_t group = 0; group < by_group.size(); ++group) {
    if (by_group[group].nodes == 0) continue;
    by_group[group].level = level;
    by_group[group].name = places_.name_of(static_cast<std::uint32_t>(group), level);
    sites.push_back(std::move(by_group[group]));
  }
  std::ranges::sort(sites, {}, [](const Site& site) { return std::tuple(site.nodes, site.name); });
  return sites;
}

std::optional<Site> Choice::best_site(std::size_t parts, NetworkLevel within) const {
  if (total_ < parts) return std::nullopt;
  const Site all{NetworkLevel::kAnywhere, {}, total_, leaves_};
  if (parts == 1) return all;  // together with itself at every level
  for (const NetworkLevel level : kNearestFirst) {
    if (level < within) return std::nullopt;
    for (Site& site : sites_at(level, leaves_)) {
      if (site.nodes >= parts && !site.name.empty()) return std::move(site);
    }
  }
  if (within != NetworkLevel::kAnywhere) return std::nullopt;
  return all;
}

model::Allocation Choice::take(const Site& site, std::size_t parts) const {
  model::Allocation allocation;
  allocation.nodes.reserve(parts);
  take_from(site, parts, allocation);
  CHECK(allocation.nodes.size() == parts);
  std::ranges::sort(allocation.nodes, {}, &model::NodeAllocation::node);
  return allocation;
}

// Takes the largest places below as a whole until a single one holds the rest.
void Choice::take_from(const Site& site, std::size_t parts, model::Allocation& out) const {
  const std::optional<NetworkLevel> level = nearer(site.level);
  if (!level || parts == 1 || site.leaves.size() == 1) {
    take_best(site.leaves, parts, out);
    return;
  }
  std::vector<Site> sites = sites_at(*level, site.leaves);
  while (parts > 0) {
    const auto holder =
        std::ranges::find_if(sites, [&](const Site& each) { return each.nodes >= parts; });
    const auto chosen = holder == sites.end() ? std::prev(sites.end()) : holder;
    const std::size_t share = std::min(parts, chosen->nodes);
    take_from(*chosen, share, out);
    sites.erase(chosen);
    parts -= share;
  }
}

// Compares the places and nodes themselves: their numbers depend on the order in which they came.
void Choice::take_best(Leaves leaves, std::size_t parts, model::Allocation& out) const {
  const bool is_everywhere = leaves.size() == leaves_.size();
  if (!is_everywhere) {
    std::ranges::sort(leaves, [this](LeafIndex a, LeafIndex b) {
      return places_.place_of(a) < places_.place_of(b);
    });
  }
  for (const Candidate& candidate : candidates_) {
    const auto take_node = [&](model::NodeId node) {
      if (parts == 0) return false;
      --parts;
      out.nodes.push_back(
          part_of_allocation(node, *candidate.shape_class, candidate.gpus, candidate.demand));
      return true;
    };
    if (is_everywhere) {
      candidate.for_each_node(take_node);
    } else {
      for (const LeafIndex leaf : leaves) candidate.for_each_node_in(leaf, take_node);
    }
    if (parts == 0) return;
  }
}

// Returns the types that the nodes have and the request accepts, by name.
std::vector<TypeIndex> types_in(const Cluster& cluster, const GpuFilter& filter) {
  std::vector<TypeIndex> types;
  for (const auto& [shape, shape_class] : cluster.shapes()) {
    if (shape_class.nodes_up == 0) continue;
    for (const GpuPool& pool : shape_class.pools) {
      if (filter.accepts(pool.type)) types.push_back(pool.type);
    }
  }
  std::ranges::sort(types, {}, [&](TypeIndex type) { return cluster.types().name_of(type); });
  const auto repeats = std::ranges::unique(types);
  types.erase(repeats.begin(), repeats.end());
  return types;
}

bool is_better(const Site& a, const Site& b) {
  return a.level != b.level ? a.level > b.level : a.nodes < b.nodes;
}

}  // namespace

std::optional<model::Allocation> place_gang(const Cluster& cluster,
                                            const model::ResourceRequest& part, std::uint32_t parts,
                                            const GpuFilter& filter) {
  std::vector<GpuFilter> filters;
  if (part.gpus == 0 || parts == 1) {
    filters.push_back(filter);
  } else {
    for (const TypeIndex type : types_in(cluster, filter)) filters.push_back(filter.only(type));
  }
  std::optional<Choice> best;
  std::optional<Site> best_site;
  // One part is always of one engine: there the best node decides, with either engine.
  std::vector<model::EngineSet> engines = {part.engines};
  if (parts > 1) {
    engines.clear();
    for (const auto kind : model::kinds_in(part.engines)) {
      engines.push_back(model::EngineSet::of(kind));
    }
  }
  model::ResourceRequest of_engine = part;
  for (const model::EngineSet engine : engines) {
    of_engine.engines = engine;
    for (const GpuFilter& each : filters) {
      Choice choice(cluster, candidates_for(cluster, of_engine, each));
      std::optional<Site> site = choice.best_site(parts, part.within);
      if (!site || (best_site && !is_better(*site, *best_site))) continue;
      best.emplace(std::move(choice));
      best_site = std::move(site);
    }
  }
  if (!best) return std::nullopt;
  return best->take(*best_site, parts);
}

}  // namespace gpu_platform::scheduling
