#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/kubernetes/settings.h"
#include "execution/kubernetes/workloads/owner.h"
#include "execution/kubernetes/workloads/pod.h"
#include "execution/kubernetes/workloads/port.h"
#include "execution/kubernetes/workloads/spec.h"

// Pods of others that wait behind our gate, as the workloads that they make up: when one is
// complete, it is submitted; while it waits, its pods say why; when it is gone, its job is
// withdrawn. Pure: namespaces, pods, owners and news of jobs come in; submissions, withdrawals and
// calls go out.
//
// A pod counts in a namespace with the label gpu-platform/queue, and only as long as our gate is on
// it. A workload is submitted when all of its pods are there (the group's size, or what its owner
// says, or no new one for workload_settles), and no gate of others is left on any of them.
//
// Ownership: values. Thread: one owner. Cost: the workloads that changed.

namespace gpu_platform::execution {

// The one queue of the platform, as labels name it.
inline constexpr std::string_view kDefaultQueue = "default";

enum class GroupCallKind : std::uint8_t {
  kReadOwner,
  kSetCondition,
  kMakeEvent,
};

// One request that the engine is to make. Only the answer of kReadOwner comes back (owner_seen).
struct GroupCall {
  GroupCallKind kind = GroupCallKind::kReadOwner;
  std::string key;
  std::string path;  // of kReadOwner
  // The pod of the other requests:
  std::string namespace_name;
  std::string name;
  std::string uid;
  AdmissionCondition condition;  // what the condition, or the event, says
  bool is_warning = false;       // of kMakeEvent
};

// Its job waits, and no pod of it will come.
struct WorkloadWithdrawal {
  std::string key;
  std::string_view why;  // kWorkloadDeleted, …
};

class WorkloadGroups {
 public:
  using Nodes = std::function<std::vector<NodeSize>()>;
  // What the latest attempt of a workload has.
  enum class Admitted : std::uint8_t {
    kNothing,  // there is none
    kAwaited,  // it waits for its first pod
    kLivePods,
    kOver,  // its pods are over, and the queue has not said what that means for its job
  };
  using AdmittedOf = std::function<Admitted(const std::string& key)>;

  WorkloadGroups(KubernetesSettings settings, Nodes nodes, AdmittedOf admitted_of);

  // ---- what is seen. Nothing is decided before both were listed once.
  void begin_namespaces();
  void see_namespace(const nlohmann::json& object);
  void remove_namespace(const nlohmann::json& object);
  void namespaces_listed();
  // Whether the platform may admit pods there; until it is told, it may.
  void see_rights(const std::string& namespace_name, bool has_rights);
  bool is_queued(const std::string& namespace_name) const {
    return terms_.contains(namespace_name);
  }
  void begin_pods();
  void see_pod(const nlohmann::json& object);
  void remove_pod(const nlohmann::json& object);
  void pods_listed();
  // The owner as it was read; nothing: it cannot be read.
  void owner_seen(const std::string& key, const std::optional<OwnerFacts>& facts);
  void tell(const WorkloadNews& news);

  void advance(base::Instant now);
  base::Instant next_due() const;  // unset: never
  std::vector<GroupCall> take_calls();
  std::vector<WorkloadSubmission> take_submissions();
  std::vector<WorkloadWithdrawal> take_withdrawals();
  std::vector<std::string> take_changed_keys();  // whose waiting pods are others now

  // The pods of a workload that wait for us alone.
  std::vector<WorkloadPod> ready_pods(const std::string& key) const;
  std::size_t size() const { return groups_.size(); }

 private:
  static constexpr std::string_view kRefusedReason = "Refused";

  struct NamespaceTerms {
    std::string queue;
    std::string user;
    std::string team;
    friend bool operator==(const NamespaceTerms&, const NamespaceTerms&) = default;
  };
  enum class Phase : std::uint8_t {
    kCollecting,  // its pods come
    kSubmitted,   // it was handed to the queue
    kRefused,
    kWaiting,
    kActive,
    kCancelled,
  };
  struct Group {
    WorkloadRef workload;
    std::string owner_api;
    std::map<std::string, WorkloadPod> pods;  // by uid
    Phase phase = Phase::kCollecting;
    bool is_changed = true;  // its pods, since changed_at was set
    base::Instant changed_at;
    bool is_owner_asked = false;
    base::Instant owner_asked_at;
    bool is_owner_known = false;  // read, or found not to be readable
    std::optional<OwnerFacts> owner;
    bool is_withdrawn = false;
    int refusals = 0;
    base::Instant try_again_at;  // of kRefused
    AdmissionCondition wanted;
    base::Instant told_at;
    std::string told_event;
    base::Instant timer;
  };

  Group& group_of(const WorkloadPod& pod);
  void put(WorkloadPod pod);
  void drop(const std::string& uid);
  void change(Group& group, const std::string& key);
  void wake_at(Group& group, const std::string& key, base::Instant at);
  bool counts(const WorkloadPod& pod) const { return terms_.contains(pod.namespace_name); }

  void step(const std::string& key, Group& group, base::Instant now);
  void collect(const std::string& key, Group& group, base::Instant now);
  std::optional<AdmissionCondition> why_incomplete(const std::string& key, Group& group,
                                                   base::Instant now);
  void submit(const std::string& key, Group& group, base::Instant now);
  void refuse(Group& group, const std::string& key, const std::string& why, base::Instant now);
  void judge_empty(const std::string& key, Group& group, base::Instant now);
  void ask_owner(const std::string& key, Group& group, base::Instant now);
  void tell_pods(const std::string& key, Group& group, base::Instant now);
  void tell_event(const std::string& key, Group& group);

  KubernetesSettings settings_;
  Nodes nodes_;
  AdmittedOf admitted_of_;
  bool are_namespaces_listed_ = false;
  bool are_pods_listed_ = false;
  std::map<std::string, NamespaceTerms> terms_;
  std::set<std::string> without_rights_;          // namespaces
  std::map<std::string, Group> groups_;           // by key
  std::map<std::string, WorkloadPod> pods_;       // by uid, in any namespace
  std::set<std::string> namespaces_not_in_list_;  // of a list that is read
  std::set<std::string> pods_not_in_list_;
  std::set<std::string> dirty_;
  std::set<std::pair<base::Instant, std::string>> timers_;
  std::vector<GroupCall> calls_;
  std::vector<WorkloadSubmission> submissions_;
  std::vector<WorkloadWithdrawal> withdrawals_;
  std::set<std::string> changed_keys_;
};

}  // namespace gpu_platform::execution
