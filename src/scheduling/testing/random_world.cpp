#include "scheduling/testing/random_world.h"

#include <algorithm>

#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {

namespace {

NodeBuilder random_shape(const Draw& draw, std::uint64_t id) {
  switch (draw(7)) {
    case 0:
      return node(id).gpus(8).cpus(112).memory(base::kGiB * 2048);
    case 1:
      return node(id).gpus(4, "A100-40GB", base::kGiB * 40, 2).cpus(30);
    case 2:
      return node(id).cpus(16).memory(base::kGiB * 64);
    case 3:  // two types in one machine
      return node(id).gpus(2, "T4-16GB", base::kGiB * 16).gpus(3, "A100-80GB", base::kGiB * 80);
    case 4:  // one type, two memory sizes
      return node(id)
          .gpus(2, "V100-16GB", base::kGiB * 16, 1)
          .gpus(2, "V100-16GB", base::kGiB * 15);
    case 5: {  // NUMA nodes take turns along the indices, as on boards with crossed wiring
      NodeBuilder crossed = node(id).gpus(6).cpus(7);
      for (std::uint32_t i = 0; i < 6; ++i) crossed.numa(i, static_cast<std::int32_t>(i % 3));
      return crossed;
    }
    default:  // fewer CPUs than GPUs, NUMA not known
      return node(id)
          .gpus(3, "L4-24GB", base::kGiB * 24, 3)
          .numa(0, -1)
          .numa(1, -1)
          .numa(2, -1)
          .cpus(2);
  }
}

// Sockets and links of every kind, also contradictory ones: placement must cope with all.
void add_topology(const Draw& draw, model::Node& node) {
  if (draw(3) != 0) {
    const bool is_one_each = draw(2) == 0;
    for (std::uint32_t id = 0; id < 4; ++id) {
      const auto socket = static_cast<std::int32_t>(is_one_each ? id : id / 2);
      node.topology.numa_nodes.push_back({.id = id, .socket = draw(8) == 7 ? -1 : socket});
    }
  }
  const std::size_t gpus = node.gpus.size();
  const std::uint64_t kind = draw(4);
  if (gpus == 0 || kind == 0) return;
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = a + 1; b < gpus; ++b) {
      model::GpuLink link;
      if (kind == 1 || (kind == 2 && a / 2 == b / 2)) {
        link = nvlinks(12);
      } else if (kind == 3) {
        link.kind = static_cast<model::LinkKind>(draw(model::kLinkKinds));
        if (link.kind == model::LinkKind::kNvLink)
          link = nvlinks(static_cast<std::uint32_t>(draw(3)));
      }
      node.topology.links.push_back(link);
    }
  }
}

std::vector<model::NodeId> random_nodes(const Draw& draw) {
  std::vector<model::NodeId> nodes;
  for (std::uint64_t id = 1; id <= 12; ++id) {
    if (draw(3) == 0) nodes.emplace_back(id);
  }
  return nodes;
}

}  // namespace

model::Node random_node(const Draw& draw, std::uint64_t id) {
  model::Node result = random_shape(draw, id);
  add_topology(draw, result);
  constexpr model::NodeState kDown[] = {model::NodeState::kDraining, model::NodeState::kLost,
                                        model::NodeState::kOffline};
  if (draw(6) == 5) result.state = kDown[draw(3)];
  for (model::Gpu& gpu : result.gpus) {
    gpu.info.uuid = uuid_in_tests(id, static_cast<std::size_t>(&gpu - result.gpus.data()));
    const std::uint64_t kept = draw(16);
    if (kept == 14) {
      model::set_taint(gpu.taints, {model::TaintSource::kHealth,
                                    model::TaintEffect::kDegraded,
                                    "it has XIDs",
                                    "health",
                                    {}});
    }
    if (kept == 15) {
      model::set_taint(gpu.taints, {model::TaintSource::kCluster,
                                    model::TaintEffect::kAvoided,
                                    "it has another driver",
                                    "cluster",
                                    {}});
    }
    if (draw(4) != 3) continue;
    gpu.state = static_cast<model::GpuState>(draw(model::kGpuStates));
    if (gpu.state == model::GpuState::kInUse) {
      gpu.holders.push_back({{model::JobId(999), 1}, base::kWholeGpu, gpu.info.memory});
    }
  }
  result.network = random_place(draw);
  if (draw(4) == 3) result.engine = model::EngineKind::kKubernetes;
  if (draw(3) == 2)
    result.capacity = static_cast<model::CapacityClass>(draw(model::kCapacityClasses));
  // A state is what taints made of it, as far as the scheduler sees.
  if (draw(18) == 17) result.state = model::NodeState::kOffline;
  if (draw(5) == 4) result.others_cpus = static_cast<std::uint32_t>(draw(result.cpus + 1));
  if (draw(5) == 4) result.others_memory = base::kGiB * static_cast<std::int64_t>(draw(65));
  if (draw(3) == 2) result.cpus_used = static_cast<std::uint32_t>(draw(result.cpus + 1));
  if (draw(3) == 2) result.memory_used = base::kGiB * static_cast<std::int64_t>(draw(65));
  return result;
}

