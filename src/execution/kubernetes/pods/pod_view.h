#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/kubernetes/api_values.h"
#include "kubernetes/json_reader.h"
#include "model/ids.h"

// What the platform keeps of a pod. Pure: from the JSON of the API to a small value.

namespace gpu_platform::execution {

enum class PodPhase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed };

// What all views below read of a pod.
kubernetes::JsonFields fields_of_pods();

// Why Kubernetes ended a pod (condition DisruptionTarget, or the pod's reason NodeLost). A pod that
// was evicted for more use than its own limits allow has kNone: it is its own failure.
enum class Disruption : std::uint8_t {
  kNone,
  kPreempted,  // by kube-scheduler, by the eviction API, by a spot reclaim or a taint of others
  kNodeLost,   // the node is unreachable, not ready or gone
  kPressure,   // by the kubelet, for lack of memory or disk on the node
};

// One of our pods.
struct PodView {
  std::string name;
  std::string namespace_name;
  std::string uid;
  model::AttemptId attempt;
  std::uint32_t rank = 0;
  std::string node;  // empty: not bound
  PodPhase phase = PodPhase::kPending;
  bool is_being_deleted = false;  // has a deletionTimestamp
  // The places of the platform's entries among those of others; absent: it has none there.
  std::optional<std::uint32_t> gang_gate_at;  // of kGangGate among its gates
  std::optional<std::uint32_t> finalizer_at;  // of kFinalizer among its finalizers
  base::Instant started_at;                   // of its main container; unset: it has not started
  base::Instant finished_at;                  // unset: it runs, or it never started
  std::optional<std::int32_t> exit_code;
  // "OOMKilled", "Error", "StartError", … of its main container; "Evicted", "OutOfcpu", … of the
  // pod itself where that has one. With "ContainerStatusUnknown" the exit code is made up.
  std::string end_reason;
  std::string end_message;  // one printable line
  Disruption disruption = Disruption::kNone;
  std::string disruption_text;  // in Kubernetes' words
  // Why it does not run yet, in Kubernetes' words: "Unschedulable: 0/3 nodes…",
  // "ImagePullBackOff: …"; empty: it does, or nothing is said.
  std::string waiting;
  bool is_image_error = false;  // `waiting` is about its image
  std::string ip;

  // All its containers have ended: nothing of it holds a device.
  bool is_over() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  friend bool operator==(const PodView&, const PodView&) = default;
};

// Its image cannot be had, and the registry has spoken: another try gets the same answer.
bool is_final_image_error(const PodView& pod);

// Nothing if labels and name do not both say that it is a pod of an attempt of this cluster's
// platform: users may write such labels on pods of theirs. Whether its namespace is one of jobs is
// for the caller (is_namespace_of_jobs).
std::optional<PodView> view_of_pod(const nlohmann::json& pod, std::string_view cluster);

// A pod of others that the platform has admitted as a part of an attempt (workloads/attempts.h): it
// has kAdoptedLabel and is no pod of view_of_pod(). What its main container is to ours, the first
// container is to it that failed, or else the first.
std::optional<PodView> view_of_adopted_pod(const nlohmann::json& pod, std::string_view cluster);

// A claim of one of our pods, by the same labels.
struct OwnClaim {
  std::string namespace_name;
  model::AttemptId attempt;
  std::uint32_t rank = 0;
};
std::optional<OwnClaim> own_claim_of(const nlohmann::json& claim, std::string_view cluster);
// The same of a pod of others that the platform has admitted.
std::optional<OwnClaim> adopted_claim_of(const nlohmann::json& claim, std::string_view cluster);

// Returns "namespace/name" of an object; "/name" where it has no namespace.
std::string key_of(const nlohmann::json& object);

// A pod of others that uses a node.
struct OtherPod {
  std::string key;  // "namespace/name"
  std::string node;
  std::uint32_t milli_cpus = 0;
  base::Bytes memory;
  std::uint32_t counted_gpus = 0;  // of the resource that is counted
  friend bool operator==(const OtherPod&, const OtherPod&) = default;
};
// The same for a pod on no node yet.
OtherPod amounts_asked_by(const nlohmann::json& pod, std::string_view gpu_resource);
// Nothing if it uses no node (not bound, or over). Requests of init containers, sidecars and
// overhead count as the scheduler counts them.
std::optional<OtherPod> view_of_other_pod(const nlohmann::json& pod, std::string_view gpu_resource);

}  // namespace gpu_platform::execution
