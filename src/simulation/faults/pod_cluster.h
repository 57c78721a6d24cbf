#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/virtual_engine.h"
#include "simulation/faults/findings.h"
#include "simulation/faults/truth.h"

namespace gpu_platform::simulation {

// A node of the simulated cluster.
struct PodNode {
  model::NodeInfo info;  // with its machine's present CPUs and memory
  std::string uid;       // of the Node; another one after the node was replaced
  bool is_there = true;
  bool is_reachable = true;
  bool is_cordoned = false;
  base::Instant unreachable_since;
  std::uint32_t whole_cpus = 0;  // that the machine had at first
  std::uint32_t others_cpus = 0;
  base::Bytes others_memory;
  std::set<std::string> lent;  // UUIDs of GPUs that claims of others have
  std::uint64_t version = 1;   // counts the changes of all this
  base::Instant told_at;       // when a watch tells the last change
};

// A call with what its manifest would say.
struct PodRequest {
  execution::Call call;
  std::string pod_uid;                         // a precondition of a deletion; empty: none
  std::optional<execution::StartOrder> order;  // of kMakePod, kMakeClaim and kMakeService
};

// A change as a watch tells it.
struct PodEvent {
  execution::PodView pod;
  bool is_gone = false;
  base::Instant told_at;
};
struct ClaimEvent {
  execution::ClaimSeen claim;
  base::Instant told_at;
};

// A Kubernetes cluster on virtual time: the API server with pods, claims and services,
// kube-scheduler with its allocator, the kubelets, and the controllers that delete and evict. Each
// acts some time after it could. It never lies; the way to it does (PodEngine).
//
// Checks:
//   made-once  a rank of an attempt has at most one pod, ever
//   claimed    a container that runs has a claim on its devices
// and tells Truth what really runs. Pure. Ownership: refers to all that it is made with. Cost:
// O(log pods) for each step of a pod.
class PodCluster {
 public:
  PodCluster(base::Prng random, execution::VirtualScript& script, Truth& truth, Findings& findings,
             Plant plant)
      : random_(random), script_(script), truth_(truth), findings_(findings), plant_(plant) {}

  // ---- time
  void advance(base::Instant now);
  std::optional<base::Instant> next_event() const;

  // ---- the API
  execution::CallAnswer apply(const PodRequest& request);
  std::vector<execution::PodView> pods() const;
  std::vector<execution::ClaimSeen> claims() const;
  const std::vector<PodEvent>& pod_events() const { return pod_events_; }
  const std::vector<ClaimEvent>& claim_events() const { return claim_events_; }
  const std::map<std::string, PodNode>& nodes() const { return nodes_; }

  // ---- what happens to it
  void put_node(const model::NodeInfo& info);
  bool has_node(const std::string& name) const { return nodes_.contains(name); }
  // Something happens to the node or to what is on it: it is cut off or back, replaced, rebooted,
  // cordoned, made smaller; others come to it or leave.
  void trouble(const std::string& name);
  // Others take the place of a pod.
  void evict_one();
  // The container of a rank of the attempt ends now. Returns false if none runs.
  bool finish(model::AttemptId attempt, const model::Exit& exit);
  std::vector<model::AttemptId> live_attempts() const;
  // From here on nothing happens by itself any more, and all nodes are whole.
  void heal();

  bool is_empty() const { return pods_.empty() && claims_.empty() && services_.empty(); }
  std::string contents() const;

 private:
  struct Pod {
    execution::PodView view;
    execution::StartOrder order;
    std::vector<std::string> devices;
    execution::VirtualRun run;
    std::uint32_t grace_seconds = 0;      // of its deletion
    bool is_running = false;              // its container has processes
    bool is_told_to_end = false;          // the kubelet has seen the deletion
    std::uint32_t told_grace = 0;         // with this grace
    base::Instant ends_at;                // by itself
    base::Instant term_at;                // when it follows SIGTERM; unset: never
    base::Instant kill_at;                // unset: never
    std::optional<std::int32_t> outcome;  // of the container; the kubelet has not said so yet
    base::Instant ended_at;
    base::Instant act_at;  // its entry in due_; unset: none
  };
  struct Claim {
    execution::ClaimSeen seen;
    std::vector<std::string> devices;
    bool is_deleted = false;
    std::string reserved_for;  // uid of a pod; empty: not allocated
  };
  using RankId = std::pair<model::AttemptId, std::uint32_t>;

  base::Instant soon();
  void schedule(Pod& pod, base::Instant at);
  void tell(const Pod& pod, bool is_gone = false);
  void tell(const Claim& claim, bool is_there);
  void change(PodNode& node);

  execution::CallAnswer make_pod(const PodRequest& request);
  execution::CallAnswer make_claim(const PodRequest& request);
  execution::CallAnswer make_service(const PodRequest& request);
  execution::CallAnswer delete_claim(const std::string& name);
  execution::CallAnswer change_pod(const PodRequest& request);

  void act(Pod& pod);
  void bind(Pod& pod);
  std::string unschedulable(const Pod& pod) const;
  void begin(Pod& pod);
  void start(Pod& pod);
  void obey(Pod& pod);
  void run(Pod& pod);
  void end(Pod& pod, std::int32_t code);
  void say_how_it_ended(Pod& pod);
  void fail(Pod& pod, std::string reason, std::string message);
  void remove(Pod& pod, std::uint32_t grace_seconds);
  void disrupt(Pod& pod, execution::Disruption why);
  void die(Pod& pod);
  void collect();
  void set_reachable(PodNode& node, bool is_reachable);
  void replace(PodNode& node);
  void reboot(PodNode& node);
  void shrink(PodNode& node);
  void lend(PodNode& node);
  template <class Visit>
  void for_each_on(const std::string& node, Visit&& visit);
  const execution::VirtualRun& run_of(const execution::StartOrder& order);

  base::Prng random_;
  execution::VirtualScript& script_;
  Truth& truth_;
  Findings& findings_;
  Plant plant_;
  base::Instant now_;
  bool is_healed_ = false;
  std::uint64_t last_uid_ = 0;
  std::map<std::string, PodNode> nodes_;
  std::map<std::string, Pod> pods_;  // by name, as the next two
  std::map<std::string, Claim> claims_;
  std::map<std::string, std::string> services_;  // the uid of the pod that owns it
  std::map<model::AttemptId, execution::VirtualRun> runs_;
  std::set<RankId> made_;
  std::set<std::pair<base::Instant, std::string>> due_;  // pods
  std::vector<PodEvent> pod_events_;
  std::vector<ClaimEvent> claim_events_;
};

}  // namespace gpu_platform::simulation