model::ResourceRequest random_request(const Draw& draw) {
  model::ResourceRequest request = gpus(static_cast<std::uint32_t>(draw(9)));
  constexpr const char* kTypes[] = {"H100", "A100", "A100-80GB", "T4-16GB", "V100", "B200-180GB"};
  if (draw(3) == 2) {
    for (std::uint64_t i = draw(3) + 1; i > 0; --i) request.gpu_types.emplace_back(kTypes[draw(6)]);
  }
  if (draw(4) == 3) request.gpu_memory = base::kGiB * static_cast<std::int64_t>(16 * draw(7));
  if (draw(3) == 2) request.cpus = static_cast<std::uint32_t>(draw(40));
  if (draw(3) == 2) request.memory = base::kGiB * static_cast<std::int64_t>(draw(200));
  if (draw(3) == 2) request.numa = static_cast<model::NumaPolicy>(draw(model::kNumaPolicies));
  if (draw(6) == 5) request.nodelist = random_nodes(draw);
  if (draw(4) == 3) request.exclude = random_nodes(draw);
  constexpr model::EngineSet kSets[] = {model::kAnyEngine, model::kProcessesOnly,
                                        model::EngineSet::of(model::EngineKind::kKubernetes)};
  request.engines = kSets[draw(3)];
  if (draw(3) == 2) {
    request.capacity = static_cast<model::CapacityRequest>(draw(model::kCapacityRequests));
  }
  return request;
}

void add_random_names(const Draw& draw, const std::vector<model::Node>& nodes,
                      model::ResourceRequest& request) {
  if (request.gpus == 0) return;
  const std::uint64_t kind = draw(4);  // to avoid some, to use some alone, or both
  for (const model::Node& node : nodes) {
    for (const model::Gpu& gpu : node.gpus) {
      if (kind != 1 && draw(4) == 3) request.gpus_avoid.push_back(gpu.info.uuid);
      if (kind != 0 && draw(4) != 3) request.gpus_only.push_back(gpu.info.uuid);
    }
  }
  std::ranges::sort(request.gpus_avoid);
  std::ranges::sort(request.gpus_only);
  request.accept_degraded = draw(2) == 1;
}

namespace {

// Root and two users: two of them are of one team, and one is of two.
model::Tenant random_tenant(const Draw& draw) {
  constexpr const char* kTeams[] = {"red", "red", "blue", ""};
  const auto uid = static_cast<std::uint32_t>(draw(4));
  return {std::min(uid, 2U), kTeams[uid]};
}

base::GpuShare random_part(const Draw& draw) {
  return base::GpuShare(static_cast<std::int64_t>(1 + draw(8)) * 875);  // eighths
}

void add_parts_to(const Draw& draw, model::Gpu& gpu) {
  base::GpuShare free = base::kWholeGpu;
  base::Bytes memory = gpu.info.memory;
  const auto mode = static_cast<model::ShareMode>(1 + draw(model::kShareModes - 1));
  const model::Tenant owner = random_tenant(draw);
  for (std::uint64_t jobs = 1 + draw(3); jobs > 0; --jobs) {
    const base::GpuShare share = std::min(random_part(draw), base::GpuShare(7 * 875));
    const base::Bytes amount(memory.value() / static_cast<std::int64_t>(1 + draw(4)));
    if (share > free) break;
    const model::Tenant tenant =
        mode == model::ShareMode::kMps || draw(2) == 0 ? owner : random_tenant(draw);
    gpu.holders.push_back({{model::JobId(900 + jobs), 1},
                           share,
                           amount,
                           model::HolderPhase::kInUse,
                           mode,
                           tenant.uid,
                           tenant.team});
    free -= share;
    memory -= amount;
  }
  std::ranges::sort(gpu.holders, {}, &model::GpuHolder::attempt);
  gpu.state = model::GpuState::kInUse;
}

}  // namespace

