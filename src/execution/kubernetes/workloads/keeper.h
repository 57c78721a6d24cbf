#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "execution/engine.h"
#include "execution/kubernetes/cluster/cluster_view.h"
#include "execution/kubernetes/settings.h"
#include "execution/kubernetes/workloads/attempts.h"
#include "execution/kubernetes/workloads/groups.h"
#include "execution/kubernetes/workloads/port.h"
#include "kubernetes/client.h"
#include "kubernetes/reflector.h"

namespace gpu_platform::execution {

// Joins the workloads of others (WorkloadGroups) and their attempts (WorkloadAttempts) to the API
// server and to the queue. If the site admits no workloads, it only keeps the attempts that it
// has admitted before. Thread: the engine's.
class WorkloadKeeper {
 public:
  // All outlive it. `workload_port` may be null where the settings admit no workloads.
  // `warn` takes lines for the log; it may be empty.
  WorkloadKeeper(kubernetes::Client& client, const KubernetesSettings& settings,
                 const ClusterView& view, WorkloadPort* workload_port, ObservationSink& sink,
                 std::function<void(const std::string& line)> warn);

  // What is to be followed for it.
  using Followed = std::pair<kubernetes::Followed, kubernetes::FollowHandlers>;
  std::vector<Followed> followed();
  // All that the engine follows was listed once.
  void listed();

  // Orders for attempts of workloads; the others are not for it.
  WorkloadAttempts& attempts() { return attempts_; }
  const WorkloadAttempts& attempts() const { return attempts_; }
  void tell(const WorkloadNews& news);

  // Does what is due, and makes the calls.
  void work(base::Instant now);
  base::Instant next_due() const;  // unset: never

 private:
  void make(WorkloadCall call);
  void make(const GroupCall& call, base::Instant now);
  void see_namespace(const nlohmann::json& object);
  void ask_for_rights(const std::string& namespace_name);
  void ask_for_missing_rights(base::Instant now);
  void ask_whether_finished(const std::string& key);
  void say_admitted(const WorkloadCall& call);
  void set_condition(const GroupCall& call);
  void send_condition(const GroupCall& call);

  kubernetes::Client& client_;
  const KubernetesSettings& settings_;
  const ClusterView& view_;
  WorkloadPort* const workload_port_;
  ObservationSink& sink_;
  WorkloadGroups groups_;
  WorkloadAttempts attempts_;
  std::function<void(const std::string& line)> warn_;
  std::map<std::string, bool> rights_;  // in queued namespaces, as far as they are known
  base::Instant rights_asked_at_;
  bool is_listed_ = false;
  std::set<model::AttemptId> said_admitted_;  // of live attempts
  // By the uid of a pod: its condition is set by one request after the other, and what it says of
  // an admitted pod is the last word.
  std::map<std::string, std::optional<GroupCall>> conditions_;  // under way, and what comes next
  std::map<std::string, model::AttemptId> admitted_;
};

}  // namespace gpu_platform::execution
