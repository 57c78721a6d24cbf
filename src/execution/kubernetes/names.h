#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"
#include "model/job.h"
#include "model/resource_request.h"

// The names of what the platform makes in a cluster. They follow from the cluster's name, the job,
// the attempt and the rank alone, so that making an object twice is harmless.

namespace gpu_platform::execution {

inline constexpr std::string_view kClusterLabel = "gpu-platform/cluster";
inline constexpr std::string_view kJobLabel = "gpu-platform/job";
inline constexpr std::string_view kAttemptLabel = "gpu-platform/attempt";
inline constexpr std::string_view kRankLabel = "gpu-platform/rank";
inline constexpr std::string_view kQueueLabel = "gpu-platform/queue";  // of workloads of others
inline constexpr std::string_view kGroupLabel =
    "gpu-platform/group";  // of workloads of others: pods of one
inline constexpr std::string_view kGroupSizeLabel = "gpu-platform/group-size";
// The cluster's name, on a pod of others that the platform has admitted.
inline constexpr std::string_view kAdoptedLabel = "gpu-platform/adopted";
inline constexpr std::string_view kAdmissionGate = "gpu-platform/admission";
inline constexpr std::string_view kGangGate = "gpu-platform/gang";
inline constexpr std::string_view kMainContainer = "main";  // the job's own in a pod
// Keeps a pod's end readable until the platform has recorded it.
inline constexpr std::string_view kFinalizer = "gpu-platform/attempt";

// A job has at most so many pods: one for each node, or one for each GPU of a node.
inline constexpr std::uint32_t kMaxRanks = 16 * model::kMaxGangNodes;

// A pod and its claim: "gp-CLUSTER-JOB-ATTEMPT-RANK".
std::string object_name(std::string_view cluster, model::AttemptId attempt, std::uint32_t rank);
// The headless service of a gang: "gp-CLUSTER-JOB-ATTEMPT".
std::string service_name(std::string_view cluster, model::AttemptId attempt);

}  // namespace gpu_platform::execution
