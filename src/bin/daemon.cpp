#include "bin/daemon.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include <spdlog/spdlog.h>

#include "api/event_hub.h"
#include "api/identity/identity_authenticator.h"
#include "api/identity/token_authenticator.h"
#include "api/identity/web_token_prover.h"
#include "api/rest/server.h"
#include "bin/adaptors.h"
#include "bin/board_registrar.h"
#include "bin/emulated_boards.h"
#include "bin/event_log.h"
#include "bin/job_outputs.h"
#include "bin/kubernetes_site.h"
#include "bin/network_listener.h"
#include "bin/notifier.h"
#include "bin/program_paths.h"
#include "bin/retention_thread.h"
#include "bin/site_users.h"
#include "bin/store_state.h"
#include "bin/team_follower.h"
#include "bin/workload_queue.h"
#include "config/effective.h"
#include "config/network_file.h"
#include "controller/controller.h"
#include "controller/loop/clock.h"
#include "controller/loop/loop.h"
#include "execution/access_router.h"
#include "execution/engine_router.h"
#include "execution/process/process_engine.h"
#include "host/user_directory.h"
#include "logging/log.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/node_observer.h"
#include "monitoring/release_gate.h"
#include "node/probe/probe_runner.h"
#include "os/small_file.h"
#include "scheduling/pools/guarantees.h"
#include "store/sqlite/sqlite_store.h"

