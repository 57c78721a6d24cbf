#include "simulation/scenarios/values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::simulation {

namespace {

std::unexpected<base::Error> unknown_type(std::string_view name) {
  return base::invalid({}, fmt::format("'{}' is no GPU type or family of the catalogue", name));
}

base::Result<std::string> type_or_family(std::string_view name) {
  auto canonical = model::canonical_gpu_type(name);
  if (!canonical) return unknown_type(name);
  return *std::move(canonical);
}

// A family stands for its first type.
base::Result<model::GpuType> product_of(std::string_view name) {
  TRY_ASSIGN(const std::string wanted, type_or_family(name));
  for (const model::GpuType& type : model::gpu_catalogue()) {
    if (type.name == wanted || type.family == wanted) return type;
  }
  return unknown_type(name);
}

// "8", or "4xh100" with a model of its own.
base::Status add_gpus(std::string_view part, std::string_view model, model::NodeInfo& node) {
  const std::size_t times = part.find('x');
  if (times != std::string_view::npos) {
    model = part.substr(times + 1);
    part = part.substr(0, times);
  }
  const auto count = base::parse_count(part, 0, 64);
  if (!count) return base::invalid({}, fmt::format("gpus: {}", count.error().message));
  if (*count == 0) return {};
  TRY_ASSIGN(const model::GpuType product, product_of(model));
  for (std::uint64_t i = 0; i < *count; ++i) {
    model::GpuInfo gpu;
    gpu.minor = static_cast<std::uint32_t>(node.gpus.size());
    gpu.uuid = fmt::format("GPU-{}-{}", node.name, gpu.minor);
    gpu.model = product.name;
    gpu.type = product.name;
    gpu.memory = product.nominal_memory;
    node.gpus.push_back(std::move(gpu));
  }
  return {};
}

base::Result<model::Priority> priority_of(const std::string& text) {
  constexpr std::array<std::string_view, 4> kClasses = {"critical", "high", "medium", "low"};
  const auto* found = std::ranges::find(kClasses, text);
  if (found != kClasses.end()) {
    return model::priority_of_class(static_cast<model::PriorityClass>(found - kClasses.begin()));
  }
  const auto number = base::parse_count(text, 0, 9);
  if (!number) {
    return base::invalid(
        {}, fmt::format("priority: '{}' is not critical, high, medium, low or 0 to 9", text));
  }
  return model::priority_of_number(static_cast<std::uint8_t>(*number));
}

base::Result<model::NumaPolicy> numa_policy_of(std::string_view text) {
  if (text == "default") return model::NumaPolicy::kDefault;
  if (text == "allow_cross") return model::NumaPolicy::kAllowCross;
  if (text == "strict") return model::NumaPolicy::kStrict;
  return base::invalid({}, fmt::format("numa: '{}' is not default, allow_cross or strict", text));
}

base::Result<model::NetworkLevel> network_level_of(std::string_view text) {
  for (std::size_t i = 0; i < model::kNetworkLevels; ++i) {
    const auto level = static_cast<model::NetworkLevel>(i);
    if (text == to_string(level)) return level;
  }
  return base::invalid({}, fmt::format("within: '{}' is not anywhere, zone, rack or domain", text));
}

// Thousandths: "1000,500".
base::Status set_speeds(const Statement& statement, model::ResourceRequest& request) {
  const std::string* speeds = option(statement, "speeds");
  if (speeds == nullptr) return {};
  for (const std::string& speed : parts_of(*speeds)) {
    TRY_ASSIGN(const std::uint64_t value, base::parse_count(speed, 1, 1'000'000));
    request.gpu_speeds.push_back(static_cast<std::uint32_t>(value));
  }
  if (request.gpu_speeds.size() == request.gpu_types.size()) return {};
  return base::invalid({}, "speeds: one for each of types");
}

base::Status set_request(const Statement& statement, model::ResourceRequest& request) {
  TRY(set_count(statement, "gpus", 0, 1000, request.gpus));
  if (const std::string* types = option(statement, "types")) {
    for (const std::string& name : parts_of(*types)) {
      TRY_ASSIGN(std::string type, type_or_family(name));
      request.gpu_types.push_back(std::move(type));
    }
  }
  TRY(set_size(statement, "gpu_memory", request.gpu_memory));
  TRY(set_speeds(statement, request));
  TRY(set_count(statement, "nodes", 1, model::kMostGangNodes, request.nodes));
  TRY(set_bool(statement, "cross_node", request.cross_node));
  if (const std::string* within = option(statement, "within")) {
    TRY_ASSIGN(request.within, network_level_of(*within));
  }
  if (const std::string* numa = option(statement, "numa")) {
    TRY_ASSIGN(request.numa, numa_policy_of(*numa));
  }
  if (option(statement, "cpus") != nullptr) {
    TRY(set_count(statement, "cpus", 1, 100'000, request.cpus.emplace()));
  }
  if (option(statement, "memory") != nullptr) {
    TRY(set_size(statement, "memory", request.memory.emplace()));
  }
  return {};
}

}  // namespace

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

const std::string* option(const Statement& statement, std::string_view name) {
  const auto found = statement.options.find(name);
  return found == statement.options.end() ? nullptr : &found->second;
}

base::Status set_duration(const Statement& statement, std::string_view name,
                          base::Duration& value) {
  const std::string* text = option(statement, name);
  if (text == nullptr) return {};
  const auto read = base::parse_duration(*text);
  if (!read) return base::invalid({}, fmt::format("{}: {}", name, read.error().message));
  value = *read;
  return {};
}

base::Status set_size(const Statement& statement, std::string_view name, base::Bytes& value) {
  const std::string* text = option(statement, name);
  if (text == nullptr) return {};
  const auto read = base::parse_size(*text);
  if (!read) return base::invalid({}, fmt::format("{}: {}", name, read.error().message));
  value = *read;
  return {};
}

base::Status set_bool(const Statement& statement, std::string_view name, bool& value) {
  const std::string* text = option(statement, name);
  if (text == nullptr) return {};
  if (*text != "yes" && *text != "no") {
    return base::invalid({}, fmt::format("{}: '{}' is not yes or no", name, *text));
  }
  value = *text == "yes";
  return {};
}

base::Result<model::NodeInfo> node_of(const Statement& statement) {
  model::NodeInfo node;
  node.name = statement.arguments[0];
  node.emulated = true;
  node.boot_id = "boot-1";
  node.cpus = 64;
  node.memory = base::kGiB * 512;
  TRY(set_count(statement, "cpus", 1, 100'000, node.cpus));
  TRY(set_size(statement, "memory", node.memory));
  const std::string* gpus = option(statement, "gpus");
  const std::string* model = option(statement, "model");
  if (gpus != nullptr) {
    for (const std::string& part : parts_of(*gpus)) {
      TRY(add_gpus(part, model == nullptr ? "H100-80GB" : std::string_view(*model), node));
    }
  }
  TRY(set_topology(statement, node));
  if (const std::string* domain = option(statement, "domain")) node.network.domain = *domain;
  if (const std::string* rack = option(statement, "rack")) node.network.rack = *rack;
  if (const std::string* zone = option(statement, "zone")) node.network.zone = *zone;
  if (!node.gpus.empty()) node.driver_version = "virtual";
  return node;
}

base::Result<model::JobSpec> spec_of(const Statement& statement) {
  model::JobSpec spec;
  spec.name = statement.arguments[0];
  const std::string* user = option(statement, "user");
  spec.user = user == nullptr ? "ann" : *user;
  spec.uid = uid_of_user(spec.user);
  spec.gid = spec.uid;
  if (const std::string* team = option(statement, "team")) spec.team = *team;
  if (const std::string* project = option(statement, "project")) spec.project = *project;
  spec.command = {spec.name};
  TRY(set_request(statement, spec.request));
  TRY(set_duration(statement, "limit", spec.time_limit));
  TRY(set_count(statement, "retries", 0, 100, spec.retries));
  if (const std::string* priority = option(statement, "priority")) {
    TRY_ASSIGN(spec.priority, priority_of(*priority));
  }
  if (const std::string* id = option(statement, "request_id")) spec.request_id = *id;
  if (option(statement, "preemptible") != nullptr) {
    TRY(set_bool(statement, "preemptible", spec.preemptible.emplace()));
  }
  TRY(set_bool(statement, "complete_on_exit_zero", spec.complete_on_exit_zero));
  if (option(statement, "expected") != nullptr) {
    TRY(set_duration(statement, "expected", spec.expected_time.emplace()));
  }
  if (const std::string* array = option(statement, "array")) {
    TRY_ASSIGN(spec.array, model::parse_array(*array));
  }
  return spec;
}

base::Result<JobScript> script_of(const Statement& statement) {
  JobScript script;
  TRY(set_duration(statement, "runs", script.runs));
  TRY(set_count(statement, "exit", 0, 255, script.exit));
  TRY(set_duration(statement, "cleaning", script.cleaning));
  TRY(set_duration(statement, "starts_after", script.starts_after));
  TRY(set_bool(statement, "ignores_term", script.ignores_term));
  TRY(set_count(statement, "launch_failures", 0, 100, script.launch_failures));
  TRY(set_count(statement, "prolog_failures", 0, 100, script.prolog_failures));
  if (const std::string* node = option(statement, "prolog_fails_on")) {
    script.prolog_fails_on = *node;
  }
  TRY(set_bool(statement, "epilog_fails", script.epilog_fails));
  if (option(statement, "launch_exit") != nullptr) {
    TRY(set_count(statement, "launch_exit", 126, 127, script.launch_exit.emplace()));
  }
  return script;
}

base::Status change_policy(const Statement& statement, model::Policy& policy) {
  TRY(set_count(statement, "max_queue_size", 1, 1'000'000, policy.max_queue_size));
  TRY(set_count(statement, "max_queue_percent_per_user", 1, 100,
                policy.max_queue_percent_per_user));
  TRY(set_count(statement, "percent_for_root", 0, 90, policy.percent_for_root));
  TRY(set_duration(statement, "max_time_limit", policy.max_time_limit));
  TRY(set_count(statement, "max_loss_retries", 0, 100, policy.max_loss_retries));
  TRY(set_duration(statement, "retry_backoff", policy.retry_backoff));
  TRY(set_duration(statement, "max_retry_backoff", policy.max_retry_backoff));
  TRY(set_bool(statement, "allow_preemption", policy.allow_preemption));
  if (const std::string* below = option(statement, "preempt_below")) {
    TRY_ASSIGN(const model::Priority priority, priority_of(*below));
    policy.preempt_below = priority.priority_class;
  }
  TRY(set_count(statement, "max_preemptions", 0, 1000, policy.max_preemptions_per_job));
  TRY(set_duration(statement, "preempt_min_runtime", policy.preempt_min_runtime));
  TRY(set_duration(statement, "overdue_after", policy.overdue_after));
  TRY(set_bool(statement, "backfill_by_prediction", policy.backfill_by_prediction));
  TRY(set_bool(statement, "requeue_on_node_loss", policy.requeue_on_node_loss));
  TRY(set_bool(statement, "auto_retry_failed_jobs", policy.auto_retry_failed_jobs));
  TRY(set_count(statement, "max_array_size", 1, model::kMostArrayMembers, policy.max_array_size));
  TRY(set_bool(statement, "root_jobs", policy.allow_root_jobs));
  TRY(set_count(statement, "reservation_depth", 0, 100'000, policy.reservation_depth));
  TRY(set_duration(statement, "stop_grace", policy.stop_grace));
  TRY(set_duration(statement, "request_id_lifetime", policy.request_id_lifetime));
  TRY(change_order(statement, policy));
  if (const std::string* highest = option(statement, "highest_user_priority")) {
    TRY_ASSIGN(const model::Priority priority, priority_of(*highest));
    policy.highest_user_priority = priority.priority_class;
  }
  const std::string* points = option(statement, "points");
  if (points == nullptr) return {};
  const std::vector<std::string> parts = parts_of(*points);
  if (parts.size() != std::size(policy.priority_points)) {
    return base::invalid({}, "points: four numbers, of critical, high, medium and low");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TRY_ASSIGN(const std::uint64_t value, base::parse_count(parts[i], 0, 1'000'000'000));
    policy.priority_points[i] = static_cast<std::int64_t>(value);
  }
  return {};
}

base::Result<model::UpdateJob> update_of(const Statement& statement) {
  model::UpdateJob update;
  if (const std::string* priority = option(statement, "priority")) {
    TRY_ASSIGN(update.priority, priority_of(*priority));
  }
  if (option(statement, "limit") != nullptr) {
    TRY(set_duration(statement, "limit", update.time_limit.emplace()));
  }
  if (const std::string* name = option(statement, "name")) update.name = *name;
  if (option(statement, "preemptible") != nullptr) {
    TRY(set_bool(statement, "preemptible", update.preemptible.emplace()));
  }
  return update;
}

base::Result<model::ActOnJobs> bulk_of(const Statement& statement) {
  constexpr std::array<std::string_view, 5> kActions = {"cancel", "kill", "hold", "release",
                                                        "requeue"};
  const auto* action = std::ranges::find(kActions, statement.arguments[0]);
  if (action == kActions.end()) {
    return base::invalid({}, fmt::format("'{}' cannot be done with jobs", statement.arguments[0]));
  }
  model::ActOnJobs many;
  many.action = static_cast<model::JobAction>(action - kActions.begin());
  if (const std::string* user = option(statement, "user")) many.which.user = *user;
  if (const std::string* name = option(statement, "name")) many.which.name = *name;
  TRY(set_bool(statement, "dry", many.dry_run));
  const std::string* states = option(statement, "state");
  if (states == nullptr) return many;
  for (std::string& name : parts_of(*states)) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    const auto state = model::parse_job_state(name);
    if (!state) return base::invalid({}, fmt::format("state: '{}' is no state", name));
    many.which.states.push_back(*state);
  }
  return many;
}

base::Result<model::Exit> exit_of(const Statement& statement) {
  model::Exit exit;
  if (option(statement, "signal") != nullptr) {
    TRY(set_count(statement, "signal", 1, 64, exit.signal.emplace()));
  } else {
    TRY(set_count(statement, "exit", 0, 255, exit.code.emplace(std::uint8_t{0})));
  }
  return exit;
}

std::uint32_t uid_of_user(std::string_view user) {
  if (user == "root") return 0;
  return 1000 + static_cast<std::uint32_t>(base::hash64(user) % 50'000);
}

}  // namespace gpu_platform::simulation
