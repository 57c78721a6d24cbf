#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"

// What the platform keeps of a pod of others that waits behind its gate (kAdmissionGate), and of
// which workload it is a part. Pure: from the JSON of the API to a small value.

namespace gpu_platform::execution {

// What made the pods: an object of a kind that the platform knows, or a pod by itself.
struct WorkloadRef {
  std::string namespace_name;
  std::string kind;  // "Job", "JobSet", "PyTorchJob", "RayCluster", "group", "Pod", …
  std::string name;
  std::string uid;  // another workload of the same name has another one; empty: not known

  // "NAMESPACE/KIND/NAME/UID": the job of the workload carries it (JobSpec::workload).
  std::string key() const;
  bool is_single_pod() const { return kind == "Pod"; }
  // No object makes its pods, so that a deleted one does not come again.
  bool has_no_owner() const { return is_single_pod() || (kind == "group" && uid.empty()); }
  friend bool operator==(const WorkloadRef&, const WorkloadRef&) = default;
};
// Nothing if it is no key.
std::optional<WorkloadRef> workload_of_key(std::string_view key);

// The condition gpu-platform/Admitted of a pod.
inline constexpr std::string_view kAdmittedCondition = "gpu-platform/Admitted";
struct AdmissionCondition {
  bool is_admitted = false;
  std::string reason;   // "NoCapacity", in CamelCase
  std::string message;  // one line
  friend bool operator==(const AdmissionCondition&, const AdmissionCondition&) = default;
};
// Returns the condition of a pod that waits; of the message one printable line.
AdmissionCondition not_admitted(std::string_view reason, std::string_view message);

struct WorkloadPod {
  std::string name;
  std::string namespace_name;
  std::string uid;
  WorkloadRef workload;
  // The object whose replicas say how many pods there will be; "" without one: it is not asked.
  std::string owner_api;  // "batch/v1"
  base::Instant created_at;
  std::uint32_t gate_at = 0;               // the place of our gate
  std::vector<std::string> foreign_gates;  // all but ours
  bool has_labels = false;                 // any, as a JSON patch must know
  bool has_node_selector = false;
  std::map<std::string, std::string> node_selector;  // labels of the nodes that it may have
  std::uint32_t gpus = 0;
  // The ResourceClaim that the platform makes for it, for just the devices that it chooses: one
  // that the pod names, with the annotation gpu-platform/gpus for their number. Empty: none.
  std::string claim;
  // What it asks for that may be a GPU and is not counted in `gpus`, in words; empty: nothing. Such
  // a pod is never admitted.
  std::string uncounted;
  std::uint32_t milli_cpus = 0;
  base::Bytes memory;
  std::optional<std::uint32_t> group_size;  // of kGroupSizeLabel
  std::string queue;                        // of its own label; empty: its namespace's
  std::string image;
  std::vector<std::string> command;
  std::string priority;       // of its annotation gpu-platform/priority; empty: the default
  base::Duration time_limit;  // activeDeadlineSeconds; zero: none
  std::optional<AdmissionCondition> condition;

  friend bool operator==(const WorkloadPod&, const WorkloadPod&) = default;
};

// Nothing if it does not wait behind our gate: it has none, is being deleted, or is over.
//
// The workload of a pod, the first that holds: label gpu-platform/group; a JobSet; a job of
// Kubeflow (training.kubeflow.org/job-name); a RayCluster; a batch Job; the pod alone. Its uid is
// that of the label or of the owner that controls the pod, if that is the workload; else it has
// none, and its name alone tells it from others (the pods of a JobSet without the label of its
// uid).
std::optional<WorkloadPod> view_of_workload_pod(const nlohmann::json& pod,
                                                std::string_view gpu_resource);

}  // namespace gpu_platform::execution
