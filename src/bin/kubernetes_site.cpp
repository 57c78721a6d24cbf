#include "bin/kubernetes_site.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "bin/kubernetes_settings.h"
#include "bin/site_policy.h"
#include "execution/kubernetes/lease/standby.h"
#include "kubernetes/kubeconfig.h"
#include "os/replaced_file.h"
#include "os/small_file.h"

namespace gpu_platform::bin {

namespace {

// For the release of a lease when the daemon stops.
constexpr base::Duration kReleaseTime = base::seconds(3);

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

// Returns a unique identity for a process that has no data directory yet.
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

base::Result<std::string> stand_by_for_kubernetes(const config::Configuration& configuration,
                                                  std::function<bool(base::Duration)> wait,
                                                  std::function<bool()> must_end,
                                                  std::function<void(const std::string&)> tell) {
  TRY_ASSIGN(const kubernetes::ClusterAccess access, access_of(configuration));
  const execution::LeaseTerms lease = lease_of(access, configuration, new_identity());
  const auto is_ours = execution::stand_by({access, kubernetes_settings(configuration), lease,
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
  options.settings = kubernetes_settings(configuration);
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

base::Result<std::unique_ptr<execution::ExporterReader>> start_exporter_reader(
    const config::Configuration& configuration, execution::ExporterScraper::Take take) {
  if (configuration.kubernetes_readings == config::KubernetesReadings::kNone) return nullptr;
  TRY_ASSIGN(kubernetes::ClusterAccess access, access_of(configuration));
  const auto warn = [](const std::string& line) { spdlog::warn("kubernetes {}", line); };
  return execution::ExporterReader::start(
      {std::move(access), exporter_settings(configuration), std::move(take), warn});
}

}  // namespace gpu_platform::bin
