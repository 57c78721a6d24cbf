#include "bin/cluster_part.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "bin/found_nodes.h"
#include "bin/kubernetes_settings.h"
#include "bin/kubernetes_site.h"
#include "bin/nodes_wait.h"
#include "bin/site_policy.h"
#include "bin/site_users.h"
#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

constexpr model::EngineKind kOfCluster = model::EngineKind::kKubernetes;

}  // namespace

base::Result<std::unique_ptr<ClusterPart>> ClusterPart::open(
    const Options& options, const config::Configuration& configuration, CorePart& core) {
  std::unique_ptr<ClusterPart> cluster(new ClusterPart(core, options.users));
  if (!has_kubernetes(configuration)) return cluster;
  TRY_ASSIGN(model::UserRange users, users_of_site(configuration, false));
  cluster->workloads_ =
      std::make_unique<WorkloadQueue>(options.users, std::move(users), core.store());
  TRY_ASSIGN(cluster->engine_,
             open_kubernetes(configuration, core.data_dir(), options.lease_holder,
                             core.environments(), cluster->observations_, *cluster->workloads_,
                             options.on_fatal, options.must_end));
  return cluster;
}

ClusterPart::ClusterPart(CorePart& core, std::shared_ptr<host::UserDirectory> users)
    : core_(core), users_(std::move(users)) {}

ClusterPart::~ClusterPart() {
  stop();
}

void ClusterPart::add_engine(EngineTable& engines) {
  if (is_empty()) return;
  engines[kOfCluster] = {engine_.get(), engine_.get()};
}

void ClusterPart::connect() {
  if (is_empty()) return;
  observations_.connect(core_.loop());
  core_.add_listener(*workloads_);
}

base::Status ClusterPart::start(const config::Configuration& configuration) {
  if (is_empty()) return {};
  workloads_->start(
      core_.snapshot(),
      [this](model::Command command, controller::CommandDone done) {
        core_.loop().command(std::move(command), std::move(done));
      },
      [this](execution::WorkloadNews news) { engine_->tell_workload(std::move(news)); });
  return start_reading(configuration);
}

base::Status ClusterPart::start_reading(const config::Configuration& configuration) {
  const bool is_wanted = configuration.kubernetes_readings != config::KubernetesReadings::kNone;
  if (!is_wanted || frames_ == nullptr) return {};
  readings_ = std::make_unique<monitoring::ExportedReadings>(
      observations_, [this] { return core_.snapshot(); }, *users_, *frames_, os::wall_now);
  TRY_ASSIGN(reader_, start_exporter_reader(configuration,
                                            [this](const std::string& node,
                                                   std::map<std::string, model::GpuMetrics> gpus) {
                                              return readings_->take(node, std::move(gpus));
                                            }));
  return {};
}

std::shared_ptr<const model::GpuReading> ClusterPart::latest(std::string_view uuid) const {
  return readings_ == nullptr ? nullptr : readings_->latest(uuid);
}

std::string ClusterPart::why_no_readings(std::string_view node) const {
  if (reader_ == nullptr) return "engines.kubernetes.readings is none";
  return reader_->why_none(node);
}

void ClusterPart::wait_for_nodes(const std::function<bool()>& must_end) {
  if (is_empty()) return;
  are_nodes_known_ = are_known_in_time(
      [this](std::chrono::milliseconds time) { return engine_->wait_for_nodes(time); }, must_end);
  if (are_nodes_known_ || (must_end && must_end())) return;
  spdlog::warn(
      "the nodes of the Kubernetes cluster are not known yet; they are added when they are");
}

void ClusterPart::warn_of_what_is_missing(const config::Configuration& configuration) const {
  if (!are_nodes_known_) return;
  const NodeCount found = nodes_of(kOfCluster, *core_.snapshot());
  if (found.gpus > 0) return;
  spdlog::warn("kubernetes {}",
               execution::words_for_no_gpus(kubernetes_settings(configuration), found.nodes));
}

// The reader stays, for clients that ask until the door is gone.
void ClusterPart::stop() {
  if (reader_ != nullptr) reader_->stop();
  if (workloads_ != nullptr) workloads_->stop();
  observations_.disconnect();
}

}  // namespace gpu_platform::bin
