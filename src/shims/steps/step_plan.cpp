#include "shims/steps/step_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

std::unexpected<base::Error> beyond(std::string message, std::string option = {}) {
  return base::fail(base::ErrorCode::kFailedPrecondition, std::move(message), std::move(option));
}

bool asks_for_gpus(const Settings& settings) {
  return settings.has("gpus") || settings.has("gres") || settings.has("gpus-per-node") ||
         settings.has("gpus-per-task") || settings.has("ntasks-per-gpu");
}

bool is_exact(const Settings& settings) {
  return settings.has("exact") || settings.has("exclusive") || settings.has("cpus-per-task");
}

// The part of the node's memory that the step asks for; none where it does not say, and with
// --mem=0.
base::Result<std::uint32_t> memory_parts(const Resources& resources, const StepNode& node) {
  const auto& of_job = node.memory_bytes;
  if (!resources.memory || !of_job) return 0;
  const auto asked = static_cast<std::uint64_t>(resources.memory->value());
  if (asked > *of_job) {
    return beyond(
        fmt::format("the step asks for {} MiB and the job has {} MiB", asked >> 20, *of_job >> 20),
        "--mem");
  }
  const std::uint64_t part = std::max<std::uint64_t>(1, *of_job / kMemoryParts);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((asked + part - 1) / part, kMemoryParts));
}

// How many of the job's first nodes are passed over: --relative.
base::Result<std::uint32_t> nodes_passed(const Settings& settings, std::size_t nodes) {
  if (!settings.has("relative")) return 0;
  const auto read = parse_number(settings.value("relative"), 0);
  if (!read) return base::invalid("--relative", read.error().message);
  if (*read > 0 && nodes == 1)
    return beyond("the job has one node, which is number 0: leave the option out", "--relative");
  if (*read >= nodes)
    return beyond(fmt::format("the job has {} nodes, numbered from 0 on", nodes), "--relative");
  if (*read > 0 && (settings.has("nodelist") || settings.has("exclude")))
    return beyond("it is not for a step that names nodes with -w or -x", "--relative");
  return *read;
}

// Those that --nodelist, --exclude and --relative leave.
base::Result<std::vector<NodeRoom>> rooms_of(const Settings& settings,
                                             const std::vector<StepNode>& job) {
  const auto named = host_names(settings.value("nodelist"));
  const auto excluded = host_names(settings.value("exclude"));
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const std::string& name : named) {
    if (std::ranges::find(job, name, &StepNode::name) == job.end())
      return beyond(fmt::format("the node '{}' is not one of the job's", name), "--nodelist");
  }
  TRY_ASSIGN(const std::uint32_t passed, nodes_passed(settings, job.size()));
  std::vector<NodeRoom> rooms;
  for (std::size_t i = passed; i < job.size(); ++i) {
    if (has(excluded, job[i].name) || (!named.empty() && !has(named, job[i].name))) continue;
    rooms.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(job[i].gpus.size()),
                     job[i].cpus});
  }
  if (rooms.empty()) return beyond("no node of the job is left", "--exclude");
  return rooms;
}

// All nodes of the job where nothing else is asked for, but no more than there are tasks and GPUs.
base::Result<Resources> resources_on(const Settings& settings, std::uint32_t nodes) {
  std::vector<std::string> ignored;
  Settings own = settings;
  const bool is_counted = settings.has("nodes");
  if (!is_counted && nodes > 1) own.set(Option{"nodes"}, fmt::format("{}", nodes));
  TRY_ASSIGN(Resources resources, resources_of(own, ignored));
  if (!is_counted && resources.gpus_in_all.value_or(0) > 0 &&
      *resources.gpus_in_all < resources.nodes) {
    own.set(Option{"nodes"}, fmt::format("{}", *resources.gpus_in_all));
    TRY_ASSIGN(resources, resources_of(own, ignored));
  }
  return resources;
}

// The GPUs of all nodes as equal as can be.
std::uint32_t gpus_on(const Resources& resources, std::uint32_t node) {
  if (!resources.gpus_in_all) return resources.gpus.count;
  const std::uint32_t all = *resources.gpus_in_all;
  return all / resources.nodes + (node < all % resources.nodes ? 1 : 0);
}