namespace gpu_platform::bin {

namespace {

// A driver that no process holds open takes seconds per GPU to load. After this time the daemon
// serves without the nodes that have not answered, and adds them when they do.
constexpr std::chrono::seconds kDiscoveryLimit{60};

// The user as the accounts of the system know it, or its number where they do not answer.
model::Origin origin_of_process(host::UserDirectory& users, model::Door door, std::uint32_t uid,
                                pid_t pid) {
  std::promise<std::string> name;
  users.name_of(uid, [&name](const host::UserName& found) { name.set_value(found.text); });
  return {door, name.get_future().get(), uid, static_cast<std::uint64_t>(std::max(pid, 0))};
}

model::Policy policy_of(const config::Configuration& configuration) {
  model::Policy policy = configuration.policy;
  policy.allow_root_jobs = configuration.root_jobs == config::RootJobs::kAllow;
  policy.can_notify = !configuration.notify_command.empty();
  policy.has_containers = !configuration.containers.path.empty();
  policy.set_engine(model::EngineKind::kProcess, configuration.local_engine);
  policy.set_engine(model::EngineKind::kKubernetes, has_kubernetes(configuration));
  policy.own_uid = geteuid();
  return policy;
}

api::BudgetLimits budgets_of(const config::Configuration& c) {
  return {.connections = c.api_connections,
          .connections_per_user = c.api_connections_per_user,
          .channels = c.api_channels,
          .channels_per_user = c.api_channels_per_user,
          .streams_per_user = c.api_streams_per_user,
          .body_bytes = c.api_body_bytes,
          .body_bytes_per_user = c.api_body_bytes_per_user,
          .answer_bytes = c.api_answer_bytes,
          .answer_bytes_per_user = c.api_answer_bytes_per_user,
          .percent_for_root = c.api_percent_for_root};
}

// Ends the process so that the next one recovers from the journal: what is durable and what is in
// memory may differ, so nothing of this process may be used any more.
void end_now(const base::Error& error) {
  spdlog::critical("the daemon ends and must be started again: {}", error.message);
  spdlog::default_logger()->flush();
  _exit(1);
}

// The store makes it, with the mode that its secrets need.
base::Result<std::string> absolute_directory(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (error) {
    return base::fail(base::ErrorCode::kInternal,
                      fmt::format("data directory {}: {}", path, error.message()));
  }
  return absolute.string();
}

base::Result<std::unique_ptr<store::SqliteStore>> open_store(
    const std::string& data_dir, const config::Configuration& configuration,
    const DaemonOptions& daemon) {
  store::SqliteOptions options;
  options.dir = data_dir;
  options.others_may_pass = !daemon.emulate.empty();
  options.accept_loss = daemon.accept_loss;
  if (daemon.accept_loss) options.seen_job = last_job_with_output(data_dir);
  options.headroom.ballast = configuration.store_reserve_bytes;
  TRY_ASSIGN(auto store, store::SqliteStore::open(options));
  if (!store->note().empty()) spdlog::warn("store note=\"{}\"", store->note());
  return store;
}

// Returns the targets of the probes: the emulated boards, or this host.
base::Result<std::vector<node::ProbeTarget>> probe_targets(const DaemonOptions& options,
                                                           const std::string& data_dir,
                                                           const ProgramPaths& paths,
                                                           bool has_local_nodes) {
  if (!has_local_nodes) return std::vector<node::ProbeTarget>();
  if (options.emulate.empty()) {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return std::vector<node::ProbeTarget>{{.node_name = name}};
  }
  TRY_ASSIGN(const std::vector<EmulatedNode> nodes, parse_emulate(options.emulate));
  std::vector<node::ProbeTarget> targets;
  for (const EmulatedNode& node : nodes) {
    const std::string dir = fmt::format("{}/emulated/{}", data_dir, node.name);
    TRY(create_board(node, dir, paths.emulator));
    targets.push_back(node::emulated_target(node.name, dir, paths.emulated_nvml));
  }
  return targets;
}

std::vector<api::IsolationGuard> isolation_of(const execution::NodePart& node) {
  std::vector<api::IsolationGuard> guards;
  for (const node::GuardState& state : node.guards) {
    guards.push_back({std::string(node::to_string(state.guard)), state.held, state.why});
  }
  return guards;
}

// One line for what is held, one for each way in which it is not.
void tell_isolation(const execution::NodePart& node) {
  std::string held;
  for (const node::GuardState& state : node.guards) {
    if (state.held) fmt::format_to(std::back_inserter(held), " {}", node::to_string(state.guard));
  }
  spdlog::info("isolation held=\"{}\" detail=\"{}\"", held.empty() ? held : held.substr(1),
               node.detail);
  for (const node::GuardState& state : node.guards) {
    if (state.held) continue;
    spdlog::warn("isolation advisory=\"{}\" why=\"{}\"", node::to_string(state.guard), state.why);
  }
}

// One line for each value that a reload changes, and one for each that waits for the next start.
void tell_differences(const config::Configuration& at_start, const config::Configuration& before,
                      const config::Configuration& now) {
  const auto values = [](const config::Difference& each) {
    return each.before == each.after
               ? std::string()
               : fmt::format(" before=\"{}\" after=\"{}\"", each.before, each.after);
  };
  for (const config::Difference& each : config::differences(before, now)) {
    if (each.effect != config::Effect::kAnytime) continue;
    spdlog::info("configuration key={}{} applied=now", each.key, values(each));
  }
  for (const config::Difference& each : config::differences(at_start, now)) {
    if (each.effect != config::Effect::kRestart) continue;
    spdlog::warn("configuration key={}{} applied=\"at the next start\"", each.key, values(each));
  }
}

}  // namespace

// One line with the id that the answer has, too. It takes nothing from the budget of other lines
// about this user.
void tell_call(logging::Log& log, const api::Peer& peer, const api::NotableCall& call) {
  const bool is_known = !peer.caller.user.empty();
  logging::Source source =
      is_known ? logging::of_user(peer.caller.uid) : logging::of_platform("callers not known");
  source.name = "calls of " + source.name;
  log.info(source, "api request={} call={} status={} ms={:.0f} uid={}", call.request_id,
           call.call.empty() ? "-" : call.call, call.status, call.seconds * 1e3,
           is_known ? std::to_string(peer.caller.uid) : "-");
}

// A value that a reload changes while the API reads it.
template <class Value>
class Reloaded {
 public:
  void set(Value value) {
    auto next = std::make_shared<const Value>(std::move(value));
    const std::lock_guard lock(mutex_);
    value_.swap(next);
  }
  std::shared_ptr<const Value> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Value> value_;
};

// Null: the site trusts no issuer.
base::Result<std::unique_ptr<api::WebTokenProver>> web_tokens_of(
    const config::Configuration& configuration) {
  const std::string path = configuration.openid_keys.path;
  if (path.empty()) return nullptr;
  const auto& words = configuration.openid_algorithms.words;
  api::WebTokenRules rules{configuration.openid_issuer.text,
                           configuration.openid_audience.text,
                           {words.begin(), words.end()},
                           configuration.openid_user_claim.text,
                           configuration.openid_clock_skew};
  const auto read = [path]() -> base::Result<std::string> {
    errno = 0;
    std::string text = os::read_small_file(AT_FDCWD, path.c_str());
    if (text.empty() && errno != 0)
      return base::fail(base::ErrorCode::kFailedPrecondition, ::strerrordesc_np(errno));
    return text;
  };
  auto made = api::WebTokenProver::make(std::move(rules), read, os::wall_now());
  if (made) return made;
  return base::fail(made.error().code,
                    fmt::format("access.openid.keys: {}: {}", path, made.error().message),
                    "access.openid.keys");
}

api::TrustedSigners signers_of(const config::Configuration& configuration) {
  const bool has_issuer = !configuration.openid_keys.path.empty();
  return {!configuration.tls_client_ca.path.empty(),
          has_issuer ? configuration.openid_issuer.text : std::string(),
          configuration.openid_user_claim.text};
}

// In the order in which they need each other.
struct Daemon::Parts {
  explicit Parts(std::string directory) : data_dir(std::move(directory)), event_log(log) {}

  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  base::Status recover(const config::Configuration& configuration);
  base::Status discover(std::vector<node::ProbeTarget> targets,
                        const config::Configuration& configuration, const ProgramPaths& paths,
                        const std::function<bool()>& must_end);
  // What a credential that others have signed proves here.
  base::Result<api::ProvenIdentity> prove(const api::Credential& shown, base::Instant now);
  base::Status open_door(const DaemonOptions& options, const config::Configuration& configuration,
                         const ProgramPaths& paths);