model::Sharing random_sharing(const Draw& draw) {
  model::Sharing rules;
  rules.is_on = true;
  rules.between_users = static_cast<model::SharedBetween>(draw(model::kSharedBetween));
  rules.max_jobs = static_cast<std::uint32_t>(1 + draw(5));
  if (draw(4) == 3) rules.gpu_types = {"H100", "A100-80GB"};
  if (draw(4) == 3) rules.weakest_rung = static_cast<model::Rung>(draw(model::kRungs));
  if (draw(3) == 2) std::ranges::reverse(rules.modes);
  if (draw(4) == 3) rules.modes.resize(1);
  return rules;
}

void add_random_parts(const Draw& draw, std::vector<model::Node>& nodes) {
  for (model::Node& node : nodes) {
    node.watches_gpu_memory = true;
    for (const auto mode : {model::ShareMode::kTimeSlice, model::ShareMode::kMps}) {
      if (draw(4) != 3) node.share_modes.push_back(mode);
    }
    for (model::Gpu& gpu : node.gpus) {
      if (model::is_free(gpu) && draw(2) == 1) add_parts_to(draw, gpu);
      const bool is_sick = !gpu.holders.empty() && draw(12) == 11;
      if (!is_sick) continue;
      model::set_taint(gpu.taints, {model::TaintSource::kHealth,
                                    model::TaintEffect::kDegraded,
                                    "it has XIDs",
                                    "health",
                                    {}});
    }
  }
}

void make_random_part(const Draw& draw, model::ResourceRequest& request) {
  request.gpus = 1;
  request.share_per_gpu = std::min(random_part(draw), base::GpuShare(7 * 875));
  request.tenant = random_tenant(draw);
  if (draw(3) == 2) {
    request.share_mode = static_cast<model::ShareMode>(1 + draw(model::kShareModes - 1));
  }
  if (draw(12) == 11) {
    request.require_isolation = static_cast<model::Isolation>(draw(model::kIsolations));
  }
}

model::ResourceRequest random_gang(const Draw& draw) {
  model::ResourceRequest request = random_request(draw);
  if (draw(3) == 2) {
    request.cross_node = true;
    request.gpus = static_cast<std::uint32_t>(1 + draw(24));
  } else {
    request.gpus = static_cast<std::uint32_t>(draw(5));
    request.nodes = static_cast<std::uint32_t>(1 + draw(5));
  }
  request.within = static_cast<model::NetworkLevel>(draw(model::kNetworkLevels));
  if (request.gpus == 0) request.gpu_types.clear();
  return request;
}

model::NetworkPlace random_place(const Draw& draw) {
  if (draw(6) == 5) return {};
  const std::uint64_t domain = draw(6);
  const auto name = [&](const char* prefix, std::uint64_t number) {
    return draw(8) == 7 ? std::string() : prefix + std::to_string(number);
  };
  return {
      .domain = name("d", domain), .rack = name("r", domain / 2), .zone = name("z", domain / 4)};
}

World random_world(const Draw& draw, WorldSize size) {
  World world;
  std::uint64_t id = 0;
  for (std::uint64_t n = draw(size.max_nodes + 1); n > 0; --n) {
    id += 1 + draw(3);
    world.nodes.push_back(random_node(draw, id));
  }
  const std::uint64_t jobs = draw(size.max_jobs + 1);
  for (std::uint64_t n = 1; n <= jobs; ++n) {
    world.jobs.push_back(waiting(n, random_request(draw), static_cast<std::uint8_t>(draw(10)),
                                 static_cast<std::int64_t>(1 + draw(4))));
  }
  return world;
}

}  // namespace gpu_platform::scheduling
