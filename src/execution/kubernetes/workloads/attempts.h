#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "execution/engine.h"
#include "execution/kubernetes/pods/attempt_life.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "execution/kubernetes/settings.h"
#include "execution/kubernetes/workloads/owner.h"
#include "execution/kubernetes/workloads/pod.h"

// The life of attempts whose pods others have made: a start admits the pods of the workload that
// wait behind our gate, and from then on they are the attempt's. Orders, pods and answers come in;
// calls and observations go out. Pure, as PodAttempts is.
//
// The truth is in the cluster: an admitted pod has the labels of its attempt and rank. Nothing of
// ours keeps it: when it is gone, what was last seen of it counts. Each of the pods that hold what
// the job asks for has a slot on one of the job's nodes. A pod that has ended leaves its slot to
// the next pod of the workload; that makes a Job's retries a part of the attempt. The other pods of
// the workload are admitted with it and go to any node.
//
// The attempt ends when none of its pods is alive, and none came for workload_settles or its owner
// has finished or was deleted, so that none will come. It is taken back, and its job queued again,
// when the cluster takes a pod away or gives it no node in time.
//
// Ownership: values. Thread: one owner. Cost: the pods of the attempts that changed.

namespace gpu_platform::execution {

enum class WorkloadCallKind : std::uint8_t {
  kMakeClaim,  // that the pod names, for just its devices; before it is admitted
  kDeleteClaim,
  kAdmitPod,   // takes our gate away, chooses the node, and labels it
  kDeletePod,  // its controller may make another, which waits behind the gate
};

// One request that the engine is to make. The answer comes back through answer().
struct WorkloadCall {
  std::uint64_t id = 0;
  WorkloadCallKind kind = WorkloadCallKind::kAdmitPod;
  model::AttemptId attempt;
  std::uint32_t rank = 0;
  std::string namespace_name;
  std::string name;
  std::string uid;
  // For kAdmitPod:
  std::string node;         // its name; empty: any
  bool is_counted = false;  // it holds what the job asks for
  std::uint32_t gate_at = 0;
  bool has_labels = false;
  bool has_node_selector = false;
  // The claim:
  std::string claim;
  std::vector<LaunchGpu> gpus;
  // For kDeletePod:
  std::uint32_t grace_seconds = 0;
};

class WorkloadAttempts {
 public:
  using BootId = NodeBootId;
  // Says which pods of a workload wait behind our gate and no other.
  using Waiting = std::function<std::vector<WorkloadPod>(const std::string& key)>;

  WorkloadAttempts(KubernetesSettings settings, BootId boot_id, Waiting waiting);
  ~WorkloadAttempts();

  // ---- orders
  void start(const StartOrder& order, base::Instant now);
  void stop(const StopOrder& order);
  void set_limit(const LimitOrder& order);
  void forget(const ForgetOrder& order);
  void adopt(const std::vector<KnownAttempt>& known, base::Instant now);
  // Whether its start or adoption came here.
  bool knows(model::AttemptId attempt) const;

  // ---- what is seen: admitted pods (view_of_adopted_pod). Nothing is decided before listed(), and
  // nothing that the core does not know is removed before the first adopt(). What is not seen
  // between begin_list() and listed() is gone.
  void begin_list();
  void see(const PodView& pod);
  void see_gone(const PodView& pod);
  void listed();
  // The same for the claims of admitted pods.
  struct AdoptedClaim {
    std::string namespace_name;
    std::string name;
    model::AttemptId attempt;
    std::uint32_t rank = 0;
  };
  void begin_claim_list();
  void see_claim(const AdoptedClaim& claim, bool is_there);
  void claims_listed();
  // The pods of a workload that wait are others now.
  void touch_workload(const std::string& key);
  void answer(std::uint64_t call, const CallAnswer& answer, base::Instant now);
  // What makes the pods of the workload was asked about, and will make no more.
  void owner_ended(const std::string& key, OwnerEnd how);

  // Does what is due; afterwards the calls and observations are complete.
  void advance(base::Instant now);
  base::Instant next_due() const;  // unset: never
  std::vector<WorkloadCall> take_calls();
  std::vector<Observation> take_observations();
  // The workloads whose owners are to be read: owner_ended() is told of those that have.
  std::vector<std::string> take_owner_questions();

  // What an attempt waits for, in words; empty: it runs, or it is not known.
  std::string step_of(model::AttemptId attempt) const;
  std::vector<model::AttemptId> take_changed_steps() { return attempts_.take_changed_steps(); }
  // The pods of an attempt by rank, as last seen.
  std::vector<PodView> pods_of(model::AttemptId attempt) const;
  // Whether pods of the workload are admitted and alive, its attempt waits for the first one, or it
  // has an attempt at all that is not forgotten.
  bool has_live_pods(const std::string& key) const;
  bool awaits_pods(const std::string& key) const;
  bool has_attempt(const std::string& key) const { return latest_of(key) != nullptr; }
  std::size_t size() const { return attempts_.size(); }

 private:
  struct PodSlot;
  struct Attempt;

  const Attempt* latest_of(const std::string& key) const;
  void take_order(Attempt& attempt, const StartOrder& order);

  void step(Attempt& attempt, base::Instant now);
  void fill_slots(Attempt& attempt, base::Instant now);
  void offer(Attempt& attempt, const WorkloadPod& pod, bool is_holder);
  void judge_start(Attempt& attempt);
  void judge_limits(Attempt& attempt, base::Instant now);
  static StartPlaces places_of(const Attempt& attempt);
  void judge_end(Attempt& attempt, base::Instant now);
  void judge_clean(Attempt& attempt);
  void judge_gone(Attempt& attempt);
  void make_calls(Attempt& attempt, base::Instant now);
  void make_call(Attempt& attempt, PodSlot& slot, WorkloadCall call);
  std::optional<WorkloadCall> next_call(Attempt& attempt, PodSlot& slot, bool is_surplus,
                                        base::Instant now);
  std::optional<WorkloadCall> next_of_offer(const Attempt& attempt, const PodSlot& slot) const;
  void settle(Attempt& attempt, PodSlot& slot, const WorkloadCall& call, bool is_gone,
              base::Instant now);

  KubernetesSettings settings_;
  Waiting waiting_;
  AttemptLives<Attempt> attempts_;
  std::map<std::string, model::AttemptId> by_key_;  // of the latest attempt of each workload
  std::map<std::uint64_t, WorkloadCall> under_way_;
  std::set<std::pair<model::AttemptId, std::string>> not_in_list_;  // uids, of a list that is read
  std::set<std::pair<model::AttemptId, std::uint32_t>> claims_not_in_list_;
  std::vector<WorkloadCall> calls_;
  std::vector<std::string> owner_questions_;
};

}  // namespace gpu_platform::execution