  std::string data_dir;
  config::Configuration at_start;
  config::Configuration last_read;
  logging::Log log;
  std::shared_ptr<host::UserDirectory> users = std::make_shared<host::UserDirectory>();
  std::unique_ptr<store::SqliteStore> store;
  LateSink observations;
  std::unique_ptr<StoredEnvironments> environments;
  std::unique_ptr<BoardRegistrar> registrar;  // null: no emulated boards
  std::unique_ptr<execution::ProcessEngine> engine;
  LateSink cluster_observations;  // no driver of ours confirms a release there: they pass no gate
  std::unique_ptr<WorkloadQueue> workloads;              // null: the site names no cluster
  std::unique_ptr<execution::KubernetesEngine> cluster;  // likewise
  std::unique_ptr<execution::EngineRouter> engines;
  std::unique_ptr<execution::AccessRouter> engine_access;
  controller::Clock clock;
  std::unique_ptr<controller::Controller> controller;
  EventLog event_log;
  std::unique_ptr<Notifier> notifier;  // null: the site has no such command
  std::unique_ptr<api::EventHub> hub;
  std::unique_ptr<controller::Loop> loop;
  std::unique_ptr<RetentionThread> retention;
  std::atomic<node::ProbeRunner*> probes_to_ask{nullptr};
  std::unique_ptr<monitoring::ReleaseGate> gate;
  std::unique_ptr<monitoring::GpuMonitor> monitor;
  std::unique_ptr<monitoring::NodeObserver> nodes;
  std::unique_ptr<node::ProbeRunner> probes;
  std::unique_ptr<MonitoredReadings> readings;
  std::unique_ptr<LoopCommands> commands;
  std::unique_ptr<LoopSnapshots> snapshots;
  std::unique_ptr<EngineChannels> channels;
  Reloaded<config::SlurmNames> slurm_names;
  Reloaded<config::InForce> in_force;
  Reloaded<model::AccessRules> access;
  std::unique_ptr<TeamFollower> team_follower;
  api::TokenUses token_uses;
  Reloaded<api::IdentityUsers> identities;
  std::unique_ptr<api::TokenAuthenticator> tokens;
  api::CertificateProver certificates;
  std::unique_ptr<api::WebTokenProver> web_tokens;  // null: the site trusts no issuer
  std::unique_ptr<api::IdentityAuthenticator> identities_of_others;
  std::unique_ptr<api::Authenticators> authenticator;
  UsersFiles users_files;
  std::unique_ptr<JobOutputs> outputs;
  std::unique_ptr<api::Server> server;
  std::unique_ptr<listener::ListenerHost> network_listener;  // null: the site has none
};

// Threads end first, so that none of them uses an object that is gone: the API, the probes, the
// loop, the engine.
Daemon::Parts::~Parts() {
  network_listener.reset();
  server.reset();
  if (gate != nullptr) gate->stop();
  probes.reset();
  retention.reset();
  if (workloads != nullptr) workloads->stop();
  if (loop != nullptr) loop->stop();
  users_files.disconnect();
  observations.disconnect();
  cluster_observations.disconnect();
}

base::Result<config::NetworkPlaces> network_places_of(const std::string& path) {
  if (path.empty()) return config::NetworkPlaces();
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file.is_open() || !(text << file.rdbuf())) {
    return base::fail(
        base::ErrorCode::kFailedPrecondition,
        fmt::format("cluster.network_file: {} cannot be read: {}", path, std::strerror(errno)),
        "cluster.network_file");
  }
  auto places = config::parse_network(text.str());
  if (places) return *std::move(places);
  return base::fail(base::ErrorCode::kFailedPrecondition, config::describe(places.error(), path),
                    "cluster.network_file");
}

