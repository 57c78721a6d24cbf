#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "execution/attempt_access.h"
#include "execution/engine.h"
#include "execution/environment_source.h"
#include "execution/kubernetes/engine_options.h"
#include "execution/kubernetes/workloads/port.h"
#include "model/channel.h"

namespace gpu_platform::execution {

class EngineThread;  // engine_thread.h

// Runs jobs as pods of a Kubernetes cluster: we choose the node and the GPUs, Kubernetes does the
// rest (docs/kubernetes.md). What an attempt has in the cluster follows from its id, so a repeated
// start makes nothing twice, and what runs is found again by its labels.
//
// A job's time limit is kept by this engine: a daemon that is away enforces none until it is back.
// Signals are not delivered: Kubernetes has none.
//
// A job with a `workload` has pods already, which others have made: its start admits them
// (workloads/attempts.h).
//
// Thread: one of its own; calls post an order and return. Observations come from that thread, of
// nodes and GPUs, too. The end of the engine ends no job.
class KubernetesEngine : public Engine, public AttemptAccess {
 public:
  // Looks at the cluster (check_cluster). A cluster that does not answer is an error only if it is
  // kNew, because nothing tells then whose pods are there: else the engine goes on trying and says
  // so. Environment and sink outlive it.
  static base::Result<std::unique_ptr<KubernetesEngine>> open(KubernetesEngineOptions options,
                                                              const EnvironmentSource& environment,
                                                              ObservationSink& sink);
  ~KubernetesEngine() override;

  void start(const StartOrder& order) override;
  void stop(const StopOrder& order) override;
  void set_limit(const LimitOrder& order) override;
  void signal(const SignalOrder& order) override;
  void forget(const ForgetOrder& order) override;
  // Refused for each GPU: nodes of a cluster are reset by what runs the cluster.
  void reset(const ResetOrder& order) override;
  void adopt(const std::vector<KnownAttempt>& known) override;
  void adopt_conditions(const std::vector<EvidenceObserved>& lasting) override;

  // Opens a channel into the pod of an attempt's first rank (kubernetes/pod_streams.h has what
  // Kubernetes cannot do). A client that attaches is shown the last lines of the log first. An
  // error if the pod does not run. What the cluster refuses is told on the channel.
  void open_channel(model::ChannelOrder order, ChannelOpened done) override;
  // What the attempt waits for in Kubernetes, in words; empty: it runs, or is not known.
  std::string step_of(model::AttemptId attempt) const override;
  std::string output_of(model::AttemptId attempt) const override;
  void follow_output(model::AttemptId attempt) override;
  // False after half a minute without success.
  bool awaits_output(model::AttemptId attempt) const override;
  bool has_output(model::JobId job) const override;
  void remove_output(std::vector<model::JobId> jobs) override;

  // How a workload of others stands. Any thread.
  void tell_workload(WorkloadNews news);

  // Waits until all nodes were told; false after the time. Any thread.
  bool wait_for_nodes(std::chrono::milliseconds time) const;

 private:
  explicit KubernetesEngine(std::unique_ptr<EngineThread> thread);
  const std::unique_ptr<EngineThread> thread_;
};

}  // namespace gpu_platform::execution
