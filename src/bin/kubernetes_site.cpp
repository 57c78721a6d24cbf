#include "bin/kubernetes_site.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "execution/kubernetes/standby.h"
#include "kubernetes/kubeconfig.h"
#include "os/replaced_file.h"
#include "os/small_file.h"

namespace gpu_platform::bin {

namespace {

// For the release of a lease when the daemon stops.
constexpr base::Duration kReleaseTime = base::seconds(3);

execution::DeviceMode mode_of(config::KubernetesDevices devices) {
  switch (devices) {
    case config::KubernetesDevices::kPinned:
      return execution::DeviceMode::kPinned;
    case config::KubernetesDevices::kOwned:
      return execution::DeviceMode::kOwned;
    case config::KubernetesDevices::kCounts:
      return execution::DeviceMode::kCounts;
  }
  CHECK(false);
}

execution::KubernetesSettings settings_of(const config::Configuration& configuration) {
  execution::KubernetesSettings settings;
  settings.cluster = configuration.kubernetes_cluster.text;
  settings.namespace_name = configuration.kubernetes_namespace.text;
  settings.image_pull_secrets = configuration.kubernetes_pull_secrets.words;
  for (const std::string& word : configuration.kubernetes_node_selector.words) {
    const std::size_t equals = word.find('=');
    settings.node_selector.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  settings.capacity_label = configuration.kubernetes_capacity_label.text;
  settings.devices = mode_of(configuration.kubernetes_devices);
  settings.driver = configuration.kubernetes_driver.text;
  settings.device_class = configuration.kubernetes_device_class.text;
  settings.priority_class = configuration.kubernetes_priority_class.text;
  settings.runs_as_user = configuration.kubernetes_runs_as_user;
  settings.start_patience = configuration.kubernetes_start_timeout;
  settings.lost_after = configuration.kubernetes_lost_after;
  settings.admits_workloads = configuration.kubernetes_workloads;
  settings.workloads_user = configuration.kubernetes_workloads_user.text;
  return settings;
}

// Those of the cluster that are looked at, and those of their GPUs that are there.
struct Seen {
  std::size_t nodes = 0;
  std::size_t gpus = 0;
};

Seen seen_in_kubernetes(const controller::Snapshot& snapshot) {
  Seen seen;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (node.engine != model::EngineKind::kKubernetes) return;
    ++seen.nodes;
    seen.gpus += node.gpus.size();
  });
  return seen;
}

std::string text_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

base::Result<kubernetes::ClusterAccess> access_of(const config::Configuration& configuration) {
  const bool is_in_cluster = configuration.kubernetes_in_cluster;
  auto access = is_in_cluster
                    ? kubernetes::in_cluster_access(text_of_variable("KUBERNETES_SERVICE_HOST"),
                                                    text_of_variable("KUBERNETES_SERVICE_PORT"))
                    : kubernetes::load_kubeconfig(configuration.kubernetes_kubeconfig.path,
                                                  configuration.kubernetes_context.text);
  if (access) return access;
  base::Error error = std::move(access).error();
  error.message = fmt::format("engines.kubernetes.{}: {}",
                              is_in_cluster ? "in_cluster" : "kubeconfig", error.message);
  return std::unexpected(std::move(error));
}

// Of a process that has no data directory yet: no other one has it.
std::string new_identity() {
  char host[65] = {};
  gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}-{:08x}{:08x}", host, random(), random());
}

// The name by which the daemon of this data directory has the cluster's lease. It stays the same
// over restarts, so that a daemon that was killed has its lease at once, and differs from that of
// every other daemon. A data directory without one has never had the cluster.
std::string identity_path(const std::string& data_dir) {
  return data_dir + "/kubernetes-identity";
}

std::string kept_identity(const std::string& data_dir) {
  return os::read_small_file(AT_FDCWD, identity_path(data_dir).c_str());
}

// A daemon that has lost this file is not let in.
base::Status keep_identity(const std::string& data_dir, const std::string& identity) {
  return os::replace_file(identity_path(data_dir), identity, 0644);
}

// The platform's own namespace: the one of its context or service account.
std::string own_namespace(const kubernetes::ClusterAccess& access) {
  return access.namespace_name.empty() ? std::string("gpu-platform") : access.namespace_name;
}

