#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "execution/engine.h"
#include "execution/kubernetes/cluster/device_name.h"
#include "execution/kubernetes/pods/ranks.h"
#include "execution/kubernetes/settings.h"

// What the platform asks of Kubernetes for an attempt. Pure: the environment and the devices are
// arguments. Ranks are below the number of ranks_of().

namespace gpu_platform::execution {

// Before each label of a job that is a label of its pod: with a name of its own choice, a pod would
// be one of a Service, a policy or a controller of others.
inline constexpr std::string_view kJobLabelPrefix = "job.gpu-platform/";
// The annotation with the job's labels that are no labels of the pod, as a JSON object.
inline constexpr std::string_view kOtherLabels = "gpu-platform/labels";
inline constexpr std::string_view kUserLabel = "gpu-platform/user";
inline constexpr std::string_view kTeamLabel = "gpu-platform/team";
inline constexpr std::string_view kJobName = "gpu-platform/job-name";  // an annotation

struct PodOptions {
  std::uint32_t rank = 0;                // of the processes: one pod for each
  std::vector<std::string> environment;  // NAME=VALUE
  bool has_gate = false;                 // kGangGate: the pods of a gang start together
};

// A pod that Pod Security's "restricted" admits: no capabilities, RuntimeDefault, no privilege
// escalation, no token; on its node; restartPolicy Never; kFinalizer. The error names the field
// that Kubernetes would not take: a command or an environment that is too large or no text, the
// user root. Labels of the job that Kubernetes would not take, or that belong to others (with a
// '/'), are together in the annotation kOtherLabels: no user sets a label that steers the cluster.
// The annotations of the job, which are among those that the site names, are there as they are.
base::Result<nlohmann::json> pod_manifest(const StartOrder& order, const PodOptions& options,
                                          const KubernetesSettings& settings);
// A ResourceClaim (resource.k8s.io/v1) pinned to the rank's GPUs by their UUIDs: one request for
// each, "gpu-0", "gpu-1", … With DeviceMode::kOwned it has the finalizer by which the
// controller-manager frees its devices when the pod is over. Such a claim must not be left without
// an allocation: the finalizer would keep it for good.
nlohmann::json claim_manifest(const StartOrder& order, std::uint32_t rank,
                              const KubernetesSettings& settings);
// The same for a pod of others that is admitted: the claim that the pod names. `labels`: those of
// its attempt.
nlohmann::json adopted_claim_manifest(std::string_view namespace_name, std::string_view name,
                                      const nlohmann::json& labels,
                                      const std::vector<LaunchGpu>& gpus,
                                      const KubernetesSettings& settings);
// The status of P2: allocation of the devices (as many as the rank's GPUs) and the reservation for
// the pod. DeviceConfigs has the configuration that the allocation gets.
nlohmann::json claim_status(const StartOrder& order, std::uint32_t rank,
                            const std::vector<DeviceName>& devices, std::string_view pod_uid,
                            const KubernetesSettings& settings);
// The headless service by which a gang's pods know each other; needed where there are several
// ranks.
nlohmann::json service_manifest(const StartOrder& order, const KubernetesSettings& settings);

}  // namespace gpu_platform::execution
