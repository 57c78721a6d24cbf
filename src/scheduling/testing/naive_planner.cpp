#include "scheduling/testing/naive_planner.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "model/gpu_catalogue.h"
#include "model/job_spec.h"
#include "scheduling/part_rules.h"
#include "scheduling/placement/demand.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {

namespace {

using Indices = std::vector<std::uint32_t>;

// Returns whether such a request could have the GPU now, as far as that alone is concerned.
bool is_free_for(const model::ResourceRequest& request, const model::Gpu& gpu) {
  if (!model::may_use_gpu(request, gpu.info.uuid)) return false;
  const bool is_degraded = request.accept_degraded && model::is_only_degraded(gpu);
  return is_degraded ? gpu.holders.empty() : model::is_free(gpu);
}

// Healthy GPUs alone at first, then degraded ones as well, where the request accepts them.
std::vector<model::ResourceRequest> by_health(const model::ResourceRequest& request) {
  model::ResourceRequest healthy = request;
  healthy.accept_degraded = false;
  if (!request.accept_degraded) return {healthy};
  return {healthy, request};
}

// Free GPUs of one type with enough memory, for each acceptable type of the node.
std::vector<Indices> free_by_type(const model::Node& node, const model::ResourceRequest& request) {
  std::map<std::string, Indices> by_type;
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
    const model::Gpu& gpu = node.gpus[i];
    const bool accepted = request.gpu_types.empty() ||
                          std::ranges::any_of(request.gpu_types, [&](const std::string& wanted) {
                            return model::gpu_type_matches(wanted, gpu.info.type);
                          });
    if (accepted && gpu.info.memory >= request.gpu_memory && is_free_for(request, gpu)) {
      by_type[gpu.info.type].push_back(i);
    }
  }
  std::vector<Indices> result;
  for (auto& [type, free] : by_type) {
    if (free.size() >= request.gpus) result.push_back(std::move(free));
  }
  return result;
}

// A set of GPUs with the numbers of its order, the best first; compared from the front.
struct Option {
  std::int64_t rank = 0;
  std::vector<std::int64_t> closeness;
  std::vector<std::int64_t> leftover;
  Indices gpus;

  friend auto operator<=>(const Option&, const Option&) = default;
};

// The node at hand and what its GPUs are to each other.
class Board {
 public:
  explicit Board(const model::Node& node) : node_(node) {}

  std::pair<std::int32_t, std::int32_t> numa(std::uint32_t gpu) const {
    return {0, node_.gpus[gpu].info.numa_node};
  }
  // A NUMA node of which the socket is not known is a socket of its own.
  std::pair<std::int32_t, std::int32_t> socket(std::uint32_t gpu) const {
    const std::int32_t found = model::socket_of(node_.topology, numa(gpu).second);
    return found < 0 ? std::pair{0, numa(gpu).second} : std::pair{1, found};
  }
  bool has_nvlink(std::uint32_t a, std::uint32_t b) const {
    return link(a, b).kind == model::LinkKind::kNvLink;
  }
  std::int64_t nearness(std::uint32_t a, std::uint32_t b) const {
    const model::GpuLink found = link(a, b);
    return static_cast<std::int64_t>(found.kind) + (has_nvlink(a, b) ? found.nvlinks : 0);
  }

  template <class Place>
  std::map<std::pair<std::int32_t, std::int32_t>, Indices> by(Place place,
                                                              const Indices& gpus) const {
    std::map<std::pair<std::int32_t, std::int32_t>, Indices> groups;
    for (const std::uint32_t gpu : gpus) groups[(this->*place)(gpu)].push_back(gpu);
    return groups;
  }
  template <class Place>
  std::size_t most(Place place, const Indices& gpus) const {
    std::size_t most = 0;
    for (const auto& [key, group] : by(place, gpus)) most = std::max(most, group.size());
    return most;
  }

 private:
  model::GpuLink link(std::uint32_t a, std::uint32_t b) const {
    return model::link_between(node_.topology, node_.gpus.size(), a, b);
  }

