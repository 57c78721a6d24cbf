#include "bin/host_part.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "bin/emulated_boards.h"
#include "bin/isolation_report.h"
#include "bin/mps_control.h"
#include "bin/nodes_wait.h"
#include "bin/process_options.h"
#include "bin/site_files.h"
#include "hardware/dcgm/dcgm_functions.h"
#include "health/rule_table.h"
#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

void tell_isolation(const execution::NodePart& node) {
  const IsolationReport report = isolation_report(node);
  spdlog::info("{}", report.held);
  for (const std::string& line : report.advisory) spdlog::warn("{}", line);
}

monitoring::HealthLimits heat_limits_of(const config::Configuration& configuration) {
  const config::HeatLimit& heat = configuration.max_temperature_c;
  monitoring::HealthLimits limits;
  limits.heat_c = static_cast<std::int32_t>(heat.max_c);
  limits.memory_heat_c = static_cast<std::int32_t>(configuration.max_memory_temperature_c);
  if (heat.below_slowdown_c) {
    limits.below_slowdown_c = static_cast<std::int32_t>(*heat.below_slowdown_c);
  }
  return limits;
}

bool is_monitored(const model::JobSpec& spec) {
  return spec.monitor;
}

hardware::DcgmSource dcgm_source(const config::Configuration& configuration) {
  if (configuration.dcgm == config::Dcgm::kOff) return {};
  const std::string& address = configuration.dcgm_address.text;
  return {hardware::dcgm_libraries(), address == "none" ? "" : address};
}

// Returns whether the fault is the program's, by the table that is shipped.
bool is_of_programs(std::uint32_t xid) {
  const auto rows = health::xid_rows();
  const auto row = std::ranges::find(rows, xid, &health::Rule::code);
  return row != rows.end() && row->fault == health::FaultClass::kApplication;
}

}  // namespace

base::Result<std::unique_ptr<HostPart>> HostPart::open(Options options,
                                                       const config::Configuration& configuration,
                                                       CorePart& core, logging::Log& log) {
  std::unique_ptr<HostPart> host(new HostPart(std::move(options), core, log));
  TRY(host->find_targets(configuration));
  TRY(host->open_engine(configuration));
  return host;
}

HostPart::HostPart(Options options, CorePart& core, logging::Log& log)
    : options_(std::move(options)), core_(core), log_(log) {}

HostPart::~HostPart() {
  stop();
}

// The emulated boards, which are made, or this host.
base::Status HostPart::find_targets(const config::Configuration& configuration) {
  if (!configuration.local_engine) return {};
  if (options_.emulate.empty()) {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    targets_.push_back({.node_name = name, .dcgm = dcgm_source(configuration)});
    return {};
  }
  TRY_ASSIGN(const std::vector<EmulatedNode> nodes, parse_emulate(options_.emulate));
  for (const EmulatedNode& node : nodes) {
    const std::string dir = fmt::format("{}/emulated/{}", core_.data_dir(), node.name);
    TRY(create_board(node, dir, options_.programs.emulator));
    targets_.push_back(node::emulated_target(node.name, dir, options_.programs.emulated_nvml));
  }
  return {};
}

base::Status HostPart::open_engine(const config::Configuration& configuration) {
  const bool has_boards = !options_.emulate.empty();
  const char* const path = getenv("PATH");
  mps_control_ = find_mps_control(
      configuration.mps_control,
      mps_control_folders(options_.programs, has_boards, path == nullptr ? "" : path));
  TRY_ASSIGN(execution::ProcessEngineOptions engine,
             process_options(configuration, {core_.data_dir(), options_.launcher, options_.programs,
                                             has_boards, mps_control_}));
  engine.users = options_.users;
  engine.time_slice = configuration.policy.sharing.slice;
  engine.hold_probe = [this](const std::string& node, bool is_held) { hold_probe(node, is_held); };
  engine.tell_mps_loss = [this](const std::string& gpu, std::uint32_t uid) {
    const std::lock_guard lock(probes_guard_);
    if (faults_to_tell_ != nullptr) faults_to_tell_->take_server_loss(gpu, uid);
  };
  if (has_boards) {
    registrar_ = std::make_unique<BoardRegistrar>(options_.programs.gpu_register,
                                                  core_.data_dir() + "/emulated");
    engine.enter_on_board = [registrar = registrar_.get()](
                                const std::string& node, const std::vector<std::string>& uuids,
                                std::uint32_t pid) { registrar->enter(node, uuids, pid); };
  }
  TRY_ASSIGN(engine_, execution::ProcessEngine::open(engine, core_.environments(), observations_));
  users_files_.connect(*engine_);
  if (!configuration.local_engine) return {};
  tell_isolation(engine_->node_part());
  if (geteuid() == 0 && configuration.root_jobs == config::RootJobs::kAllow) {
    spdlog::warn(
        "running as root: jobs of root are allowed and run as root "
        "(execution.root_jobs: refuse forbids them)");
  }
  return {};
}

