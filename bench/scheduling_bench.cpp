// This program measures what a scheduling decision costs, beside a scan over all nodes in the same
// run.
//
// The clusters are worn: every node is somewhere between empty and full, so that the index is not
// in the one state that flatters it. "uniform" has one shape and the default share of CPUs and
// memory per GPU; "ragged" has three shapes, CPUs and memory in use at random, and requests that
// name types, CPUs and memory. Counters p50_ns and p99_ns are of single decisions, measured with
// the clock read around each (its own cost, about 20 ns, is not taken off).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/prng.h"
#include "model/job_spec.h"
#include "scheduling/cluster.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/placement/best_subset.h"
#include "scheduling/placement/place.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/pools/lending.h"
#include "scheduling/predict/predicted_starts.h"
#include "scheduling/testing/boards.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/world.h"
#include "scheduling/trial.h"
#include "scheduling/waiting_queue.h"

namespace gpu_platform::scheduling {
namespace {

using Nodes = std::vector<model::Node>;

enum class Kind : std::int64_t { kUniform, kRagged };

model::Node shape_of_kind(Kind kind, base::Prng& random, std::uint64_t id) {
  NodeBuilder node(id);
  switch (kind == Kind::kUniform ? 0 : random.below(3)) {
    case 0:
      return node.gpus(8).cpus(112).memory(base::kGiB * 2048);
    case 1:
      return node.gpus(8, "A100-80GB").cpus(128).memory(base::kGiB * 1024);
    default:
      return node.gpus(8, "L40S-48GB", base::kGiB * 48).cpus(96).memory(base::kGiB * 768);
  }
}

// Nodes on each of which some GPUs are in use, 7 of 8 in the mean for a busy cluster.
Nodes worn_nodes(Kind kind, std::uint64_t count) {
  base::Prng random(count);
  Nodes nodes;
  nodes.reserve(count);
  for (std::uint64_t id = 1; id <= count; ++id) {
    model::Node node = shape_of_kind(kind, random, id);
    const std::uint64_t quiet = random.chance(1, 2) ? 0 : random.below(5);
    for (model::Gpu& gpu : node.gpus) {
      if (random.chance(quiet, 8)) continue;
      gpu.state = model::GpuState::kInUse;
      node.cpus_used += node.cpus / 8;
      node.memory_used += base::Bytes(node.memory.value() / 8);
    }
    if (kind == Kind::kRagged) {
      node.cpus_used = static_cast<std::uint32_t>(random.below(node.cpus + 1));
      node.memory_used =
          base::kMiB * static_cast<std::int64_t>(random.below(
                           static_cast<std::uint64_t>(node.memory.value() / base::kMiB.value())));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

model::ResourceRequest request_of_kind(Kind kind, base::Prng& random) {
  constexpr std::uint32_t kSizes[] = {1, 1, 1, 1, 2, 2, 4, 8};
  model::ResourceRequest request = gpus(kSizes[random.below(8)]);
  if (kind == Kind::kUniform) return request;
  constexpr const char* kTypes[] = {"H100", "A100-80GB", "L40S"};
  if (random.chance(1, 2)) request.gpu_types.emplace_back(kTypes[random.below(3)]);
  request.cpus = static_cast<std::uint32_t>(1 + random.below(16)) * request.gpus;
  request.memory = base::kGiB * static_cast<std::int64_t>((1 + random.below(64)) * request.gpus);
  return request;
}

std::vector<model::ResourceRequest> requests_of_kind(Kind kind) {
  base::Prng random(7);
  std::vector<model::ResourceRequest> requests;
  for (int i = 0; i < 512; ++i) requests.push_back(request_of_kind(kind, random));
  return requests;
}

// Runs `decide(request)` for the state's iterations and reports the spread of single calls.
template <class Decide>
void measure(benchmark::State& state, const std::vector<model::ResourceRequest>& requests,
             Decide decide) {
  std::vector<std::int64_t> times;
  times.reserve(1 << 20);
  std::size_t next = 0;
  std::size_t placed = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    placed += decide(requests[next]) ? 1 : 0;
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    next = (next + 1) % requests.size();
  }
  std::ranges::sort(times);
  state.counters["p50_ns"] = static_cast<double>(times[times.size() / 2]);
  state.counters["p99_ns"] = static_cast<double>(times[times.size() * 99 / 100]);
  state.counters["placed_percent"] =
      100.0 * static_cast<double>(placed) / static_cast<double>(times.size());
}

// One decision on the index, taken and undone, so that every one meets the same cluster.
void measure_decisions(benchmark::State& state, Cluster& cluster,
                       const std::vector<model::ResourceRequest>& requests) {
  Trial trial(cluster);
  measure(state, requests, [&](const model::ResourceRequest& request) {
    const auto allocation = place(cluster, request);
    if (allocation.has_value()) {
      trial.take(*allocation);
      trial.rollback();
    }
    return allocation.has_value();
  });
}

void BM_Decision(benchmark::State& state) {
  const auto kind = static_cast<Kind>(state.range(0));
  Cluster cluster = cluster_of(worn_nodes(kind, static_cast<std::uint64_t>(state.range(1))));
  measure_decisions(state, cluster, requests_of_kind(kind));
  std::size_t groups = 0;
  for (const auto& [shape, shape_class] : cluster.shapes()) groups += shape_class.groups.size();
  state.counters["groups"] = static_cast<double>(groups);
}

// Halves and quarters of GPUs, for 64 users in 8 teams. Half of the jobs insist on turns.
std::vector<model::ResourceRequest> requests_for_parts() {
  base::Prng random(7);
  std::vector<model::ResourceRequest> requests;
  for (int i = 0; i < 512; ++i) {
    const auto user = static_cast<std::uint32_t>(random.below(64));
    model::ResourceRequest request =
        part(random.chance(1, 2) ? 500 : 250, {1000 + user, "team-" + std::to_string(user % 8)});
    if (random.chance(1, 2)) request.share_mode = model::ShareMode::kTimeSlice;
    requests.push_back(std::move(request));
  }
  return requests;
}

// Worn nodes that share their free GPUs. So many jobs have parts of them, each in the place that
// was the best for it.
Cluster cluster_with_parts(std::uint64_t nodes_count, std::int64_t parts) {
  Nodes nodes = worn_nodes(Kind::kUniform, nodes_count);
  for (model::Node& node : nodes) {
    node.share_modes = {model::ShareMode::kTimeSlice, model::ShareMode::kMps};
    node.watches_gpu_memory = true;
  }
  Cluster cluster = cluster_of(nodes, all_shared(model::SharedBetween::kTeam));
  const std::vector<model::ResourceRequest> requests = requests_for_parts();
  for (std::uint64_t job = 1; job <= static_cast<std::uint64_t>(parts); ++job) {
    const auto allocation = place(cluster, requests[job % requests.size()]);
    if (!allocation) break;
    occupy(nodes, *allocation, model::JobId(job));
    cluster.update(nodes[allocation->nodes[0].node.value - 1]);
  }
  return cluster;
}

// A part on 12,500 nodes: without parts each opens a GPU, with 10,000 of them it joins the fullest
// GPU that has room for it.
void BM_DecisionOfParts(benchmark::State& state) {
  Cluster cluster = cluster_with_parts(12'500, state.range(0));
  measure_decisions(state, cluster, requests_for_parts());
}
BENCHMARK(BM_DecisionOfParts)->ArgName("parts")->Arg(0)->Arg(10'000);

// Whole GPUs on the same clusters: what they pay for the parts of others.
void BM_DecisionBesideParts(benchmark::State& state) {
  Cluster cluster = cluster_with_parts(12'500, state.range(0));
  measure_decisions(state, cluster, requests_of_kind(Kind::kUniform));
}
BENCHMARK(BM_DecisionBesideParts)->ArgName("parts")->Arg(0)->Arg(10'000);

// A gang on 12,500 nodes of 8 GPUs in 391 domains of 32, 98 racks and 4 zones: placed, taken and
// undone.
enum class Load : std::int64_t { kFresh, kHalfFull, kFull };

Nodes nodes_in_places(Load load, std::uint64_t count) {
  base::Prng random(11);
  Nodes nodes = load == Load::kHalfFull ? worn_nodes(Kind::kUniform, count) : Nodes();
  for (std::uint64_t id = 1; load != Load::kHalfFull && id <= count; ++id) {
    nodes.push_back(shape_of_kind(Kind::kUniform, random, id));
  }
  for (model::Node& node : nodes) {
    const std::uint64_t domain = (node.id.value - 1) / 32;
    node.network = {.domain = "d" + std::to_string(domain),
                    .rack = "r" + std::to_string(domain / 4),
                    .zone = "z" + std::to_string(domain / 98)};
    // Half of the nodes are as they were made, half are full, or all but a few.
    if (load == Load::kHalfFull && random.chance(1, 2)) {
      node = static_cast<model::Node>(
          NodeBuilder(node.id.value)
              .gpus(8)
              .cpus(112)
              .memory(base::kGiB * 2048)
              .network(node.network.domain, node.network.rack, node.network.zone));
    }
    if (load == Load::kFull && node.id.value > 127) node.gpus[0].state = model::GpuState::kInUse;
  }
  return nodes;
}

void BM_GangOf128Nodes(benchmark::State& state) {
  const auto load = static_cast<Load>(state.range(0));
  Cluster cluster = cluster_of(nodes_in_places(load, 12'500));
  Trial trial(cluster);
  model::ResourceRequest request = gpus(8);
  request.nodes = 128;
  bool is_placed = false;
  for (auto _ : state) {
    const auto allocation = place(trial, request);
    is_placed = allocation.has_value();
    if (!is_placed) continue;
    trial.take(*allocation);
    trial.rollback();
  }
  state.counters["placed"] = is_placed ? 1 : 0;
}
BENCHMARK(BM_GangOf128Nodes)->ArgName("load")->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

// A cluster that has free GPUs everywhere but nowhere both the CPUs and the memory: an index that
// walks from one number of free CPUs to the next would look at nearly every group.
void BM_DecisionShortOfMemory(benchmark::State& state) {
  base::Prng random(3);
  Nodes nodes = worn_nodes(Kind::kRagged, static_cast<std::uint64_t>(state.range(0)));
  for (model::Node& node : nodes) {
    for (model::Gpu& gpu : node.gpus) {
      gpu.state = random.chance(1, 2) ? model::GpuState::kAvailable : model::GpuState::kInUse;
    }
    const std::uint64_t free_gib = random.below(110);
    node.memory_used = node.memory - base::kGiB * static_cast<std::int64_t>(free_gib);
    if (free_gib >= 100) node.cpus_used = node.cpus - static_cast<std::uint32_t>(random.below(8));
  }
  const Cluster cluster = cluster_of(nodes);
  model::ResourceRequest request = gpus(1);
  request.cpus = 8;
  request.memory = base::kGiB * 100;
  for (auto _ : state) {
    const auto allocation = place(cluster, request);
    if (allocation.has_value()) {
      state.SkipWithError("nothing should fit");
      return;
    }
  }
}
BENCHMARK(BM_DecisionShortOfMemory)->ArgName("nodes")->Arg(12'500)->Arg(100'000);

// The same choice by a scan over a compact table of 32 bytes a node: the floor of a plain program.
struct PlainNode {
  std::uint64_t id;
  std::int64_t memory;
  std::uint32_t cpus;
  std::uint32_t gpus;
  std::uint32_t type;
};

void BM_PlainScan(benchmark::State& state) {
  const auto kind = static_cast<Kind>(state.range(0));
  std::map<std::string, std::uint32_t> types;
  std::vector<PlainNode> table;
  for (const model::Node& node : worn_nodes(kind, static_cast<std::uint64_t>(state.range(1)))) {
    const FreeState free = free_state_of(node);
    const auto type = static_cast<std::uint32_t>(
        types.emplace(node.gpus[0].info.type, types.size()).first->second);
    table.push_back({node.id.value, free.memory.value(), free.cpus,
                     static_cast<std::uint32_t>(__builtin_popcountll(free.gpus)), type});
  }
  measure(state, requests_of_kind(kind), [&](const model::ResourceRequest& request) {
    const std::uint32_t cpus = request.cpus.value_or(14 * request.gpus);
    const std::int64_t memory = request.memory.value_or(base::kGiB * 256 * request.gpus).value();
    const PlainNode* best = nullptr;
    const auto score = [](const PlainNode& n) {
      return std::tuple(n.gpus, n.cpus, n.memory, n.id);
    };
    for (const PlainNode& node : table) {
      if (node.gpus < request.gpus || node.cpus < cpus || node.memory < memory) continue;
      if (best == nullptr || score(node) < score(*best)) best = &node;
    }
    benchmark::DoNotOptimize(best);
    return best != nullptr;
  });
}

// The reference planner's scan over the nodes as the model has them.
void BM_ReferenceScan(benchmark::State& state) {
  const auto kind = static_cast<Kind>(state.range(0));
  const Nodes nodes = worn_nodes(kind, static_cast<std::uint64_t>(state.range(1)));
  measure(state, requests_of_kind(kind), [&](const model::ResourceRequest& request) {
    return naive_place(nodes, request).has_value();
  });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"ragged", "nodes"});
  for (const std::int64_t kind : {0, 1}) {
    for (const std::int64_t nodes : {1'000, 12'500, 100'000}) bench->Args({kind, nodes});
  }
}
BENCHMARK(BM_Decision)->Apply(sizes);
BENCHMARK(BM_PlainScan)->Apply(sizes);
BENCHMARK(BM_ReferenceScan)->Args({0, 1'000})->Args({0, 12'500})->ArgNames({"ragged", "nodes"});

// 10,000 jobs of one GPU each, placed in one cycle on an empty cluster.
void BM_CycleOf10000Starts(benchmark::State& state) {
  const model::Policy policy;
  Nodes nodes;
  for (std::int64_t id = 1; id <= state.range(0); ++id) {
    nodes.push_back(node(static_cast<std::uint64_t>(id)).gpus(8).cpus(112));
  }
  WaitingQueue queue;
  for (std::uint64_t id = 1; id <= 10'000; ++id) {
    queue.put(waiting(id, gpus(1)), policy);
  }
  Books books({.cluster = cluster_of(nodes), .queue = std::move(queue)});
  for (auto _ : state) {
    const Plan plan = plan_cycle(books, policy);
    if (plan.starts.size() != std::min<std::size_t>(10'000, nodes.size() * 8)) {
      state.SkipWithError("not all that fit were placed");
      return;
    }
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(BM_CycleOf10000Starts)
    ->ArgName("nodes")
    ->Arg(1'250)
    ->Arg(12'500)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

// The scheduler's share of 10,000 job lives on 128 GPUs: submit, cycle, node events of start, end
// and release, with the cycle after each that a controller would run.
void BM_LivesOf10000Jobs(benchmark::State& state) {
  const model::Policy policy;
  for (auto _ : state) {
    Nodes nodes;
    for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(state.range(0)); ++id) {
      nodes.push_back(node(id).gpus(8).cpus(112));
    }
    WaitingQueue queue;
    CycleCache cache;
    for (std::uint64_t id = 1; id <= 10'000; ++id) {
      queue.put(waiting(id, gpus(1)), policy);
    }
    Books books({.cluster = cluster_of(nodes), .queue = std::move(queue)});
    std::vector<model::GpuRef> running;
    std::size_t ended = 0;
    while (ended < 10'000) {
      for (const Start& start : cache.plan(books, policy).starts) {
        const model::NodeAllocation& part = start.allocation.nodes[0];
        model::Node& node = nodes[part.node.value - 1];
        node.gpus[part.grants[0].gpu_index].state = model::GpuState::kInUse;
        node.cpus_used += part.cpus;
        node.memory_used += part.memory;
        books.put(node);
        books.rewrite([&](Books::Parts& parts) { parts.queue.erase(start.job); });
        running.push_back({part.node, part.grants[0].gpu_index});
      }
      const model::GpuRef gpu = running[running.size() / 2];
      running[running.size() / 2] = running.back();
      running.pop_back();
      model::Node& node = nodes[gpu.node.value - 1];
      for (const model::GpuState next : {model::GpuState::kCleaning, model::GpuState::kAvailable}) {
        node.gpus[gpu.index].state = next;
        if (next == model::GpuState::kAvailable) {
          node.cpus_used -= 14;
          node.memory_used -= base::kGiB * 64;
        }
        books.put(node);
        if (next != model::GpuState::kAvailable) {
          benchmark::DoNotOptimize(cache.plan(books, policy));
        }
      }
      ++ended;
    }
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(BM_LivesOf10000Jobs)
    ->ArgName("nodes")
    ->Arg(16)
    ->Arg(1'000)
    ->Unit(benchmark::kMillisecond);

// 100,000 jobs wait, nothing changed since the last cycle.
void BM_CycleWithoutChange(benchmark::State& state) {
  const model::Policy policy;
  WaitingQueue queue;
  for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(state.range(0)); ++id) {
    queue.put(waiting(id, gpus(9)), policy);
  }
  Books books(
      {.cluster = cluster_of(worn_nodes(Kind::kUniform, 12'500)), .queue = std::move(queue)});
  CycleCache cache;
  cache.plan(books, policy);
  for (auto _ : state) {
    const Plan plan = cache.plan(books, policy);
    if (!plan.unchanged) {
      state.SkipWithError("not answered from the cache");
      return;
    }
  }
}
BENCHMARK(BM_CycleWithoutChange)->ArgName("waiting")->Arg(1'000)->Arg(100'000);

// Every GPU is held by a job of its own, with an end of its own within a day.
struct FullCluster {
  explicit FullCluster(std::uint64_t count) {
    base::Prng random(1);
    RunningEnds running;
    for (std::uint64_t id = 1; id <= count; ++id) {
      nodes.push_back(node(id).gpus(8).cpus(112));
      for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
        const model::Allocation held{{{.node = model::NodeId(id),
                                       .grants = {{gpu, base::kWholeGpu, base::kGiB * 80}},
                                       .cpus = 14,
                                       .memory = base::kGiB * 64}}};
        const model::JobId job(id * 8 + gpu);
        occupy(nodes, held, job);
        const auto seconds = static_cast<std::int64_t>(random.below(24 * 3600));
        running.put({job, 1}, now + base::seconds(seconds), held);
      }
    }
    books = Books({.cluster = cluster_of(nodes), .running = std::move(running)});
  }
  void wait(WaitingQueue queue) {
    books.rewrite([&](Books::Parts& parts) { parts.queue = std::move(queue); });
  }
  static constexpr std::uint32_t kGpu = 3;
  // The job on one GPU of some node ends, or begins.
  void set_free(std::size_t index, bool is_free) {
    model::Node& one = nodes[index];
    model::Gpu& gpu = one.gpus[kGpu];
    const model::AttemptId attempt{model::JobId(one.id.value * 8 + kGpu), 1};
    const model::Allocation held{{{.node = one.id,
                                   .grants = {{kGpu, base::kWholeGpu, base::kGiB * 80}},
                                   .cpus = 14,
                                   .memory = base::kGiB * 64}}};
    if (is_free) {
      gpu.state = model::GpuState::kAvailable;
      gpu.holders.clear();
      one.cpus_used -= 14;
      one.memory_used -= base::kGiB * 64;
      books.rewrite([&](Books::Parts& parts) { parts.running.erase(attempt); });
    } else {
      occupy(nodes, held, attempt.job);
      books.rewrite(
          [&](Books::Parts& parts) { parts.running.put(attempt, now + base::hours(12), held); });
    }
    books.put(one);
  }

  base::Instant now = base::Instant() + base::hours(1000);
  Nodes nodes;
  Books books;
};

// Equal jobs wait for a GPU, one becomes free: time to the next start, undone after each.
void BM_NextDecisionAfterOneGpuIsFreed(benchmark::State& state) {
  const model::Policy policy;
  FullCluster full(12'500);
  WaitingQueue queue;
  for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(state.range(0)); ++id) {
    queue.put(waiting(1'000'000 + id, gpus(1)), policy);
  }
  full.wait(std::move(queue));
  CycleCache cache;
  base::Prng random(1);
  for (auto _ : state) {
    const std::size_t index = random.below(full.nodes.size());
    full.set_free(index, true);
    const Plan plan = cache.plan(full.books, policy, {.now = full.now});
    full.set_free(index, false);
    if (plan.starts.size() != 1) {
      state.SkipWithError("one job should start");
      return;
    }
  }
}
BENCHMARK(BM_NextDecisionAfterOneGpuIsFreed)->ArgName("waiting")->Arg(10'000)->Arg(100'000);

// Eight jobs want a whole node each, and LOW jobs on one GPU each hold everything: so many of those
// on each node may be stopped. With 7 of 8 no node can be emptied, and all searches are in vain.
void BM_PreemptionForEightWholeNodes(benchmark::State& state) {
  const model::Policy policy;
  FullCluster full(12'500);
  base::Prng random(3);
  VictimIndex victims;
  for (const auto& [key, allocation] : full.books->running.ends()) {
    const model::NodeAllocation& part = allocation.nodes.front();
    if (static_cast<std::int64_t>(part.grants.front().gpu_index) >= state.range(0)) continue;
    const auto age = static_cast<std::int64_t>(random.below(24 * 3600));
    victims.put(
        {key.attempt, model::PriorityClass::kLow, full.now + base::seconds(-age), allocation});
  }
  WaitingQueue queue;
  for (std::uint64_t id = 1; id <= 8; ++id) {
    queue.put(waiting(1'000'000 + id, gpus(8), 3), policy);
  }
  full.wait(std::move(queue));
  full.books.rewrite([&](Books::Parts& parts) { parts.victims = std::move(victims); });
  std::size_t fits = 0;
  for (auto _ : state) {
    fits = plan_cycle(full.books, policy, {.now = full.now}).preemptions.size();
  }
  state.counters["rooms"] = static_cast<double>(fits);
}
BENCHMARK(BM_PreemptionForEightWholeNodes)
    ->ArgName("victims_of_8")
    ->Arg(8)
    ->Arg(7)
    ->Arg(0)
    ->Unit(benchmark::kMillisecond);

// Prediction of the first so many of a queue, on a full cluster of 1,000 nodes whose 8,000 jobs all
// have a history.
void BM_PredictedStarts(benchmark::State& state) {
  model::Policy policy;
  FullCluster full(1'000);
  RunHistory history;
  model::JobSpec spec;
  spec.user = "ann";
  spec.name = "train";
  spec.time_limit = base::hours(1'000'000);
  for (int i = 1; i <= 32; ++i) history.add(spec, base::hours(1'000) + base::minutes(i));
  std::vector<RunningJob> running;
  for (const auto& [key, allocation] : full.books->running.ends()) {
    running.push_back({key.attempt, &spec, &allocation, full.now, key.end});
  }
  std::vector<WaitingJob> waiting;
  for (std::int64_t id = 1; id <= state.range(0); ++id) {
    spec.request = gpus(static_cast<std::uint32_t>(1 + id % 8));
    waiting.push_back({model::JobId(static_cast<std::uint64_t>(1'000'000 + id)),
                       std::make_shared<model::JobSpec>(spec), full.now + base::nanoseconds(id)});
  }
  full.wait(WaitingQueue(OrderBasis::of(policy)));
  full.books.rewrite([&](Books::Parts& parts) { parts.history = history; });
  const CycleOptions options{.now = full.now};
  std::size_t starts = 0;
  for (auto _ : state) {
    starts = predict_starts({full.books, policy, options, running, waiting}).starts.size();
  }
  state.counters["starts"] = static_cast<double>(starts);
}
BENCHMARK(BM_PredictedStarts)
    ->ArgName("waiting")
    ->Arg(8)
    ->Arg(1'000)
    ->Unit(benchmark::kMillisecond);
// All GPUs are a team's own and lent to others, one each; so many jobs of that team want one. A
// cycle makes room for kMaxReclaims of them and those with planned starts.
void BM_ReclaimOfSingleGpus(benchmark::State& state) {
  FullCluster full(12'500);
  const std::uint64_t gpus_of_all = 8 * full.nodes.size();
  model::Policy policy;
  const auto own = static_cast<std::uint32_t>(gpus_of_all);
  policy.organisation =
      model::Organisation{.teams = {{"owner", {}, 1, {}, {.guaranteed_gpus = own}}}};
  Pools lending(guarantees_of(*policy.organisation, {{"H100-80GB", gpus_of_all}}));
  VictimIndex victims;
  for (const auto& [key, allocation] : full.books->running.ends()) {
    lending.add({key.attempt, full.now, {{}, base::kWholeGpu, true}});
    Victim victim{key.attempt, model::PriorityClass::kCritical, full.now, allocation};
    victim.is_borrowed = true;
    victims.put(std::move(victim));
  }
  WaitingQueue queue;
  for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(state.range(0)); ++id) {
    WaitingJob job = waiting(1'000'000 + id, gpus(1));
    auto spec = std::make_shared<model::JobSpec>(*job.spec);
    spec->team = "owner";
    job.spec = std::move(spec);
    queue.put(std::move(job), policy);
  }
  full.wait(std::move(queue));
  full.books.rewrite([&](Books::Parts& parts) { parts.victims = std::move(victims); });
  full.books.follow_guarantees(std::move(lending));
  std::size_t fits = 0;
  for (auto _ : state) {
    fits = plan_cycle(full.books, policy, {.now = full.now}).preemptions.size();
  }
  state.counters["rooms"] = static_cast<double>(fits);
}
BENCHMARK(BM_ReclaimOfSingleGpus)
    ->ArgName("waiting")
    ->Arg(1)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

// An attempt of a holder with so many begins and ends.
void BM_LendingOfOneStart(benchmark::State& state) {
  const model::Organisation organisation{
      .teams = {{"owner", {}, 1, {}, {.guaranteed_gpus = 50'000}}}};
  Pools lending(guarantees_of(organisation, {{"H100-80GB", 100'000}}));
  const QuotaSubject owner{model::QuotaHolder::kTeam, "owner"};
  const auto held = [&](std::int64_t number) {
    return Lending::Held{{model::JobId(static_cast<std::uint64_t>(number)), 1},
                         base::Instant(number),
                         {owner, base::kWholeGpu, true}};
  };
  for (std::int64_t i = 1; i <= state.range(0); ++i) lending.add(held(i * 2));
  base::Prng random(1);
  for (auto _ : state) {
    const auto number =
        static_cast<std::int64_t>(1 + 2 * random.below(static_cast<std::uint64_t>(state.range(0))));
    benchmark::DoNotOptimize(lending.add(held(number)));
    benchmark::DoNotOptimize(lending.remove(held(number)));
  }
}
BENCHMARK(BM_LendingOfOneStart)->ArgName("attempts")->Arg(1'000)->Arg(100'000);

// Many jobs wait, hardly two of them with equal requests, and one GPU becomes free: the first jobs
// get planned starts, and all others are tried in the gap. The job at the head wants a whole node.
void BM_PlannedStartsAndBackfillPass(benchmark::State& state) {
  model::Policy policy;
  policy.backfill_depth = static_cast<std::uint32_t>(state.range(1));
  FullCluster full(12'500);
  base::Prng random(2);
  WaitingQueue queue;
  for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(state.range(0)); ++id) {
    model::JobSpec spec;
    spec.request = gpus(id == 1 ? 8 : static_cast<std::uint32_t>(2 + random.below(7)));
    spec.request.cpus = static_cast<std::uint32_t>(1 + random.below(112));
    spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + random.below(48 * 60)));
    queue.put({model::JobId(1'000'000 + id), std::make_shared<model::JobSpec>(spec),
               full.now + base::nanoseconds(static_cast<std::int64_t>(id))},
              policy);
  }
  full.wait(std::move(queue));
  std::size_t planned_starts = 0;
  for (auto _ : state) {
    full.set_free(77, true);
    const Plan plan = plan_cycle(full.books, policy, {.now = full.now});
    full.set_free(77, false);
    planned_starts = plan.planned_starts.size();
  }
  state.counters["reservations"] = static_cast<double>(planned_starts);
  state.counters["classes"] = static_cast<double>(full.books->queue.classes().size());
}
BENCHMARK(BM_PlannedStartsAndBackfillPass)
    ->ArgNames({"waiting", "depth"})
    ->Args({10'000, 1})
    ->Args({10'000, 8})
    ->Args({10'000, 100})
    ->Unit(benchmark::kMillisecond);

// The best subset out of the table after warm-up: every set of free GPUs of an 8-GPU board and
// every count, in an order that no branch predictor learns.
void BM_BestSubset(benchmark::State& state) {
  const SubsetTable table(layout_of(shape_of(v100x8(1))));
  std::vector<std::pair<GpuMask, std::uint32_t>> questions;
  for (GpuMask eligible = 1; eligible < 256; ++eligible) {
    const auto most = static_cast<std::uint32_t>(__builtin_popcountll(eligible));
    for (std::uint32_t count = 1; count <= most; ++count) questions.emplace_back(eligible, count);
  }
  base::Prng random(1);
  for (std::size_t i = questions.size(); i > 1; --i) {
    std::swap(questions[i - 1], questions[random.below(i)]);
  }
  for (const auto& [eligible, count] : questions) table.best(eligible, count);
  std::size_t next = 0;
  for (auto _ : state) {
    const auto& [eligible, count] = questions[next];
    benchmark::DoNotOptimize(table.best(eligible, count));
    next = next + 1 == questions.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_BestSubset);

// The same worked out, as on first use: half of the GPUs, across sockets, no NVLink.
void BM_BestSubsetOnFirstUse(benchmark::State& state) {
  const auto gpus = static_cast<std::uint32_t>(state.range(0));
  const SubsetChooser chooser(
      layout_of(shape_of(node(1).gpus(gpus, "X", base::kGiB, 1).sockets({}))));
  const GpuMask all = ~GpuMask{0} >> (kMaxGpusPerNode - gpus);
  for (auto _ : state) benchmark::DoNotOptimize(chooser.best(all, gpus / 2));
}
BENCHMARK(BM_BestSubsetOnFirstUse)
    ->ArgName("gpus")
    ->Arg(8)
    ->Arg(16)
    ->Arg(64)
    ->Unit(benchmark::kMicrosecond);

// Why one job waits, counted over every node.
void BM_CountShortages(benchmark::State& state) {
  const NodeList nodes{worn_nodes(Kind::kRagged, static_cast<std::uint64_t>(state.range(0)))};
  model::ResourceRequest request = gpus(8);
  request.gpu_types = {"H100"};
  for (auto _ : state) benchmark::DoNotOptimize(count_shortages(nodes, request));
}
BENCHMARK(BM_CountShortages)->ArgName("nodes")->Arg(12'500)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gpu_platform::scheduling