  const model::Node& node_;
};

// Calls visit(subset) for every subset of `count`; stops once it returns true.
template <class Visit>
bool any_subset(const Indices& of, std::size_t count, Visit visit) {
  std::vector<char> is_taken(of.size(), 0);
  std::fill_n(is_taken.begin(), count, 1);
  do {
    Indices subset;
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (is_taken[i] != 0) subset.push_back(of[i]);
    }
    if (visit(subset)) return true;
  } while (std::ranges::prev_permutation(is_taken).found);
  return false;
}

template <class Visit>
void each_pair(const Indices& gpus, Visit visit) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) visit(gpus[i], gpus[j]);
  }
}

bool has_nvlink_between_all(const Board& board, const Indices& gpus) {
  bool all = true;
  each_pair(gpus, [&](auto a, auto b) { all = all && board.has_nvlink(a, b); });
  return all;
}

std::int64_t rank_of(const Board& board, const Indices& free, std::size_t count) {
  if (board.most(&Board::numa, free) < count) {
    return board.most(&Board::socket, free) >= count ? 2 : 3;
  }
  for (const auto& [numa, group] : board.by(&Board::numa, free)) {
    if (group.size() < count) continue;
    const bool found = any_subset(
        group, count, [&](const Indices& gpus) { return has_nvlink_between_all(board, gpus); });
    if (found) return 0;
  }
  return 1;
}

Option option_of(const Board& board, const Indices& free, const Indices& gpus) {
  const std::size_t numa_nodes = board.by(&Board::numa, gpus).size();
  const std::size_t sockets = board.by(&Board::socket, gpus).size();
  std::int64_t worst = 1000;
  std::int64_t sum = 0;
  each_pair(gpus, [&](auto a, auto b) {
    worst = std::min(worst, board.nearness(a, b));
    sum += board.nearness(a, b);
  });
  const bool all_nvlink = has_nvlink_between_all(board, gpus);
  Option option;
  option.rank = numa_nodes == 1 ? (all_nvlink ? 0 : 1) : (sockets == 1 ? 2 : 3);
  option.closeness = {all_nvlink ? 0 : 1, static_cast<std::int64_t>(sockets),
                      static_cast<std::int64_t>(numa_nodes), -worst, -sum};
  Indices left;
  std::ranges::set_difference(free, gpus, std::back_inserter(left));
  std::int64_t left_on_numa = 0;
  std::int64_t left_on_socket = 0;
  std::int64_t left_sum = 0;
  const auto square = [](const Indices& group) {
    return static_cast<std::int64_t>(group.size() * group.size());
  };
  for (const auto& [numa, group] : board.by(&Board::numa, left)) left_on_numa += square(group);
  for (const auto& [key, group] : board.by(&Board::socket, left)) left_on_socket += square(group);
  each_pair(left, [&](auto a, auto b) { left_sum += board.nearness(a, b); });
  option.leftover = {-left_on_numa, -left_on_socket, -left_sum};
  option.gpus = gpus;
  return option;
}

Option best_option(const Board& board, const Indices& free, std::size_t count) {
  std::optional<Option> best;
  any_subset(free, count, [&](const Indices& gpus) {
    Option option = option_of(board, free, gpus);
    if (!best.has_value() || option < *best) best = std::move(option);
    return false;
  });
  return *std::move(best);
}

// Returns whether the node may give the GPUs at this rank, as the request and the node's own GPUs
// say.
bool is_allowed(const model::Node& node, const model::ResourceRequest& request, std::int64_t rank) {
  const bool is_open = request.numa == model::NumaPolicy::kDefault && model::names_gpus(request);
  if (rank < 3 || is_open || request.numa == model::NumaPolicy::kAllowCross) return true;
  if (request.numa == model::NumaPolicy::kStrict) return false;
  const model::Node idle = model::as_idle(node);
  const Board board(node);
  return std::ranges::all_of(free_by_type(idle, request), [&](const Indices& gpus) {
    return board.most(&Board::numa, gpus) < request.gpus;
  });
}