// A daemon that is new may have a reset to order before it has probes.
void HostPart::hold_probe(const std::string& node, bool is_held) {
  const std::lock_guard lock(probes_guard_);
  if (is_held) {
    held_nodes_.insert(node);
  } else {
    held_nodes_.erase(node);
  }
  node::ProbeRunner* const runner = probes_to_ask_;
  if (runner == nullptr) return;
  is_held ? runner->hold(node) : runner->let_go_on(node);
}

void HostPart::add_engine(EngineTable& engines) {
  engines[model::EngineKind::kProcess] = {engine_.get(), engine_.get()};
}

monitoring::AttemptGate::ReadNow HostPart::ask_probes() {
  return [this](const std::string& node, const node::ReadNow& wanted) {
    if (node::ProbeRunner* const runner = probes_to_ask_) runner->read_now(node, wanted);
  };
}

void HostPart::connect() {
  memory_ = std::make_unique<monitoring::MemoryWatchdog>(
      observations_, [this] { return core_.snapshot(); }, ask_probes(),
      [this](const monitoring::MemoryWatch::Excess& excess) {
        engine_->warn_of_memory(excess.attempt, excess.used, excess.part);
      },
      [this](const std::string& uuid) { engine_->give_turn_on(uuid); });
  mps_faults_ = std::make_unique<monitoring::MpsFaultObserver>(
      [this] { return core_.snapshot(); },
      [this](const std::string& uuid, std::uint32_t pid) { return monitor_->owner_of(uuid, pid); },
      is_of_programs);
  {
    const std::lock_guard lock(probes_guard_);
    faults_to_tell_ = mps_faults_.get();
  }
  gate_ = std::make_unique<monitoring::AttemptGate>(
      core_.loop(), [this] { return core_.snapshot(); }, ask_probes(),
      [](const std::string& text) { spdlog::error("release alert=\"{}\"", text); });
  gate_->complete_ends_with([this](execution::Ended& ended) {
    memory_->complete(ended);
    mps_faults_->complete(ended);
  });
  gate_->tell_failures_to(
      [this](const execution::Ended& ended) { mps_faults_->take_failure(ended); });
  observations_.connect(*gate_);
  if (frames_ == nullptr) return;
  begins_ = std::make_unique<monitoring::BeginReader>(ask_probes(), is_monitored);
  core_.add_listener(*begins_);
}