execution::LeaseTerms lease_of(const kubernetes::ClusterAccess& access,
                               const config::Configuration& configuration, std::string holder) {
  execution::LeaseTerms lease;
  lease.namespace_name = own_namespace(access);
  lease.name = "gpu-platform-" + configuration.kubernetes_cluster.text;
  lease.identity = std::move(holder);
  return lease;
}

base::Error in_cluster(const kubernetes::ClusterAccess& access, base::Error error) {
  error.message =
      fmt::format("the Kubernetes cluster of {}: {}", access.origin, std::move(error.message));
  return error;
}

}  // namespace

bool has_kubernetes(const config::Configuration& configuration) {
  return configuration.kubernetes_in_cluster || !configuration.kubernetes_kubeconfig.path.empty();
}

base::Result<std::string> stand_by_for_kubernetes(const config::Configuration& configuration,
                                                  std::function<bool(base::Duration)> wait,
                                                  std::function<bool()> must_end,
                                                  std::function<void(const std::string&)> tell) {
  TRY_ASSIGN(const kubernetes::ClusterAccess access, access_of(configuration));
  const execution::LeaseTerms lease = lease_of(access, configuration, new_identity());
  const auto is_ours = execution::stand_by({access, settings_of(configuration), lease,
                                            std::move(wait), std::move(must_end), std::move(tell)});
  if (!is_ours) return std::unexpected(in_cluster(access, is_ours.error()));
  return *is_ours ? lease.identity : std::string();
}

void release_kubernetes_lease(const config::Configuration& configuration,
                              const std::string& data_dir, const std::string& holder) {
  if (!has_kubernetes(configuration)) return;
  const auto access = access_of(configuration);
  const std::string identity = holder.empty() ? kept_identity(data_dir) : holder;
  if (!access || identity.empty()) return;
  const base::Status released =
      execution::release_lease(*access, lease_of(*access, configuration, identity), kReleaseTime);
  if (!released) {
    spdlog::warn("the lease of the Kubernetes cluster is not released, it expires: {}",
                 released.error().message);
  }
}

base::Result<std::unique_ptr<execution::KubernetesEngine>> open_kubernetes(
    const config::Configuration& configuration, const std::string& data_dir,
    const std::string& holder, const execution::EnvironmentSource& environment,
    execution::ObservationSink& sink, execution::WorkloadPort& workload_port,
    std::function<void(const base::Error&)> end, std::function<bool()> must_end) {
  if (!has_kubernetes(configuration)) return nullptr;
  execution::KubernetesEngineOptions options;
  TRY_ASSIGN(options.access, access_of(configuration));
  options.settings = settings_of(configuration);
  const std::string kept = kept_identity(data_dir);
  if (kept.empty()) options.history = execution::ClusterHistory::kNew;
  const std::string own = kept.empty() ? new_identity() : kept;
  const std::string identity = holder.empty() ? own : holder;
  options.lease = lease_of(options.access, configuration, identity);
  options.output_folder = data_dir + "/kubernetes";
  options.output_limit_bytes = static_cast<std::uint64_t>(configuration.output_limit.value());
  options.on_fatal = std::move(end);
  options.must_end = std::move(must_end);
  options.workload_port = &workload_port;
  options.warn = [](const std::string& line) { spdlog::warn("kubernetes {}", line); };
  const kubernetes::ClusterAccess access = options.access;
  auto engine = execution::KubernetesEngine::open(std::move(options), environment, sink);
  if (!engine) return std::unexpected(in_cluster(access, std::move(engine).error()));
  // Not before the engine has seen that a new data directory may have the cluster.
  if (identity != kept) TRY(keep_identity(data_dir, identity));
  spdlog::info("kubernetes cluster=\"{}\" server=\"{}\"", configuration.kubernetes_cluster.text,
               access.server);
  return engine;
}

void warn_of_no_gpus_in_kubernetes(const config::Configuration& configuration,
                                   const controller::Snapshot& snapshot) {
  const Seen seen = seen_in_kubernetes(snapshot);
  if (seen.gpus > 0) return;
  spdlog::warn("kubernetes {}",
               execution::words_for_no_gpus(settings_of(configuration), seen.nodes));
}

}  // namespace gpu_platform::bin