// Rank, fewest of the type, indices: the best of the node's types; nothing where none may be used.
using TypeOption = std::tuple<std::int64_t, std::size_t, Indices>;
std::optional<TypeOption> pick_type(const model::Node& node,
                                    const model::ResourceRequest& request) {
  const Board board(node);
  std::optional<TypeOption> best;
  for (const Indices& free : free_by_type(node, request)) {
    if (!is_allowed(node, request, rank_of(board, free, request.gpus))) continue;
    const Option option = best_option(board, free, request.gpus);
    TypeOption of_type{option.rank, free.size(), option.gpus};
    if (!best.has_value() || of_type < *best) best = std::move(of_type);
  }
  return best;
}

// The best rank at which the node gives the GPUs now.
std::optional<std::int64_t> rank_on(const model::Node& node,
                                    const model::ResourceRequest& request) {
  if (request.gpus == 0) return 0;
  std::optional<std::int64_t> best;
  for (const Indices& free : free_by_type(node, request)) {
    const std::int64_t rank = rank_of(Board(node), free, request.gpus);
    if (is_allowed(node, request, rank) && rank <= best.value_or(rank)) best = rank;
  }
  return best;
}

model::PlacementLevel level_of(const model::Node& node, std::int64_t rank, const Indices& gpus) {
  const bool is_told = node.gpus[gpus.front()].info.numa_node >= 0;
  if (rank < 2) {
    return is_told ? model::PlacementLevel::kOneNumaNode : model::PlacementLevel::kUnknown;
  }
  return rank == 2 ? model::PlacementLevel::kOneSocket : model::PlacementLevel::kAcrossSockets;
}

bool may_use(const model::ResourceRequest& request, model::NodeId node) {
  const bool is_named = request.nodelist.empty() || std::ranges::count(request.nodelist, node) > 0;
  return is_named && std::ranges::count(request.exclude, node) == 0;
}

using Score = std::tuple<std::int64_t, std::uint64_t, std::uint32_t, std::int64_t, model::NodeId>;

// Returns the score of the node for a request for one node; nothing if it cannot hold that now.
std::optional<Score> score_on(const model::Node& node, const model::ResourceRequest& request) {
  if (node.state != model::NodeState::kUp || !may_use(request, node.id)) return std::nullopt;
  if (!request.engines.contains(node.engine)) return std::nullopt;
  if (!model::accepts(request.capacity, node.capacity)) return std::nullopt;
  const Demand demand =
      demand_on(request, {node.cpus, node.memory, static_cast<std::uint32_t>(node.gpus.size())});
  const auto left = [](std::int64_t all, std::int64_t ours, std::int64_t of_others) {
    return std::max<std::int64_t>(0, all - ours - of_others);
  };
  const std::int64_t cpus = left(node.cpus, node.cpus_used, node.others_cpus) - demand.cpus;
  const std::int64_t memory =
      left(node.memory.value(), node.memory_used.value(), node.others_memory.value()) -
      demand.memory.value();
  if (cpus < 0 || memory < 0) return std::nullopt;
  const std::optional<std::int64_t> rank = rank_on(node, request);
  if (!rank.has_value()) return std::nullopt;
  const auto free = static_cast<std::uint64_t>(std::ranges::count_if(
      node.gpus, [&](const model::Gpu& gpu) { return is_free_for(request, gpu); }));
  return Score{*rank, free - request.gpus, static_cast<std::uint32_t>(cpus), memory, node.id};
}

// Each type that the request would take as a request for that alone, in its order.
std::vector<model::ResourceRequest> by_choice(const model::ResourceRequest& request) {
  if (request.gpu_types.empty()) return {request};
  std::vector<model::ResourceRequest> choices;
  for (const std::string& type : request.gpu_types) {
    choices.push_back(request);
    choices.back().gpu_types = {type};
  }
  return choices;
}

