#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/units.h"
#include "execution/attempt_access.h"
#include "execution/engine.h"
#include "execution/environment_source.h"
#include "execution/kubernetes/cluster/cluster_view.h"
#include "execution/kubernetes/cluster/device_configs.h"
#include "execution/kubernetes/cluster/reflectors.h"
#include "execution/kubernetes/cluster_feed.h"
#include "execution/kubernetes/engine_options.h"
#include "execution/kubernetes/engine_status.h"
#include "execution/kubernetes/lease/lease_keeper.h"
#include "execution/kubernetes/pods/awaited_output.h"
#include "execution/kubernetes/pods/client_streams.h"
#include "execution/kubernetes/pods/idle_watch.h"
#include "execution/kubernetes/pods/output_follower.h"
#include "execution/kubernetes/pods/output_spool.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/pods/pod_calls.h"
#include "execution/kubernetes/workloads/keeper.h"
#include "execution/kubernetes/workloads/port.h"
#include "kubernetes/client.h"
#include "kubernetes/endpoint.h"
#include "model/channel.h"
#include "model/ids.h"

namespace gpu_platform::execution {

// What is posted to the engine's thread besides the orders of every engine.
struct AdoptOrder {
  std::vector<KnownAttempt> known;
};
struct AdoptConditions {
  std::vector<EvidenceObserved> lasting;
};
struct FollowOrder {  // of the attempt's output
  model::AttemptId attempt;
};
struct RemoveOrder {  // of kept output
  std::vector<model::JobId> jobs;
};
struct ChannelRequest {
  model::ChannelOrder order;
  AttemptAccess::ChannelOpened done;
};
struct InputSeen {  // from a client of the job
  model::AttemptId attempt;
};
using EngineMessage = std::variant<StartOrder, StopOrder, LimitOrder, ForgetOrder, AdoptOrder,
                                   FollowOrder, RemoveOrder, ChannelRequest, WorkloadNews,
                                   EndQuestion, InputSeen, ResetOrder, AdoptConditions>;

// The thread of a Kubernetes engine: it takes messages from an inbox, owns the parts that speak to
// the cluster and decide what is asked of it, and drives each of them when something came or is
// due. The inbox is not bounded: its senders are the core, which has as many orders as attempts,
// and channels.
//
// Ownership: of all parts; they live on this thread alone. Thread: all public functions may be
// called from any.
class EngineThread {
 public:
  // Starts the thread. Environment and sink outlive it; the sink is called on this thread.
  EngineThread(KubernetesEngineOptions options, const EnvironmentSource& environment,
               ObservationSink& sink, std::unique_ptr<kubernetes::Client> client,
               kubernetes::Endpoint endpoint, OutputSpool spool);
  // Waits for what is done now. Messages that are not carried out yet are dropped.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  void post(EngineMessage message);

  // These are KubernetesEngine's.
  bool wait_for_nodes(std::chrono::milliseconds time) { return status_.wait_for_nodes(time); }
  std::string step_of(model::AttemptId attempt) const { return status_.step_of(attempt); }
  bool awaits_output(model::AttemptId attempt) const;
  const std::string& output_folder() const { return spool_.folder(); }

 private:
  void follow_all();
  ClientStreams::Hooks stream_hooks();

  void run();
  void work();
  void tell_nodes(base::Instant now);
  void tell(Observation observation);
  base::Duration sleep_time() const;

  bool is_workload(model::AttemptId attempt) const { return workloads_.attempts().knows(attempt); }
  void on(StartOrder& order);
  void on(StopOrder& order);
  void on(LimitOrder& order);
  void on(ForgetOrder& order);
  void on(AdoptOrder& order);
  void on(AdoptConditions& order);
  void on(FollowOrder& order);
  void on(RemoveOrder& order);
  void on(ChannelRequest& request);
  void on(WorkloadNews& news);
  void on(EndQuestion& question);
  void on(InputSeen& input);
  void on(ResetOrder& order);

  const KubernetesEngineOptions options_;
  const EnvironmentSource& environment_;
  ObservationSink& sink_;
  const std::unique_ptr<kubernetes::Client> client_;
  OutputSpool spool_;
  OutputFollower output_;
  LeaseKeeper lease_;
  ClusterView view_;
  DeviceConfigs configs_;
  PodAttempts attempts_;
  WorkloadKeeper workloads_;
  PodCalls calls_;
  IdleWatch idle_watch_;
  AwaitedOutput awaited_output_;
  ClusterFeed feed_;
  Reflectors reflectors_;
  bool is_listed_ = false;
  EngineStatus status_;

  std::mutex mutex_;
  bool is_stopping_ = false;          // guarded by mutex_
  std::vector<EngineMessage> inbox_;  // guarded by mutex_
  ClientStreams streams_;             // its thread posts messages
  std::thread thread_;                // last: it uses all others
};

}  // namespace gpu_platform::execution
