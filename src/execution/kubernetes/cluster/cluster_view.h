#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/engine.h"
#include "execution/kubernetes/cluster/device_claims.h"
#include "execution/kubernetes/cluster/device_name.h"
#include "execution/kubernetes/cluster/device_pools.h"
#include "execution/kubernetes/cluster/device_reports.h"
#include "execution/kubernetes/cluster/device_taint_rules.h"
#include "execution/kubernetes/cluster/node_facts.h"
#include "execution/kubernetes/cluster/node_gpus.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "execution/kubernetes/settings.h"

// The nodes and GPUs of a cluster, from Nodes, ResourceSlices, ResourceClaims, DeviceTaintRules and
// the pods of others. Pure: objects in, observations out, each only when it changed. Cost follows
// what changed: a change touches its node alone, that of a rule the nodes of its pool.
//
// Rules: slices of the highest generation of a pool, and only if the pool is complete. A GPU is
// what settings.driver publishes with attribute type "gpu" (or static "mig", as a GPU of its
// profile). With DeviceMode::kCounts a node's GPUs are `resource` of its capacity, with names of
// their own ("NODE/0"), and its type is that of the label nvidia.com/gpu.product. Network levels:
// zone from topology.kubernetes.io/zone, rack from settings.rack_label, domain from
// nvidia.com/gpu.clique.
//
// A device that the kubelet calls Unhealthy to a pod of the platform is a fault of its GPU. It is
// over when a pod that has the device is told Healthy, or when the driver withdraws the device; the
// end of the pod says nothing.
//
// For any objects, nothing here throws or ends the program. Thread: one owner.

namespace gpu_platform::execution {

// What a cluster's objects can say. Each is an Observation.
using ClusterObservation =
    std::variant<NodeObserved, NodeUnreachable, TaintObserved, EvidenceObserved>;

class ClusterView {
 public:
  explicit ClusterView(KubernetesSettings settings);

  // Objects as they come; a deleted one by its name. Between begin_list() and end_list() of a kind,
  // what is not told is gone. A labelled pod has the platform's label: it counts as one of others
  // unless it is the platform's (is_of_platform). If a cluster has no DeviceTaintRules, their
  // list is empty.
  enum class Kind : std::uint8_t { kNode, kSlice, kClaim, kOtherPod, kLabelledPod, kTaintRule };
  void begin_list(Kind kind);
  void end_list(Kind kind);
  void put(Kind kind, const nlohmann::json& object);
  void remove(Kind kind, const nlohmann::json& object);

  // The core knows this node from an earlier time: if the cluster does not have it, it is told to
  // be unreachable.
  void expect(std::string_view node);
  // The core keeps this fault of a node, or of one of its GPUs, as lasting: if it does not last any
  // more when the node is told next, it is told to be over.
  void adopt_fault(const EvidenceObserved& lasting);

  // Nothing is told before all kinds were listed once (with DeviceMode::kCounts slices, claims
  // and rules need not be); then everything. `now` decides when an
  // unreachable node is lost (settings.lost_after); it is counted from the Node's own time, or,
  // where that is not told or lies ahead, from the first call that saw it. Of a lost node nothing
  // else is told, and everything again when it is back. Nodes come by name; of each, first the
  // node, then its service, then its GPUs, then what of it speaks of faults: as evidence that
  // begins and ends, also across a loss of the node. Its time is not set: it is that of the core,
  // which has just learned of a new machine. Another machine of the name begins its faults anew.
  std::vector<ClusterObservation> take_changes(base::Instant now);
  // When take_changes() has something to say although nothing came; unset: never.
  base::Instant next_due() const;

  // Returns the device of a GPU, for starts; nothing if it is not published now, or is counted
  // only.
  std::optional<DeviceName> device_of(std::string_view node, std::string_view gpu_uuid) const;
  // The node's id for StartOrder::boot_id (its UID); empty: no such node.
  std::string boot_id_of(std::string_view node) const;
  // Calls visit(info, labels) with every node that was told and is not lost, by name.
  using Labels = std::map<std::string, std::string>;
  void for_each_node(const std::function<void(const model::NodeInfo&, const Labels&)>& visit) const;
  // The node's label kubernetes.io/hostname, by which pods choose it; its name if it has none.
  std::string host_name_of(std::string_view node) const;
  // Nodes of the cluster that are ours, lost or not.
  std::size_t nodes() const;

 private:
  __extension__ using Wide = __int128;  // sums of any number of pods

  // A pod that uses something of its node and is not the platform's; its kind is that of the list
  // which told it last. If its label changes, two lists tell of it, in any order.
  struct OtherPodOfKind {
    OtherPod pod;
    Kind kind = Kind::kOtherPod;
  };

  // What was told of a node, as far as it still holds.
  struct Told {
    std::optional<model::NodeInfo> info;
    std::optional<TaintObserved> taint;
    std::map<std::string, std::string> gpus;
    bool is_lost = false;
  };
  // What speaks of faults, in words, with the GPU's UUID; of the whole node without.
  using Faults = std::set<std::pair<std::string, std::string>>;
  struct Node {
    std::optional<NodeFacts> facts;  // absent: there is no such node, or it is not ours
    std::string gone_cause;
    bool is_expected = false;
    base::Instant seen_unreachable;   // unset: it is not
    base::Instant due;                // when it will be lost; unset: never
    Faults faults;                    // that were told and last
    std::string faults_uid;           // of the Node of which they were told
    Faults adopted;                   // that may last, as an earlier daemon was told
    std::set<std::string> unhealthy;  // GPUs of which that was said, and nothing else since
    Wide others_milli_cpus = 0;
    Wide others_memory = 0;
    Wide others_gpus = 0;
    std::size_t others = 0;
    Told told;
  };

  void put_node(const nlohmann::json& object);
  void remove_by_key(Kind kind, const std::string& key);
  void remove_node(const std::string& name, std::string_view cause);
  void put_pod(Kind kind, const nlohmann::json& object);
  void remove_pod(Kind kind, const std::string& key);
  void see_reports(Kind kind, const nlohmann::json& object);
  void put_claim(const nlohmann::json& object);
  void put_rule(const nlohmann::json& object);
  void remove_rule(const std::string& name);
  void mark_devices(const std::set<DeviceName>& devices);
  void mark_selected(const TaintRule& rule);
  std::set<std::string> keys_of(Kind kind) const;

  std::string lost_cause(const std::string& name, Node& node, base::Instant now);
  void set_due(const std::string& name, Node& node, base::Instant due);
  void tell(const std::string& name, Node& node, std::vector<ClusterObservation>& changes);
  Faults faults_of(const std::string& name, Node& node, const NodeGpus& gpus) const;
  static void tell_faults(const std::string& name, Node& node, Faults faults,
                          std::vector<ClusterObservation>& changes);
  void tell_lost(const std::string& name, Node& node, std::string cause,
                 std::vector<ClusterObservation>& changes);

  static constexpr std::size_t kKinds = 6;
  KubernetesSettings settings_;
  std::map<std::string, Node, std::less<>> nodes_;
  DevicePools pools_;
  DeviceClaims claims_;
  DeviceTaintRules rules_;
  DeviceReports reports_;  // of the platform's pods
  std::map<std::string, OtherPodOfKind, std::less<>> others_;
  std::set<std::string> changed_;
  std::set<std::pair<base::Instant, std::string>> due_;
  std::array<std::optional<std::set<std::string>>, kKinds> unseen_;  // of a list that is under way
  std::array<bool, kKinds> is_listed_ = {};
};

}  // namespace gpu_platform::execution