std::optional<model::Allocation> place_on_best(const std::vector<model::Node>& nodes,
                                               const model::ResourceRequest& request) {
  std::optional<Score> best_score;
  const model::Node* best = nullptr;
  for (const model::Node& node : nodes) {
    const std::optional<Score> score = score_on(node, request);
    if (!score || (best_score && *best_score < *score)) continue;
    best_score = score;
    best = &node;
  }
  if (best == nullptr) return std::nullopt;
  const Demand demand =
      demand_on(request, {best->cpus, best->memory, static_cast<std::uint32_t>(best->gpus.size())});
  model::NodeAllocation part{best->id, {}, demand.cpus, demand.memory};
  if (request.gpus > 0) {
    const auto [rank, free, gpus] = pick_type(*best, request).value();
    for (const std::uint32_t i : gpus) {
      part.grants.push_back({i, base::kWholeGpu, best->gpus[i].info.memory});
    }
    part.level = level_of(*best, rank, gpus);
  }
  return model::Allocation{{part}};
}

// ---- parts of GPUs

bool may_share(const model::Gpu& gpu, const model::ResourceRequest& request, model::ShareMode mode,
               const model::Sharing& rules) {
  if (gpu.holders.size() >= rules.max_jobs) return false;
  const auto is_of_user = [&](const model::GpuHolder& h) { return h.uid == request.tenant.uid; };
  const auto is_of_team = [&](const model::GpuHolder& h) {
    return h.team == request.tenant.team && !h.team.empty();
  };
  if (std::ranges::all_of(gpu.holders, is_of_user)) return true;
  if (mode == model::ShareMode::kMps) return false;
  return rules.between_users == model::SharedBetween::kAll ||
         (rules.between_users == model::SharedBetween::kTeam &&
          std::ranges::all_of(gpu.holders, is_of_team));
}

// Returns the node with those GPUs alone that parts may go to.
model::Node with_shared_gpus(const model::Node& node, const model::Sharing& rules,
                             const model::ResourceRequest& request, model::ShareMode mode) {
  const PartTerms terms = part_terms_of(rules, node);
  const model::Wall* wall = terms.wall(mode, request.tenant);
  const bool gives = wall != nullptr && is_strong_enough(*wall, request);
  model::Node shared = node;
  for (std::size_t i = 0; i < shared.gpus.size(); ++i) {
    if (gives && (terms.gpus_in(mode) >> i & 1) != 0) continue;
    shared.gpus[i].state = model::GpuState::kOffline;
    shared.gpus[i].taints.clear();
    shared.gpus[i].holders.clear();
  }
  return shared;
}

bool is_type_of(const model::ResourceRequest& request, const model::Gpu& gpu) {
  return request.gpu_types.empty() || model::gpu_type_matches(request.gpu_types[0], gpu.info.type);
}

model::Allocation part_on(const model::Node& node, std::uint32_t gpu, model::ShareMode mode,
                          const model::ResourceRequest& request) {
  const Demand demand =
      demand_on(request, {node.cpus, node.memory, static_cast<std::uint32_t>(node.gpus.size())});
  model::NodeAllocation part{node.id, {}, demand.cpus, demand.memory};
  part.grants.push_back({gpu, request.share_per_gpu,
                         memory_of_part(request, node.gpus[gpu].info.memory), mode,
                         wall_of(node, mode, request.tenant).value()});
  part.level = level_of(node, 0, {gpu});
  model::Allocation allocation{{part}};
  allocation.tenant = request.tenant;
  return allocation;
}

// What is left of the node's CPUs and memory then; nothing if it has too little.
std::optional<Score> score_of_rest(const model::Node& node, model::ResourceRequest request) {
  request.gpus = 0;
  request.gpu_types.clear();
  return score_on(node, request);
}