// The first of the launcher's keys that the configuration changes, and the option of the launcher
// that says the same; empty: none.
struct LauncherKey {
  std::string_view key;
  std::string_view option;
};
LauncherKey launcher_key(const config::Configuration& configuration) {
  const config::Configuration defaults;
  if (configuration.prolog != defaults.prolog) return {"prolog", "--prolog FILE"};
  if (configuration.epilog != defaults.epilog) return {"epilog", "--epilog FILE"};
  if (configuration.prolog_timeout != defaults.prolog_timeout) {
    return {"prolog_timeout", "--prolog-timeout TIME"};
  }
  if (configuration.epilog_timeout != defaults.epilog_timeout) {
    return {"epilog_timeout", "--epilog-timeout TIME"};
  }
  if (configuration.seccomp != defaults.seccomp) return {"seccomp", "--seccomp off"};
  if (configuration.mode_setting != defaults.mode_setting) {
    return {"mode_setting", "--mode-setting allow"};
  }
  return {};
}

// A launcher that is a service has rights that the daemon lacks: the daemon does not decide what it
// runs, and as which user.
base::Status set_launcher(const config::Configuration& configuration, const std::string& launcher,
                          execution::ProcessEngineOptions& engine) {
  const LauncherKey key = launcher_key(configuration);
  if (!launcher.empty() && !key.key.empty()) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("execution.{}: the launcher at {} is a service of its own, which "
                                  "this key does not reach; remove the key and give the "
                                  "launcher {} (ExecStart of gpu-platform-launcher.service)",
                                  key.key, launcher, key.option),
                      fmt::format("execution.{}", key.key));
  }
  const auto ms = [](base::Duration time) {
    return static_cast<std::uint64_t>(base::whole_milliseconds(time));
  };
  engine.hooks = {configuration.prolog.path, configuration.epilog.path,
                  ms(configuration.prolog_timeout), ms(configuration.epilog_timeout)};
  engine.containers = configuration.containers.path;
  TRY_ASSIGN(model::UserRange users, users_of_site(configuration, true));
  engine.launcher_rules = {configuration.root_jobs == config::RootJobs::kAllow, std::move(users),
                           configuration.mode_setting,
                           configuration.seccomp == config::Seccomp::kDefault};
  return {};
}