base::Status HostPart::start(const config::Configuration& configuration) {
  monitor_ = std::make_unique<monitoring::GpuMonitor>(
      observations_, [this] { return core_.snapshot(); }, engine_->node_part().detail,
      *options_.users);
  TRY_ASSIGN(config::NetworkPlaces places, read_network_places(configuration));
  health_ = std::make_unique<monitoring::HealthObserver>(
      observations_, [this] { return core_.snapshot(); }, heat_limits_of(configuration),
      monitoring::HealthObserver::Clock(),
      [this](const std::string& uuid, std::uint32_t pid) { return monitor_->owner_of(uuid, pid); });
  const execution::NodePart part = engine_->node_part();
  const bool holds_jobs = part.has_cgroups && part.can_switch_user;
  const bool serves_mps = holds_jobs && !configuration.mps_control.is_off && !mps_control_.empty();
  nodes_ = std::make_unique<monitoring::NodeObserver>(
      observations_, *monitor_, *health_, *mps_faults_, *memory_, *gate_, log_,
      monitoring::NodeObserver::Site{std::move(places), configuration.local_capacity, holds_jobs,
                                     serves_mps});
  watchdog_ = std::make_unique<monitoring::JobWatchdog>(
      *nodes_, observations_, [this] { return core_.snapshot(); }, *monitor_,
      [this](model::AttemptId id) { return monitoring::output_mark_of(engine_->output_of(id)); });
  node::ProbeListener& first = open_telemetry(*watchdog_, configuration.monitoring_interval);
  power_ = std::make_unique<PowerPolicy>(
      PowerPolicy::Options{configuration.power_limits, core_.data_dir() + "/power-limits",
                           [this](const std::string& node, const node::RunDriver& request) {
                             return engine_->ask_driver(node, request);
                           },
                           [this](const std::string& uuid, base::Milliwatts limit) {
                             monitor_->take_power_limit(uuid, limit);
                           }},
      first);
  node::ProbeRunnerOptions options;
  options.executable = options_.programs.probe;
  options.interval = configuration.monitoring_interval;
  options.data_folder = core_.data_dir();
  TRY_ASSIGN(probes_, node::ProbeRunner::start(std::move(options), *power_));
  readings_ = std::make_unique<MonitoredReadings>(*monitor_, *probes_);
  for (node::ProbeTarget& target : targets_) {
    names_.insert(target.node_name);
    probes_->watch(std::move(target));
  }
  targets_.clear();
  const std::lock_guard lock(probes_guard_);
  probes_to_ask_ = probes_.get();
  for (const std::string& node : held_nodes_) probes_->hold(node);
  return {};
}

// Returns the first of the listeners that lead to this one.
node::ProbeListener& HostPart::open_telemetry(node::ProbeListener& next, base::Duration interval) {
  if (frames_ == nullptr) return next;
  tap_ = std::make_unique<monitoring::ReadingTap>(
      next, [this] { return core_.snapshot(); },
      [this](const std::string& uuid, std::uint32_t pid) { return monitor_->owner_of(uuid, pid); },
      *frames_, os::wall_now);
  // All GPUs are read as often anyway.
  if (interval <= monitoring::SamplingPace::kLongestInterval) return *tap_;
  pace_ = std::make_unique<monitoring::SamplingPace>(
      *tap_, [this] { return core_.snapshot(); }, ask_probes(), is_monitored);
  return *pace_;
}

void HostPart::wait_for_nodes(const std::function<bool()>& must_end) {
  const bool are_known = are_known_in_time(
      [this](std::chrono::milliseconds time) { return nodes_->wait_for_all(names_, time); },
      must_end);
  if (are_known || (must_end && must_end())) return;
  spdlog::warn(
      "not every node was described within {} s; the others are added when they are described",
      kDiscoveryLimit.count());
}

void HostPart::warn_of_what_is_missing(const config::Configuration& configuration) const {
  if (power_ != nullptr) power_->warn_of_unused_entries();
  const std::string& control = configuration.mps_control.path;
  if (!control.empty() && mps_control_.empty()) {
    spdlog::warn("sharing.mps_control is {}, which cannot be executed: no GPU is shared by MPS",
                 control);
  }
  const std::size_t found = nodes_->gpu_count();
  if (configuration.total_gpus && *configuration.total_gpus != found) {
    spdlog::warn("cluster.total_gpus is {}, but {} GPUs were found", *configuration.total_gpus,
                 found);
  }
}

void HostPart::reload(const config::Configuration& configuration) {
  if (power_ != nullptr) power_->set_wanted(configuration.power_limits);
  if (engine_ != nullptr) engine_->use_time_slice(configuration.policy.sharing.slice);
}

// A supervisor that is not there is told nothing.
void HostPart::warn_of_idle(const IdleWatch::Act& act) {
  const std::int64_t minutes = act.stops_in.value() / base::minutes(1).value();
  engine_->warn_of_idle(act.attempt, static_cast<std::uint32_t>(minutes));
}

void HostPart::stop() {
  {
    const std::lock_guard lock(probes_guard_);
    faults_to_tell_ = nullptr;
  }
  if (probes_ != nullptr) {
    memory_->stop();  // it asks them, as the gate does
    gate_->stop();
    if (pace_ != nullptr) pace_->stop();
    if (begins_ != nullptr) begins_->stop();
    {
      const std::lock_guard lock(probes_guard_);  // the engine holds them
      probes_to_ask_ = nullptr;
    }
    probes_.reset();
    power_.reset();
  }
  users_files_.disconnect();
  observations_.disconnect();
}

}  // namespace gpu_platform::bin