std::optional<model::Allocation> naive_join(const std::vector<model::Node>& nodes,
                                            const model::ResourceRequest& request,
                                            model::ShareMode mode, const model::Sharing& rules) {
  using Fullness = std::tuple<base::GpuShare, base::Bytes, model::NodeId, std::uint32_t>;
  std::optional<Fullness> fullest;
  std::optional<model::Allocation> best;
  for (const model::Node& node : nodes) {
    const model::Node shared = with_shared_gpus(node, rules, request, mode);
    for (std::uint32_t i = 0; i < shared.gpus.size(); ++i) {
      const model::Gpu& gpu = shared.gpus[i];
      if (gpu.holders.empty() || gpu.holders[0].share == base::kWholeGpu ||
          gpu.holders[0].mode != mode || !model::is_in_service(gpu) || !is_type_of(request, gpu) ||
          !model::may_use_gpu(request, gpu.info.uuid) || !may_share(gpu, request, mode, rules)) {
        continue;
      }
      base::GpuShare share = base::kWholeGpu;
      base::Bytes memory = gpu.info.memory;
      for (const model::GpuHolder& holder : gpu.holders) {
        share -= holder.share;
        memory -= holder.memory;
      }
      const model::Allocation there = part_on(node, i, mode, request);
      model::ResourceRequest rest = request;
      rest.cpus = there.nodes[0].cpus;
      rest.memory = there.nodes[0].memory;
      const Fullness fullness{share, memory, node.id, i};
      if (share < request.share_per_gpu || memory < there.nodes[0].grants[0].memory ||
          !score_of_rest(node, rest) || (fullest && *fullest < fullness)) {
        continue;
      }
      fullest = fullness;
      best = there;
    }
  }
  return best;
}

std::optional<model::Allocation> naive_open(const std::vector<model::Node>& nodes,
                                            const model::ResourceRequest& request,
                                            model::ShareMode mode, const model::Sharing& rules) {
  std::optional<Score> best_score;
  std::optional<model::Allocation> best;
  for (const model::Node& node : nodes) {
    const auto option = pick_type(with_shared_gpus(node, rules, request, mode), request);
    const auto score = score_on(node, request);
    if (!option || !score || (best_score && *best_score < *score)) continue;
    best_score = score;
    best = part_on(node, std::get<Indices>(*option).front(), mode, request);
  }
  return best;
}

std::optional<model::Allocation> naive_place_part(const std::vector<model::Node>& nodes,
                                                  const model::ResourceRequest& request,
                                                  const model::Sharing& rules) {
  for (const auto place : {naive_join, naive_open}) {
    for (const model::ShareMode mode : modes_for(rules, request)) {
      if (auto allocation = place(nodes, request, mode, rules)) return allocation;
    }
  }
  return std::nullopt;
}

// ---- gangs

// The types that exist and the request takes; one request for each.
std::vector<model::ResourceRequest> by_type(const std::vector<model::Node>& nodes,
                                            const model::ResourceRequest& request) {
  if (request.gpus == 0) return {request};
  std::vector<model::ResourceRequest> requests;
  std::set<std::string> seen;
  for (const model::Node& node : nodes) {
    for (const model::Gpu& gpu : node.gpus) {
      const bool accepted = request.gpu_types.empty() ||
                            model::gpu_type_matches(request.gpu_types.front(), gpu.info.type);
      if (!accepted || !seen.insert(gpu.info.type).second) continue;
      requests.push_back(request);
      requests.back().gpu_types = {gpu.info.type};
    }
  }
  return requests;
}

std::vector<model::ResourceRequest> by_type_and_engine(const std::vector<model::Node>& nodes,
                                                       const model::ResourceRequest& request) {
  std::vector<model::ResourceRequest> requests;
  for (const model::EngineKind kind : model::kAllEngineKinds) {
    if (!request.engines.contains(kind)) continue;
    for (model::ResourceRequest& of_type : by_type(nodes, request)) {
      of_type.engines = model::EngineSet::of(kind);
      requests.push_back(std::move(of_type));
    }
  }
  return requests;
}

