#include "simulation/faults/setup.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/gpu_catalogue.h"
#include "model/job_spec.h"

namespace gpu_platform::simulation {

namespace {

using base::Prng;

struct Product {
  std::string_view type;
  std::string_view family;
  std::int64_t gib;
};
constexpr Product kProducts[] = {{"H100-80GB", "H100", 80},
                                 {"A100-80GB", "A100", 80},
                                 {"A100-40GB", "A100", 40},
                                 {"T4-16GB", "T4", 16}};

constexpr std::array<std::string_view, 3> kUsers = {"ann", "bob", "cyd"};

base::Duration seconds_below(Prng& random, std::uint64_t limit) {
  return base::milliseconds(static_cast<std::int64_t>(random.below(limit * 1000)));
}

constexpr std::array<std::string_view, 2> kTeams = {"vision", "speech"};
constexpr std::array<std::string_view, 2> kProjects = {"", "demo"};

model::Quota draw_quota(Prng& random) {
  const auto sometimes = [&](std::uint64_t most) -> std::optional<std::uint32_t> {
    if (!random.chance(1, 3)) return std::nullopt;
    return static_cast<std::uint32_t>(random.below(most));
  };
  model::Quota quota;
  quota.max_gpus = sometimes(16);
  quota.max_running_jobs = sometimes(6);
  quota.max_queued_jobs = sometimes(20);
  quota.gpu_hours = sometimes(10);
  if (random.chance(1, 3)) {
    quota.gpu_types = {{"A100", sometimes(8)}, {"H100", sometimes(8)}};
    for (model::TypeQuota& of_type : quota.gpu_types) of_type.gpu_hours = sometimes(6);
  }
  return quota;
}

// One pool for each of these types, where it has guarantees of its own.
using PoolTypes = std::vector<std::string_view>;

void draw_guarantees_by_type(Prng& random, const PoolTypes& types, model::Quota& quota) {
  for (const std::string_view type : types) {
    if (random.chance(1, 3)) continue;
    const auto known = std::ranges::find(quota.gpu_types, type, &model::TypeQuota::type);
    model::TypeQuota& of_type =
        known != quota.gpu_types.end()
            ? *known
            : quota.gpu_types.emplace_back(model::TypeQuota{std::string(type), {}});
    of_type.guaranteed_gpus = static_cast<std::uint32_t>(random.below(8));
    if (random.chance(1, 4)) of_type.borrow_limit = static_cast<std::uint32_t>(random.below(4));
    if (random.chance(1, 4)) of_type.lend_limit = static_cast<std::uint32_t>(random.below(4));
  }
  std::ranges::sort(quota.gpu_types, {}, &model::TypeQuota::type);
}

// Also more than max_gpus, and more than there are: the core does not rely on config/ for that.
void draw_guarantee(Prng& random, const PoolTypes& types, model::Quota& quota) {
  draw_guarantees_by_type(random, types, quota);
  if (random.chance(1, 3)) return;
  quota.guaranteed_gpus = static_cast<std::uint32_t>(random.below(12));
  if (random.chance(1, 3)) quota.borrow_limit = static_cast<std::uint32_t>(random.below(8));
  if (random.chance(1, 3)) quota.lend_limit = static_cast<std::uint32_t>(random.below(8));
  if (random.chance(1, 3)) quota.over_quota_weight = static_cast<std::uint32_t>(random.below(4));
}

model::Organisation draw_organisation(Prng& random) {
  model::Organisation organisation;
  if (random.chance(1, 4)) return organisation;
  if (random.chance(4, 5)) {
    model::Team above{"lab", {}, 1, {}, draw_quota(random)};
    model::Team vision{"vision", "lab", 2, {{"ann", 1}, {"bob", 3}}, draw_quota(random)};
    model::Team speech{"speech", random.chance(1, 2) ? "lab" : "", 1, {{"bob", 1}}, {}};
    organisation.teams = {std::move(above), std::move(vision), std::move(speech)};
  }
  if (random.chance(1, 2)) organisation.of_each_user = draw_quota(random);
  if (random.chance(1, 4)) organisation.of_users = {{"ann", draw_quota(random)}};
  if (random.chance(1, 4)) organisation.of_projects = {{"demo", draw_quota(random)}};
  organisation.period = static_cast<model::QuotaPeriod>(random.below(model::kQuotaPeriods));
  if (random.chance(4, 5)) {
    PoolTypes types;
    if (random.chance(1, 3)) types.emplace_back(random.chance(1, 2) ? "A100" : "A100-40GB");
    if (random.chance(1, 3)) types.emplace_back("H100");
    for (model::Team& team : organisation.teams) draw_guarantee(random, types, team.quota);
    for (model::NamedQuota& user : organisation.of_users) {
      draw_guarantee(random, types, user.quota);
    }
    if (random.chance(1, 3)) {
      organisation.allocation =
          static_cast<model::AllocationMode>(random.below(model::kAllocationModes));
    }
    organisation.reserved_thousandths = static_cast<std::uint32_t>(random.below(1001));
  }
  return organisation;
}

// Draws the order of the queue.
void draw_order(Prng& random, model::Policy& policy) {
  policy.order = static_cast<model::QueueOrder>(random.below(model::kQueueOrders));
  policy.fair_share.half_life = base::minutes(static_cast<std::int64_t>(1 + random.below(60)));
  policy.fair_share.interval = base::seconds(static_cast<std::int64_t>(1 + random.below(300)));
  if (random.chance(1, 2)) policy.fair_share.gpu_weights = {{"H100", 2500}, {"T4-16GB", 200}};
  const auto weight = [&] { return static_cast<std::uint32_t>(random.below(3) * 1000); };
  policy.weights = {weight(), weight(), weight(), 1 + weight()};
}

model::NodeInfo draw_node(Prng& random, std::size_t number) {
  model::NodeInfo node;
  node.name = fmt::format("n{}", number);
  node.emulated = true;
  node.boot_id = node.name + ".0";
  node.cpus = static_cast<std::uint32_t>(1 + random.below(32));
  node.memory = base::kGiB * static_cast<std::int64_t>(4 + random.below(60));
  if (random.chance(2, 3)) {
    node.network = {.domain = fmt::format("d{}", random.below(4)),
                    .rack = fmt::format("r{}", random.below(2)),
                    .zone = "z"};
  }
  if (random.chance(1, 3)) {
    node.capacity = static_cast<model::CapacityClass>(random.below(model::kCapacityClasses));
  }
  node.share_modes = {model::ShareMode::kTimeSlice, model::ShareMode::kMps};
  node.watches_gpu_memory = true;
  if (random.chance(1, 5)) return node;  // CPUs alone
  node.driver_version = "1";
  const std::uint64_t gpus = 1 + random.below(8);
  const bool is_mixed = random.chance(1, 4);
  const Product* product = &kProducts[random.below(std::size(kProducts))];
  for (std::uint64_t i = 0; i < gpus; ++i) {
    if (is_mixed && i > 0 && random.chance(1, 2)) {
      product = &kProducts[random.below(std::size(kProducts))];
    }
    model::GpuInfo gpu;
    gpu.uuid = fmt::format("{}-{}", node.name, i);
    gpu.model = product->type;
    gpu.type = product->type;
    gpu.memory = base::kGiB * product->gib;
    gpu.minor = static_cast<std::uint32_t>(i);
    gpu.numa_node = static_cast<std::int32_t>(i / 4);
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

Weights draw_weights(Prng& random) {
  const auto sometimes = [&](std::uint64_t weight) { return random.chance(1, 2) ? weight : 0; };
  Weights weights;
  weights.crash = sometimes(4 + random.below(16));
  weights.node = sometimes(2 + random.below(8));
  weights.clock = sometimes(4);
  weights.disk = sometimes(4);
  weights.snapshot = sometimes(4);
  weights.supervisor = sometimes(3);
  weights.operators = sometimes(6);
  weights.unmanaged_processes = sometimes(3);
  weights.change = sometimes(12);
  weights.crossing = sometimes(8);
  return weights;
}

MessageFaults draw_message_faults(Prng& random) {
  const auto sometimes = [&] { return random.chance(1, 2) ? random.below(300) : 0; };
  MessageFaults faults;
  faults.lost = sometimes();
  faults.late = sometimes();
  faults.repeated = sometimes();
  return faults;
}

void draw_gpus(Prng& random, const model::NodeInfo& node, model::ResourceRequest& request) {
  if (node.gpus.empty()) return;
  request.gpus = static_cast<std::uint32_t>(1 + random.below(node.gpus.size()));
  if (random.chance(1, 4)) request.gpus = static_cast<std::uint32_t>(node.gpus.size());
  const model::GpuInfo& gpu = node.gpus[random.below(node.gpus.size())];
  if (random.chance(1, 3)) {
    const auto* product = std::ranges::find(kProducts, gpu.type, &Product::type);
    request.gpu_types.emplace_back(random.chance(1, 2) ? product->family : product->type);
    if (random.chance(1, 3)) request.gpu_types.emplace_back("T4-16GB");
  }
  if (random.chance(1, 4)) request.gpu_memory = gpu.memory;
}

// What is drawn beside the world's own draws, which stay as they are.
enum class Aside : std::uint64_t {
  kParts = 0x7061'7274'7300'0000,
  kChecks = 0x6368'6563'6b73'0000,
  kLoads = 0x6c6f'6164'7300'0000,
};

Prng aside(const Prng& random, Aside what) {
  return Prng(Prng(random).next() ^ static_cast<std::uint64_t>(what));
}

// Whatever the rules are, a part has a GPU once all other jobs have ended.
model::Sharing draw_sharing(Prng random) {
  model::Sharing sharing;
  sharing.is_on = true;
  sharing.between_users = static_cast<model::SharedBetween>(random.below(model::kSharedBetween));
  sharing.max_jobs = static_cast<std::uint32_t>(1 + random.below(6));
  if (random.chance(1, 2)) std::ranges::reverse(sharing.modes);
  return sharing;
}

// Makes small requests ones for a part of a GPU.
void make_part(Prng random, model::ResourceRequest& request) {
  if (request.gpus == 0 || request.gpus > 2 || model::is_gang(request)) return;
  if (random.chance(1, 3)) return;
  request.gpus = 1;
  request.share_per_gpu = base::GpuShare(static_cast<std::int64_t>(1 + random.below(7)) * 875);
  if (random.chance(1, 3)) {
    request.share_mode = static_cast<model::ShareMode>(1 + random.below(model::kShareModes - 1));
  }
  request.gpu_memory = random.chance(1, 3) ? base::kGiB : base::Bytes();
}

std::vector<model::NodeId> draw_nodes(Prng& random, const Setup& setup) {
  std::vector<model::NodeId> nodes;
  for (std::uint64_t id = 1; id <= setup.nodes.size(); ++id) {
    if (random.chance(1, 2)) nodes.emplace_back(id);
  }
  return nodes;
}

// Small parts, so that several nodes have room for one.
void make_gang(Prng& random, const Setup& setup, model::ResourceRequest& request) {
  if (request.gpus > 1 && random.chance(1, 3)) {
    request.cross_node = true;
    request.gpus += static_cast<std::uint32_t>(random.below(8));
  } else {
    request.gpus =
        std::min<std::uint32_t>(request.gpus, static_cast<std::uint32_t>(random.below(3)));
    request.nodes = static_cast<std::uint32_t>(1 + random.below(setup.nodes.size()));
  }
  if (request.gpus == 0) {
    request.gpu_types.clear();
    request.gpu_memory = {};
  }
  if (random.chance(1, 2)) request.cpus = 1;
  if (random.chance(1, 2)) request.memory = base::kGiB;
  if (random.chance(1, 3)) {
    request.within = static_cast<model::NetworkLevel>(random.below(model::kNetworkLevels));
  }
}

model::ResourceRequest draw_request(Prng& random, const Setup& setup) {
  model::ResourceRequest request;
  const model::NodeInfo& node = setup.nodes[random.below(setup.nodes.size())];
  if (random.chance(4, 5)) draw_gpus(random, node, request);
  if (random.chance(1, 2)) {
    request.cpus = static_cast<std::uint32_t>(1 + random.below(node.cpus));
  }
  if (random.chance(1, 2)) {
    request.memory =
        base::kGiB * static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(
                                                       node.memory.value() / base::kGiB.value())));
  }
  if (random.chance(1, 30)) request.gpus = 9;  // more than any node has
  if (random.chance(1, 4)) make_gang(random, setup, request);
  if (random.chance(1, 8)) request.nodelist = draw_nodes(random, setup);
  if (random.chance(1, 8)) request.exclude = draw_nodes(random, setup);
  if (random.chance(1, 8)) {
    request.capacity = static_cast<model::CapacityRequest>(random.below(model::kCapacityRequests));
  }
  for (std::size_t i = 0; i < request.gpu_types.size() && random.chance(1, 2); ++i) {
    request.gpu_speeds.assign(request.gpu_types.size(), model::kFullSpeed);
    if (i > 0) request.gpu_speeds[i] = static_cast<std::uint32_t>(500 + random.below(1500));
  }
  make_part(aside(random, Aside::kParts), request);
  return request;
}

// Only jobs with GPUs may ask for it. No cluster checks GPUs, so jobs that a cluster could run do
// not ask.
model::Preflight draw_preflight(Prng random, const Setup& setup,
                                const model::ResourceRequest& request) {
  if (request.gpus == 0 || has_cluster(setup) || !random.chance(1, 4)) {
    return model::Preflight::kNone;
  }
  return random.chance(2, 3) ? model::Preflight::kQuick : model::Preflight::kDeep;
}

// Some of the nodes, so that there are two engines, or all.
void put_into_cluster(Prng& random, Setup& setup) {
  const bool is_all = random.chance(1, 4);
  for (model::NodeInfo& node : setup.nodes) {
    if (is_all || random.chance(1, 2)) node.engine = model::EngineKind::kKubernetes;
  }
  setup.weights.cluster = random.below(10);
  setup.has_pods = random.chance(1, 2);
  for (std::uint64_t* each : {&setup.pods.call_lost, &setup.pods.answer_lost, &setup.pods.refused,
                              &setup.pods.repeated, &setup.pods.reordered, &setup.pods.expired}) {
    if (random.chance(1, 2)) *each = random.below(150);
  }
}

}  // namespace

std::uint32_t uid_of(std::string_view user) {
  if (user == "root") return 0;
  const auto* found = std::ranges::find(kUsers, user);
  return 1001 + static_cast<std::uint32_t>(found - kUsers.begin());
}

model::Policy draw_policy(Prng& random) {
  model::Policy policy;
  if (random.chance(1, 4)) std::swap(policy.priority_points[1], policy.priority_points[3]);
  policy.max_queue_size = random.chance(1, 4) ? 1 + random.below(8) : 1000;
  policy.highest_user_priority = model::PriorityClass::kCritical;
  policy.max_time_limit = base::minutes(15);
  policy.max_loss_retries = static_cast<std::uint32_t>(random.below(4));
  policy.retry_backoff = seconds_below(random, 30);
  policy.max_retry_backoff = policy.retry_backoff + seconds_below(random, 300);
  policy.requeue_on_node_loss = !random.chance(1, 4);
  policy.auto_retry_failed_jobs = random.chance(1, 4);
  policy.stop_grace = seconds_below(random, 60);
  policy.allow_preemption = !random.chance(1, 4);
  policy.preempt_below = static_cast<model::PriorityClass>(random.below(4));
  policy.max_preemptions_per_job = static_cast<std::uint32_t>(random.below(4));
  policy.preempt_min_runtime = seconds_below(random, random.chance(1, 2) ? 10 : 120);
  policy.reclaim_min_runtime = random.chance(1, 2) ? base::Duration() : seconds_below(random, 60);
  policy.max_reclaims_per_job = static_cast<std::uint32_t>(random.below(4));
  if (random.chance(1, 8)) policy.overdue_after = seconds_below(random, 120);
  // Longer than any world lives: a request id is expected to hold for the whole run.
  policy.request_id_lifetime = base::hours(24 * 365 * 10);
  policy.organisation = draw_organisation(random);
  draw_order(random, policy);
  policy.set_engine(model::EngineKind::kKubernetes, true);
  policy.has_containers = random.chance(1, 2);
  // Without a draw: the other draws of the worlds stay as they are.
  policy.health_reset =
      static_cast<model::HealthReset>(policy.max_loss_retries % model::kHealthResets);
  policy.health_max_out_percent = policy.requeue_on_node_loss ? 10 : 60;
  if (policy.max_preemptions_per_job == 3) policy.health_mode = model::HealthMode::kShadow;
  policy.sharing = draw_sharing(aside(random, Aside::kParts));
  // Seldom: each check of each GPU is some events.
  if (aside(random, Aside::kChecks).chance(1, 8)) {
    policy.health_check_at_start = model::HealthCheckAtStart::kQuick;
  }
  policy.load_rules.is_on = aside(random, Aside::kLoads).chance(1, 4);
  return policy;
}

Setup draw_setup(Prng& random) {
  Setup setup;
  const std::uint64_t nodes = 1 + std::min(random.below(6), random.below(6));
  for (std::uint64_t i = 1; i <= nodes; ++i) setup.nodes.push_back(draw_node(random, i));
  setup.policy = draw_policy(random);
  setup.controller.events_per_snapshot = 5 + random.below(100);
  setup.controller.reconcile_interval =
      base::seconds(static_cast<std::int64_t>(10 + random.below(random.chance(1, 2) ? 50 : 600)));
  setup.weights = draw_weights(random);
  setup.orders = draw_message_faults(random);
  setup.news = draw_message_faults(random);
  setup.launch_failures = random.chance(1, 2) ? random.below(200) : 0;
  setup.actions = 20 + random.below(40);
  setup.mean_gap = seconds_below(random, random.chance(1, 2) ? 5 : 60) + base::milliseconds(1);
  setup.hook_failures = random.chance(1, 3) ? random.below(400) : 0;
  if (random.chance(1, 2)) put_into_cluster(random, setup);
  return setup;
}

bool has_cluster(const Setup& setup) {
  return std::ranges::any_of(setup.nodes, [](const model::NodeInfo& node) {
    return !model::traits_of(node.engine).is_on_this_machine;
  });
}

model::JobSpec draw_submission(Prng& random, const Setup& setup, std::string name) {
  model::JobSpec spec;
  spec.user = kUsers[random.below(kUsers.size())];
  spec.uid = uid_of(spec.user);
  spec.gid = spec.uid;
  spec.priority = model::priority_of_number(static_cast<std::uint8_t>(random.below(10)));
  spec.command = {"true"};
  spec.request = draw_request(random, setup);
  spec.preflight = draw_preflight(aside(random, Aside::kChecks), setup, spec.request);
  if (random.chance(2, 3)) {
    spec.time_limit = base::seconds(static_cast<std::int64_t>(1 + random.below(600)));
  }
  spec.retries = static_cast<std::uint32_t>(random.chance(1, 2) ? random.below(4) : 0);
  if (random.chance(2, 3)) spec.request_id = "r-" + name;
  if (random.chance(1, 3)) spec.team = kTeams[random.below(kTeams.size())];
  spec.project = kProjects[random.below(kProjects.size())];
  if (random.chance(1, 2)) spec.preemptible = random.chance(3, 4);
  spec.complete_on_exit_zero = random.chance(1, 4);
  if (random.chance(3, 4) && spec.time_limit != base::Duration()) {
    spec.expected_time = base::Duration(spec.time_limit.value() / 8);
  }
  if (random.chance(1, 8)) {
    const auto last = static_cast<std::uint32_t>(random.below(6));
    const auto limit = static_cast<std::uint32_t>(random.below(3));
    spec.array = model::ArraySpec{{{0, last, 1}}, limit};
  }
  if (has_cluster(setup) && random.chance(2, 3)) spec.image = "registry.example.org/lab/train:1";
  spec.name = std::move(name);
  return spec;
}

execution::VirtualRun draw_run(std::uint64_t seed, std::string_view job_name, std::uint32_t attempt,
                               base::Duration time_limit) {
  Prng random(base::hash64(job_name, seed * 64 + attempt));
  execution::VirtualRun run;
  if (random.chance(1, 2)) run.start_delay = seconds_below(random, 3);
  const std::uint64_t limit_s = static_cast<std::uint64_t>(time_limit.value()) / 1'000'000'000;
  if (random.chance(1, 10)) {
    run.duration = time_limit + base::hours(1);  // meets its time limit
  } else {
    run.duration = seconds_below(random, std::min<std::uint64_t>(limit_s + 1, 300));
  }
  const std::uint64_t kind = random.below(20);
  if (kind < 4) {
    run.exit.code = static_cast<std::uint8_t>(1 + random.below(255));
  } else if (kind == 4) {
    run.exit = {.code = {}, .signal = std::uint8_t{11}, .lost = model::Lost::kNo};
  } else if (kind == 5) {
    run.exit = {.code = {}, .signal = std::uint8_t{9}, .lost = model::Lost::kNo};
    run.reason = model::EndReason::kOutOfMemory;
  } else if (kind == 6) {
    run.exit.code = random.chance(1, 2) ? 127 : 126;
    run.launch_error = "no such program";
  } else if (kind == 7) {
    run.exit = {.code = {}, .signal = std::uint8_t{15}, .lost = model::Lost::kNo};
    run.reason = model::EndReason::kIdleTimeout;
  }
  run.ignores_term = random.chance(1, 5);
  if (random.chance(1, 2)) run.term_delay = seconds_below(random, 20);
  if (random.chance(1, 2)) run.cleaning_delay = seconds_below(random, 10);
  run.usage.cpu_time = run.duration;
  return run;
}

}  // namespace gpu_platform::simulation