base::Status Daemon::Parts::recover(const config::Configuration& configuration) {
  std::map<model::EngineKind, execution::Engine*> by_kind;
  std::map<model::EngineKind, execution::AttemptAccess*> access_by_kind;
  const auto add = [&](model::EngineKind kind, auto& one) {
    by_kind[kind] = &one, access_by_kind[kind] = &one;
  };
  add(model::EngineKind::kProcess, *engine);
  if (cluster != nullptr) add(model::EngineKind::kKubernetes, *cluster);
  engines = std::make_unique<execution::EngineRouter>(std::move(by_kind));
  engine_access = std::make_unique<execution::AccessRouter>(
      std::move(access_by_kind), [this](model::NodeId id) -> std::optional<model::EngineKind> {
        const auto snapshot = loop->snapshot();
        const model::Node* node = snapshot->nodes.find(id.value);
        return node != nullptr ? std::optional(node->engine) : std::nullopt;
      });
  controller = std::make_unique<controller::Controller>(*store, *engines);
  loop = std::make_unique<controller::Loop>(*controller, clock, end_now);
  std::string note;
  TRY(controller->recover(clock.now(), &note));
  if (!note.empty()) spdlog::warn("recovery note=\"{}\"", note);
  if (!configuration.cluster_name.text.empty()) {
    spdlog::info("cluster name=\"{}\"", configuration.cluster_name.text);
  }
  const controller::State& state = controller->core().state();
  clock.start_after(state.at);
  spdlog::info("recovered events={} jobs={} nodes={}", state.seq.value, state.jobs.size(),
               state.nodes.size());
  hub = std::make_unique<api::EventHub>(state.seq);
  controller->add_listener(&event_log);
  team_follower = std::make_unique<TeamFollower>(
      log, TeamFollower::Site{configuration.access, geteuid()}, *loop->snapshot(),
      [this](model::AccessRules rules) { access.set(std::move(rules)); });
  controller->add_listener(team_follower.get());
  controller->add_listener(hub.get());
  if (!configuration.notify_command.empty()) {
    notifier = std::make_unique<Notifier>(configuration.notify_command, log);
    controller->add_listener(notifier.get());
  }
  loop->observe(execution::MachineBooted{engine->boot_id()});
  loop->change_policy(policy_of(configuration), "configuration",
                      origin_of_process(*users, model::Door::kStart, geteuid(), getpid()));
  gate = std::make_unique<monitoring::ReleaseGate>(
      *loop, [this] { return loop->snapshot(); },
      [this](const std::string& node, const std::vector<std::string>& uuids) {
        if (node::ProbeRunner* const runner = probes_to_ask) runner->read_now(node, uuids);
      },
      [](const std::string& text) { spdlog::error("release alert=\"{}\"", text); });
  observations.connect(*gate);
  cluster_observations.connect(*loop);
  if (workloads != nullptr) controller->add_listener(workloads.get());
  loop->start();
  if (workloads != nullptr) {
    workloads->start(
        loop->snapshot(),
        [this](model::Command command, controller::CommandDone done) {
          loop->command(std::move(command), std::move(done));
        },
        [this](execution::WorkloadNews news) { cluster->tell_workload(std::move(news)); });
  }
  return {};
}

namespace {

// Warns where more is guaranteed than was found.
void warn_of_guarantees(const model::Organisation& organisation,
                        const controller::Snapshot& snapshot) {
  const bool is_as_written = organisation.allocation == model::AllocationMode::kGuaranteed ||
                             organisation.allocation == model::AllocationMode::kStatic;
  if (!is_as_written) return;
  scheduling::GpusByType found;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) ++found[gpu.info.type];
  });
  const auto pools = scheduling::pool_sizes(organisation, found);
  for (const auto& [type, pool] : pools) {
    if (pool.guaranteed <= pool.gpus) continue;
    std::string which = type.empty() ? "" : " of type " + type;
    if (type.empty() && pools.size() > 1) which = " of the types without guarantees of their own";
    spdlog::warn(
        "guaranteed_gpus add up to {} GPUs{}, but {} were found: not all guarantees can be met at "
        "once",
        pool.guaranteed, which, pool.gpus);
  }
}

// Returns whether it was so within the limit of a discovery; gives up when the process is to end.
// `is_so_within` waits for that time.
bool wait_for_discovery(const std::function<bool(std::chrono::milliseconds)>& is_so_within,
                        const std::function<bool()>& must_end) {
  constexpr std::chrono::milliseconds kStep{200};
  const auto end = std::chrono::steady_clock::now() + kDiscoveryLimit;
  while (!is_so_within(kStep)) {
    const bool is_over = std::chrono::steady_clock::now() >= end;
    if (is_over || (must_end && must_end())) return false;
  }
  return true;
}

}  // namespace

