#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "execution/kubernetes/settings.h"
#include "model/job.h"

// The namespaces of jobs, and which objects of a cluster are the platform's. Users may write the
// platform's labels on objects of theirs. Pure.

namespace gpu_platform::execution {

// The namespace of an attempt's objects. A team's name becomes a DNS label: in lower case, with '-'
// for what such a label does not have. Two teams whose names differ in nothing else share a
// namespace.
std::string namespace_of(const model::JobSpec& spec, const KubernetesSettings& settings);

// Whether namespace_of() could be this one for some job.
bool is_namespace_of_jobs(std::string_view name, const KubernetesSettings& settings);

// Whether a pod or a claim is counted as the platform's own use: it is of one of its jobs, by its
// labels, its name and its namespace, or it has the labels of a workload that was admitted
// (deploy/kubernetes/admission_labels.yaml keeps users from writing those).
bool is_of_platform(const nlohmann::json& object, const KubernetesSettings& settings);

}  // namespace gpu_platform::execution
