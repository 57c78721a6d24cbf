#include "simulation/scenarios/values.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/letters.h"
#include "model/gpu_catalogue.h"
#include "model/job_spec.h"
#include "simulation/scenarios/job_options.h"

namespace gpu_platform::simulation {

namespace {

std::unexpected<base::Error> unknown_type(std::string_view name) {
  return base::invalid({}, fmt::format("'{}' is not a GPU type or family of the catalogue", name));
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
  if (const std::string* engine = option(statement, "engine")) {
    const auto kind = model::parse_engine_kind(*engine);
    if (!kind) return base::invalid({}, "engine: process or kubernetes");
    node.engine = *kind;
  }
  if (const std::string* capacity = option(statement, "capacity")) {
    const auto named = model::parse_capacity_class(*capacity);
    if (!named) return base::invalid({}, "capacity: on-demand, spot or reserved");
    node.capacity = *named;
  }
  TRY(set_share_modes(statement, node));
  TRY(set_count(statement, "others_cpus", 0, 100'000, node.others_cpus));
  TRY(set_size(statement, "others_memory", node.others_memory));
  if (!node.gpus.empty()) node.driver_version = "virtual";
  return node;
}

base::Result<model::JobSpec> spec_of(const Statement& statement) {
  model::JobSpec spec;
  spec.name = statement.arguments[0];
  spec.user = "ann";
  const std::string* const command = option(statement, "command");
  spec.command = {command == nullptr ? "work" : *command};
  TRY(read_spec(statement, spec));
  spec.uid = uid_of_user(spec.user);
  spec.gid = spec.uid;
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
  for (const std::string& name : parts_of(*states)) {
    const auto state = model::parse_job_state(base::to_upper(name));
    if (!state) return base::invalid({}, fmt::format("state: '{}' is not a state", name));
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