// Returns how near so many nodes that can each give the part can be, and the least number of such
// nodes in a place of that level.
std::optional<NaiveGang> nearest(const std::vector<model::Node>& nodes,
                                 const model::ResourceRequest& part, std::size_t parts) {
  for (const auto level : {model::NetworkLevel::kDomain, model::NetworkLevel::kRack,
                           model::NetworkLevel::kZone, model::NetworkLevel::kAnywhere}) {
    // One node is together with itself at every level.
    if (parts == 1 && level != model::NetworkLevel::kAnywhere) continue;
    if (parts > 1 && level < part.within) return std::nullopt;
    std::map<std::string, std::size_t> counts;
    for (const model::Node& node : nodes) {
      const std::string name(node.network.name_at(level));
      const bool is_together = level == model::NetworkLevel::kAnywhere || !name.empty();
      if (is_together && score_on(node, part)) ++counts[name];
    }
    std::erase_if(counts, [&](const auto& entry) { return entry.second < parts; });
    if (counts.empty()) continue;
    std::size_t least = counts.begin()->second;
    for (const auto& [name, count] : counts) least = std::min(least, count);
    return NaiveGang{parts, level, least};
  }
  return std::nullopt;
}

std::optional<NaiveGang> gang_of(const std::vector<model::Node>& nodes,
                                 const model::ResourceRequest& request) {
  for (const model::ResourceRequest& choice : by_choice(request)) {
    std::vector<std::uint32_t> splits = {request.nodes};
    if (request.cross_node) {
      splits.clear();
      for (std::uint32_t n = 1; n <= request.gpus; ++n) {
        if (request.gpus % n == 0) splits.push_back(n);
      }
    }
    for (const std::uint32_t parts : splits) {
      model::ResourceRequest part = choice;
      part.gpus = request.cross_node ? request.gpus / parts : request.gpus;
      std::optional<NaiveGang> best;
      for (const model::ResourceRequest& of_kind : by_type_and_engine(nodes, part)) {
        const std::optional<NaiveGang> found = nearest(nodes, of_kind, parts);
        if (!found) continue;
        const bool is_better =
            !best || found->level > best->level ||
            (found->level == best->level && found->nodes_there < best->nodes_there);
        if (is_better) best = found;
      }
      if (best) return best;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<NaiveGang> naive_gang(const std::vector<model::Node>& nodes,
                                    const model::ResourceRequest& request) {
  for (const model::ResourceRequest& each : by_health(request)) {
    if (auto gang = gang_of(nodes, each)) return gang;
  }
  return std::nullopt;
}

bool naive_fits(const std::vector<model::Node>& nodes, const model::ResourceRequest& request) {
  return model::is_gang(request) ? naive_gang(nodes, request).has_value()
                                 : naive_place(nodes, request).has_value();
}

std::optional<model::Allocation> naive_place(const std::vector<model::Node>& nodes,
                                             const model::ResourceRequest& request,
                                             const model::Sharing& rules) {
  for (const model::ResourceRequest& each : by_health(request)) {
    for (const model::ResourceRequest& choice : by_choice(each)) {
      auto allocation = model::is_part(choice) ? naive_place_part(nodes, choice, rules)
                                               : place_on_best(nodes, choice);
      if (allocation) return allocation;
    }
  }
  return std::nullopt;
}

Plan naive_plan(std::vector<model::Node> nodes, std::vector<WaitingJob> jobs,
                const model::Policy& policy) {
  std::ranges::sort(jobs, {}, [&](const WaitingJob& job) {
    const model::Priority priority = job.spec->priority;
    return std::tuple(-policy.priority_points[static_cast<std::size_t>(priority.priority_class)],
                      priority.number, job.submitted_at, job.id);
  });
  Plan plan;
  for (const WaitingJob& job : jobs) {
    std::optional<model::Allocation> allocation =
        naive_place(nodes, job.spec->request, policy.sharing);
    if (!allocation.has_value()) {
      plan.blocked_head = job.id;
      break;
    }
    occupy(nodes, *allocation, job.id);
    plan.starts.push_back({job.id, *std::move(allocation), model::StartWhy::kImmediate});
  }
  return plan;
}

}  // namespace gpu_platform::scheduling
