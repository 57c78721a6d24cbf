#include "execution/kubernetes/kubernetes_engine.h"

#include <utility>

#include "execution/kubernetes/cluster/preflight.h"
#include "execution/kubernetes/engine_thread.h"
#include "execution/kubernetes/pods/output_spool.h"
#include "execution/process/kept_output.h"
#include "kubernetes/client.h"
#include "kubernetes/endpoint.h"

namespace gpu_platform::execution {

namespace {

// Whether an engine may go on that has not seen its cluster.
base::Status check_may_wait(const KubernetesEngineOptions& options, base::Error error) {
  if (error.code != base::ErrorCode::kUnavailable) return std::unexpected(std::move(error));
  if (options.history == ClusterHistory::kKnown) return {};
  error.message +=
      "; a daemon that begins with this cluster must see first that no pods of another one are "
      "there: start it again when the cluster answers";
  return std::unexpected(std::move(error));
}

}  // namespace

KubernetesEngine::KubernetesEngine(std::unique_ptr<EngineThread> thread)
    : thread_(std::move(thread)) {}
KubernetesEngine::~KubernetesEngine() = default;

base::Result<std::unique_ptr<KubernetesEngine>> KubernetesEngine::open(
    KubernetesEngineOptions options, const EnvironmentSource& environment, ObservationSink& sink) {
  TRY_ASSIGN(OutputSpool spool,
             OutputSpool::open(options.output_folder, options.output_limit_bytes));
  TRY_ASSIGN(kubernetes::Endpoint endpoint, kubernetes::endpoint_of(options.access));
  TRY_ASSIGN(std::unique_ptr<kubernetes::Client> client, kubernetes::Client::make(options.access));
  const base::Status checked =
      check_cluster(*client, options.settings, options.lease, options.history,
                    {options.open_timeout, options.must_end});
  if (!checked) TRY(check_may_wait(options, checked.error()));
  if (!checked && options.warn) {
    options.warn("the cluster does not answer yet: " + checked.error().message);
  }
  return std::unique_ptr<KubernetesEngine>(new KubernetesEngine(
      std::make_unique<EngineThread>(std::move(options), environment, sink, std::move(client),
                                     std::move(endpoint), std::move(spool))));
}

void KubernetesEngine::start(const StartOrder& order) {
  thread_->post(order);
}
void KubernetesEngine::stop(const StopOrder& order) {
  thread_->post(order);
}
void KubernetesEngine::set_limit(const LimitOrder& order) {
  thread_->post(order);
}
void KubernetesEngine::signal(const SignalOrder&) {}
void KubernetesEngine::forget(const ForgetOrder& order) {
  thread_->post(order);
}
void KubernetesEngine::reset(const ResetOrder& order) {
  thread_->post(order);
}
void KubernetesEngine::adopt(const std::vector<KnownAttempt>& known) {
  thread_->post(AdoptOrder{known});
}
void KubernetesEngine::adopt_conditions(const std::vector<EvidenceObserved>& lasting) {
  if (!lasting.empty()) thread_->post(AdoptConditions{lasting});
}
void KubernetesEngine::open_channel(model::ChannelOrder order, ChannelOpened done) {
  thread_->post(ChannelRequest{std::move(order), std::move(done)});
}
void KubernetesEngine::tell_workload(WorkloadNews news) {
  thread_->post(std::move(news));
}
bool KubernetesEngine::wait_for_nodes(std::chrono::milliseconds time) const {
  return thread_->wait_for_nodes(time);
}
std::string KubernetesEngine::step_of(model::AttemptId attempt) const {
  return thread_->step_of(attempt);
}
bool KubernetesEngine::awaits_output(model::AttemptId attempt) const {
  return thread_->awaits_output(attempt);
}
std::string KubernetesEngine::output_of(model::AttemptId attempt) const {
  return kept_output_path(thread_->output_folder(), attempt);
}
bool KubernetesEngine::has_output(model::JobId job) const {
  return has_kept_output(thread_->output_folder(), job);
}
void KubernetesEngine::follow_output(model::AttemptId attempt) {
  thread_->post(FollowOrder{attempt});
}
void KubernetesEngine::remove_output(std::vector<model::JobId> jobs) {
  thread_->post(RemoveOrder{std::move(jobs)});
}

}  // namespace gpu_platform::execution