base::Result<ShareWish> wish_on(const Settings& settings, const StepPlan& plan,
                                const std::vector<StepNode>& job, std::uint32_t node) {
  const NodeRoom& room = plan.rooms.front();  // nodes of a job are alike
  const auto tasks = static_cast<std::uint32_t>(plan.layout[node].size());
  ShareWish wish{room.gpus, room.cpus};
  TRY_ASSIGN(wish.memory, memory_parts(plan.resources, job[room.node]));
  if (plan.resources.gpus_per_task) {
    wish.gpus = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{tasks} * *plan.resources.gpus_per_task, UINT32_MAX));
  } else if (asks_for_gpus(settings)) {
    wish.gpus = gpus_on(plan.resources, node);
  }
  const bool is_one = plan.layout.size() == 1;
  const std::string_view where = is_one ? "" : " on each node";
  if (wish.gpus > room.gpus) {
    return beyond(fmt::format("the step asks for {} GPUs{} and the job has {}", wish.gpus,
                              is_one ? "" : " on a node", room.gpus));
  }
  if (!is_exact(settings)) return wish;
  const std::uint64_t cpus = std::uint64_t{tasks} * plan.resources.cpus_per_task.value_or(1);
  if (cpus > room.cpus && !settings.has("overcommit")) {
    return beyond(
        fmt::format("the step asks for {} CPUs{} and the job has {}", cpus, where, room.cpus));
  }
  wish.cpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(cpus, room.cpus));
  return wish;
}

}  // namespace

base::Result<StepPlan> plan_step(const Settings& settings, const std::vector<StepNode>& job) {
  StepPlan plan;
  TRY_ASSIGN(plan.rooms, rooms_of(settings, job));
  Settings own = settings;
  // Which of them was said above; how many is said by what follows.
  if (settings.has("nodelist") && !settings.has("nodes"))
    own.set(Option{"nodes"}, fmt::format("{}", plan.rooms.size()));
  own.erase("nodelist");
  const auto rooms = static_cast<std::uint32_t>(plan.rooms.size());
  TRY_ASSIGN(plan.resources, resources_on(own, rooms));
  if (plan.resources.nodes > rooms) {
    return beyond(fmt::format("Only allocated {} nodes asked for {}", rooms, plan.resources.nodes),
                  "--nodes");
  }
  Distribution distribution;
  if (settings.has("distribution")) {
    auto read = parse_distribution(settings.value("distribution"));
    if (!read) return base::invalid("--distribution", read.error().message);
    distribution = *read;
  }
  plan.layout = layout_of(plan.resources.tasks, plan.resources.nodes, distribution);
  for (std::uint32_t node = 0; node < plan.layout.size(); ++node) {
    TRY_ASSIGN(const ShareWish wish, wish_on(settings, plan, job, node));
    plan.wishes.push_back(wish);
  }
  return plan;
}

StepPlaces places_of(const StepPlan& plan, const std::vector<StepNode>& job,
                     const std::vector<NodeShare>& shares) {
  StepPlaces places;
  places.layout = plan.layout;
  for (const NodeShare& share : shares) {
    StepNode node = job[share.node];
    std::vector<Gpu> gpus;
    for (const std::uint32_t place : share.gpus) gpus.push_back(node.gpus[place]);
    node.gpus = std::move(gpus);
    places.nodes.push_back(std::move(node));
  }
  return places;
}

StepAmounts amounts_of(const StepPlan& plan, const std::vector<StepNode>& job) {
  StepAmounts amounts;
  for (const ShareWish& wish : plan.wishes) {
    const std::uint64_t of_node = job[plan.rooms.front().node].memory_bytes.value_or(0);
    const auto asked =
        static_cast<std::uint64_t>(plan.resources.memory.value_or(base::Bytes()).value());
    amounts.cpus += wish.cpus;
    amounts.memory_bytes += wish.memory == 0 ? of_node : asked;
  }
  return amounts;
}

std::vector<NodeShare> first_shares(const StepPlan& plan) {
  std::vector<NodeShare> shares;
  for (std::size_t i = 0; i < plan.wishes.size(); ++i) {
    shares.push_back({plan.rooms[i].node, {}, {}});
    for (std::uint32_t gpu = 0; gpu < plan.wishes[i].gpus; ++gpu) shares.back().gpus.push_back(gpu);
  }
  return shares;
}

}  // namespace gpu_platform::shims