base::Status Daemon::Parts::discover(std::vector<node::ProbeTarget> targets,
                                     const config::Configuration& configuration,
                                     const ProgramPaths& paths,
                                     const std::function<bool()>& must_end) {
  monitor = std::make_unique<monitoring::GpuMonitor>(
      observations, [this] { return loop->snapshot(); }, engine->node_part().detail, *users);
  TRY_ASSIGN(config::NetworkPlaces places, network_places_of(configuration.network_file.path));
  nodes = std::make_unique<monitoring::NodeObserver>(
      observations, *monitor, *gate, log,
      monitoring::NodeObserver::Site{std::move(places), configuration.local_capacity});
  node::ProbeRunnerOptions options;
  options.executable = paths.probe;
  options.interval = configuration.monitoring_interval;
  TRY_ASSIGN(probes, node::ProbeRunner::start(std::move(options), *nodes));
  probes_to_ask = probes.get();
  readings = std::make_unique<MonitoredReadings>(*monitor, *probes);
  std::set<std::string> names;
  for (node::ProbeTarget& target : targets) {
    names.insert(target.node_name);
    probes->watch(std::move(target));
  }
  const bool are_all_described = wait_for_discovery(
      [&](std::chrono::milliseconds time) { return nodes->wait_for_all(names, time); }, must_end);
  const auto is_told_to_end = [&] { return must_end && must_end(); };
  if (!are_all_described && !is_told_to_end()) {
    spdlog::warn(
        "not every node was described within {} s; the others are added when they are described",
        kDiscoveryLimit.count());
  }
  const bool are_nodes_known =
      cluster == nullptr ||
      wait_for_discovery(
          [&](std::chrono::milliseconds time) { return cluster->wait_for_nodes(time); }, must_end);
  if (!are_nodes_known && !is_told_to_end()) {
    spdlog::warn(
        "the nodes of the Kubernetes cluster are not known yet; they are added when they are");
  }
  loop->wait_until_published();
  if (cluster != nullptr && are_nodes_known)
    warn_of_no_gpus_in_kubernetes(configuration, *loop->snapshot());
  const std::size_t found = nodes->gpu_count();
  if (configuration.total_gpus && *configuration.total_gpus != found) {
    spdlog::warn("cluster.total_gpus says {} GPUs, {} were found", *configuration.total_gpus,
                 found);
  }
  warn_of_guarantees(*configuration.policy.organisation, *loop->snapshot());
  return {};
}

base::Result<api::ProvenIdentity> Daemon::Parts::prove(const api::Credential& shown,
                                                       base::Instant now) {
  if (shown.kind == api::Credential::Kind::kCertificate) {
    return certificates.prove(shown.secret, now);
  }
  if (web_tokens != nullptr) return web_tokens->prove(shown.secret, now);
  return base::fail(base::ErrorCode::kUnauthenticated, "tokens of an issuer are not accepted");
}

base::Status Daemon::Parts::open_door(const DaemonOptions& options,
                                      const config::Configuration& configuration,
                                      const ProgramPaths& paths) {
  slurm_names.set(configuration.slurm);
  in_force.set(config::values_in_force(options.config_file, configuration, configuration));
  commands = std::make_unique<LoopCommands>(*loop);
  snapshots = std::make_unique<LoopSnapshots>(*loop);
  channels =
      std::make_unique<EngineChannels>(*engine_access, [this] { return loop->snapshot(); }, log);
  outputs = std::make_unique<JobOutputs>(
      *engine_access, [this] { return loop->snapshot(); }, users_files);
  identities.set(configuration.identities);
  const auto warn = [this](const std::string& line) {
    log.warn(logging::of_platform("credentials"), "api {}", line);
  };
  // A pod has the uid of its job's user whatever the daemon is.
  const bool runs_as_itself = configuration.local_engine && !engine->node_part().can_switch_user;
  TRY_ASSIGN(const model::UserRange range, users_of_site(configuration, runs_as_itself));
  tokens = std::make_unique<api::TokenAuthenticator>(
      *snapshots, *users, *commands, token_uses,
      api::TokenAuthenticator::Options{
          .users = range,
          .still_stand =
              [this, signers = signers_of(configuration)](const model::ProvenNames& proven) {
                return api::still_stand(proven, signers, *identities.get());
              },
          .warn = warn});
  TRY_ASSIGN(web_tokens, web_tokens_of(configuration));
  identities_of_others = std::make_unique<api::IdentityAuthenticator>(
      *users, api::IdentityAuthenticator::Options{
                  .users = range,
                  .prove = [this](const api::Credential& shown,
                                  base::Instant now) { return prove(shown, now); },
                  .rule = [this] { return identities.get(); },
                  .warn = warn});
  authenticator = std::make_unique<api::Authenticators>(*tokens, *identities_of_others);
  api::ServerOptions server_options;
  server_options.socket_path = options.socket;
  server_options.version = GP_VERSION;
  server_options.io_threads = configuration.api_threads;
  if (runs_as_itself) server_options.only_uid = geteuid();
  server_options.users = range;
  server_options.authenticator = authenticator.get();
  server_options.budgets = budgets_of(configuration);
  server_options.page_bytes = static_cast<std::size_t>(configuration.api_page_bytes.value());
  server_options.is_privileged = [own = geteuid()](std::uint32_t uid) {
    return uid == 0 || uid == own;
  };
  server_options.warn = [this](std::optional<std::uint32_t> user, const std::string& line) {
    log.warn(user ? logging::of_user(*user) : logging::of_platform("the API"), "api {}", line);
  };
  server_options.notable = [this](const api::Peer& peer, const api::NotableCall& call) {
    tell_call(log, peer, call);
  };
  const std::filesystem::path directory = std::filesystem::path(options.socket).parent_path();
  std::error_code ignored;
  if (!directory.empty()) std::filesystem::create_directories(directory, ignored);
  TRY_ASSIGN(server, api::Server::start(
                         std::move(server_options),
                         api::CoreAccess{*commands,
                                         *snapshots,
                                         *store,
                                         *outputs,
                                         *users,
                                         {},
                                         readings.get(),
                                         [this] { return isolation_of(engine->node_part()); },
                                         channels.get(),
                                         store.get(),
                                         [this] { return loop->statistics(); },
                                         [this] { return slurm_names.get(); },
                                         [this] { return in_force.get(); },
                                         [this] { return access.get(); },
                                         &token_uses},
                         *hub));
  TRY_ASSIGN(network_listener, open_network_listener(configuration, paths.listener, *server,
                                                     certificates, range, *users, log));
  return {};
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() {
  stop();
}

base::Result<std::unique_ptr<Daemon>> Daemon::start(const DaemonOptions& options,
                                                    const config::Configuration& configuration) {
  TRY_ASSIGN(std::string data_dir, absolute_directory(options.data_dir));
  auto parts = std::make_unique<Parts>(std::move(data_dir));
  parts->at_start = configuration;
  parts->last_read = configuration;
  TRY_ASSIGN(parts->store, open_store(parts->data_dir, configuration, options));
  const ProgramPaths paths = find_program_paths();
  TRY_ASSIGN(auto targets,
             probe_targets(options, parts->data_dir, paths, configuration.local_engine));

  parts->environments = std::make_unique<StoredEnvironments>(*parts->store);
  execution::ProcessEngineOptions engine;
  engine.data_dir = parts->data_dir;
  engine.users = parts->users;
  engine.node_program = paths.node;
  engine.launcher_socket = options.launcher;
  if (!options.emulate.empty()) {
    parts->registrar =
        std::make_unique<BoardRegistrar>(paths.gpu_register, parts->data_dir + "/emulated");
    engine.board_places = {parts->data_dir + "/emulated",
                           std::filesystem::path(paths.emulated_nvml).parent_path().string(),
                           paths.emulated_programs};
    engine.enter_on_board = [registrar = parts->registrar.get()](
                                const std::string& node, const std::vector<std::string>& uuids,
                                std::uint32_t pid) { registrar->enter(node, uuids, pid); };
  }
  engine.output_file_bytes = static_cast<std::uint64_t>(configuration.output_rotate_bytes.value());
  engine.output_files = configuration.output_files_kept + 1;
  engine.max_processes = configuration.max_processes;
  engine.private_folders = configuration.private_tmp;
  engine.hide_processes = configuration.hide_processes;
  engine.start_timeout_ms =
      static_cast<std::uint64_t>(base::whole_milliseconds(configuration.start_timeout));
  engine.output_limit_bytes = static_cast<std::uint64_t>(configuration.output_limit.value());
  TRY(set_launcher(configuration, options.launcher, engine));
  TRY_ASSIGN(parts->engine,
             execution::ProcessEngine::open(engine, *parts->environments, parts->observations));
  parts->users_files.connect(*parts->engine);
  if (configuration.local_engine) tell_isolation(parts->engine->node_part());
  if (configuration.local_engine && geteuid() == 0 &&
      configuration.root_jobs == config::RootJobs::kAllow) {
    spdlog::warn(
        "running as root: jobs of root are allowed and run as root "
        "(execution.root_jobs: refuse forbids them)");
  }
  if (has_kubernetes(configuration)) {
    TRY_ASSIGN(model::UserRange users, users_of_site(configuration, false));
    parts->workloads =
        std::make_unique<WorkloadQueue>(parts->users, std::move(users), *parts->store);
    TRY_ASSIGN(parts->cluster, open_kubernetes(configuration, parts->data_dir, options.lease_holder,
                                               *parts->environments, parts->cluster_observations,
                                               *parts->workloads, end_now, options.must_end));
  }
  TRY(parts->recover(configuration));
  TRY(parts->discover(std::move(targets), configuration, paths, options.must_end));
  parts->retention =
      std::make_unique<RetentionThread>(*parts->store, *parts->loop, *parts->engine_access);
  TRY(parts->open_door(options, configuration, paths));
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

void Daemon::reload(const config::Configuration& configuration, const SignalSender& sender) {
  tell_differences(parts_->at_start, parts_->last_read, configuration);
  const bool has_same_access = parts_->last_read.access == configuration.access &&
                               parts_->last_read.identities == configuration.identities;
  parts_->last_read = configuration;
  parts_->loop->change_policy(
      policy_of(configuration), "configuration",
      origin_of_process(*parts_->users, model::Door::kSignal, sender.uid, sender.pid));
  parts_->slurm_names.set(configuration.slurm);
  parts_->identities.set(configuration.identities);
  if (parts_->network_listener != nullptr) {
    const auto read = read_authorities(parts_->at_start, parts_->certificates);
    if (!read) spdlog::warn("{}; the former authorities stay in force", read.error().message);
  }
  parts_->in_force.set(
      config::values_in_force(parts_->in_force.get()->file, parts_->at_start, configuration));
  if (parts_->network_listener != nullptr) parts_->network_listener->reload();
  parts_->team_follower->change_settings(configuration.access);
  if (has_same_access) return;
  // The journal does not have the roles, so the trail says that they changed.
  model::AuditedCall call;
  call.by = origin_of_process(*parts_->users, model::Door::kSignal, sender.uid, sender.pid);
  call.action = model::AuditAction::kConfigure;
  call.target = "access";
  parts_->loop->command({{}, model::RecordCalls{{std::move(call)}}},
                        [](const base::Result<model::CommandReply>&) {});
}

void Daemon::refuse_reload(const base::Error& error, const SignalSender& sender) {
  model::AuditedCall call;
  call.by = origin_of_process(*parts_->users, model::Door::kSignal, sender.uid, sender.pid);
  call.action = model::AuditAction::kConfigure;
  call.refusal = model::refusal_of(error);
  parts_->loop->command({{}, model::RecordCalls{{std::move(call)}}},
                        [](const base::Result<model::CommandReply>&) {});
}

void Daemon::stop() {
  if (parts_ == nullptr) return;
  parts_->network_listener.reset();
  parts_->server.reset();
  parts_->gate->stop();
  parts_->probes.reset();
  parts_->retention.reset();
  if (parts_->workloads != nullptr) parts_->workloads->stop();
  parts_->loop->stop();
  if (const base::Status stored = parts_->controller->store_snapshot(); !stored) {
    spdlog::warn("no snapshot at the end: {}", stored.error().message);
  }
  const bool has_cluster = parts_->cluster != nullptr;
  const config::Configuration configuration = parts_->at_start;
  const std::string data_dir = parts_->data_dir;
  parts_.reset();
  // Last, so that the next daemon finds the data directory free.
  if (has_cluster) release_kubernetes_lease(configuration, data_dir, {});
}

void notify_service_manager(std::string_view message) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract socket
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  (void)!sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), size);
  close(fd);
}

}  // namespace gpu_platform::bin
