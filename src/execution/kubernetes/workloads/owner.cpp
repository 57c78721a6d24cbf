#include "execution/kubernetes/workloads/owner.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMaxPods = 1'000'000;

std::int64_t count_or(const Json& object, JsonPath path, std::int64_t otherwise) {
  return std::clamp<std::int64_t>(number_at(object, path, otherwise), 0, kMaxPods);
}

std::int64_t pods_of_batch_job(const Json& spec) {
  const std::int64_t parallelism = count_or(spec, {"parallelism"}, 1);
  const Json& completions = at(spec, {"completions"});
  return completions.is_number_integer()
             ? std::min(parallelism, count_or(spec, {"completions"}, kMaxPods))
             : parallelism;
}

std::int64_t pods_of_job(const Json& job) {
  const std::int64_t all = pods_of_batch_job(map_at(job, {"spec"}));
  if (!at(job, {"spec", "completions"}).is_number_integer()) return all;
  const std::int64_t left =
      count_or(job, {"spec", "completions"}, kMaxPods) - count_or(job, {"status", "succeeded"}, 0);
  return std::clamp<std::int64_t>(left, 0, all);
}

std::int64_t pods_of_job_set(const Json& set) {
  std::int64_t pods = 0;
  for (const Json& jobs : list_at(set, {"spec", "replicatedJobs"})) {
    pods += count_or(jobs, {"replicas"}, 1) * pods_of_batch_job(map_at(jobs, {"template", "spec"}));
  }
  return pods;
}

// As KubeRay counts them: minReplicas is the least also where replicas says less.
std::int64_t pods_of_ray_group(const Json& group) {
  if (flag_at(group, {"suspend"})) return 0;
  const std::int64_t replicas =
      std::max(count_or(group, {"replicas"}, 0), count_or(group, {"minReplicas"}, 0));
  return std::min(replicas, count_or(group, {"maxReplicas"}, kMaxPods)) *
         std::max<std::int64_t>(count_or(group, {"numOfHosts"}, 1), 1);
}

std::int64_t pods_of_ray(const Json& cluster) {
  std::int64_t pods = 1;
  for (const Json& group : list_at(cluster, {"spec", "workerGroupSpecs"})) {
    pods += pods_of_ray_group(group);
  }
  return pods;
}

// "pytorchReplicaSpecs", "tfReplicaSpecs", …: of each role its replicas.
std::optional<std::int64_t> pods_of_kubeflow(const Json& job) {
  std::optional<std::int64_t> pods;
  for (const auto& [field, roles] : map_at(job, {"spec"}).items()) {
    if (!field.ends_with("ReplicaSpecs") || !roles.is_object()) continue;
    for (const Json& role : roles) pods = pods.value_or(0) + count_or(role, {"replicas"}, 1);
  }
  return pods;
}

std::optional<std::int64_t> pods_of_owner(const Json& owner, const std::string& kind) {
  if (kind == "Job") return pods_of_job(owner);
  if (kind == "JobSet") return pods_of_job_set(owner);
  if (kind == "RayCluster") return pods_of_ray(owner);
  return pods_of_kubeflow(owner);
}

constexpr std::array<std::string_view, 4> kSucceeded = {"Complete", "Completed", "Succeeded",
                                                        "SuccessCriteriaMet"};
constexpr std::array<std::string_view, 2> kFailed = {"Failed", "FailureTarget"};

bool has_condition(const Json& owner, std::span<const std::string_view> types) {
  return std::ranges::any_of(list_at(owner, {"status", "conditions"}), [&](const Json& each) {
    return text_at(each, {"status"}) == "True" &&
           std::ranges::find(types, text_at(each, {"type"})) != types.end();
  });
}

// Whether it is suspended and how long it may take: a job of Kubeflow says it in its runPolicy.
const Json& run_terms_of(const Json& owner) {
  const Json& policy = map_at(owner, {"spec", "runPolicy"});
  return policy.empty() ? map_at(owner, {"spec"}) : policy;
}

// A JobSet that makes a part of its pods only when others have started.
std::string obstacle_of_job_set(const Json& set) {
  constexpr std::string_view kTogether =
      "which the platform cannot do: it starts all pods of a workload together";
  const bool is_in_order =
      text_at(set, {"spec", "startupPolicy", "startupPolicyOrder"}) == "InOrder";
  const Json& jobs = list_at(set, {"spec", "replicatedJobs"});
  const bool has_dependencies = std::ranges::any_of(
      jobs, [](const Json& each) { return !list_at(each, {"dependsOn"}).empty(); });
  if (is_in_order || has_dependencies) {
    return fmt::format("its JobSet starts its jobs one after the other ({}), {}",
                       is_in_order ? "startupPolicy: InOrder" : "dependsOn", kTogether);
  }
  const auto is_exclusive = [](const Json& object) {
    const Json& notes = map_at(object, {"metadata", "annotations"});
    return notes.contains("alpha.jobset.sigs.k8s.io/exclusive-topology") &&
           !notes.contains("alpha.jobset.sigs.k8s.io/node-selector");
  };
  const bool has_leaders = is_exclusive(set) || std::ranges::any_of(jobs, [&](const Json& each) {
                             return is_exclusive(map_at(each, {"template"}));
                           });
  if (!has_leaders) return {};
  return fmt::format(
      "its JobSet starts the first pod of each job before the others (exclusive-topology), {}",
      kTogether);
}

}  // namespace

std::string owner_path(const WorkloadRef& workload, const std::string& api_version) {
  if (workload.is_single_pod() || workload.kind == "group") return {};
  const std::size_t slash = api_version.find('/');
  if (slash == std::string::npos || workload.name.empty()) return {};
  std::string plural;
  for (const char c : workload.kind) {
    plural.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  const bool is_plain = std::ranges::all_of(
      plural + workload.name + api_version.substr(0, slash) + api_version.substr(slash + 1),
      [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.'; });
  if (!is_plain) return {};
  return fmt::format("/apis/{}/namespaces/{}/{}s/{}", api_version, workload.namespace_name, plural,
                     workload.name);
}

std::string owner_path(const WorkloadRef& workload) {
  if (workload.kind == "Job") return owner_path(workload, "batch/v1");
  if (workload.kind == "JobSet") return owner_path(workload, "jobset.x-k8s.io/v1alpha2");
  if (workload.kind == "RayCluster") return owner_path(workload, "ray.io/v1");
  const bool is_of_kubeflow = workload.kind.ends_with("Job");
  return is_of_kubeflow ? owner_path(workload, "kubeflow.org/v1") : std::string();
}

std::optional<OwnerEnd> end_of_owner(const OwnerFacts& facts) {
  if (!facts.is_there || facts.is_being_deleted) return OwnerEnd::kDeleted;
  if (facts.is_finished) return facts.is_succeeded ? OwnerEnd::kSucceeded : OwnerEnd::kFailed;
  return facts.is_suspended ? std::optional(OwnerEnd::kSuspended) : std::nullopt;
}

OwnerFacts facts_of_owner(const Json& owner, const WorkloadRef& workload) {
  OwnerFacts facts;
  const std::string_view uid = text_at(owner, {"metadata", "uid"});
  facts.is_there = !uid.empty() && (workload.uid.empty() || uid == workload.uid);
  facts.is_being_deleted = at(owner, {"metadata", "deletionTimestamp"}).is_string();
  facts.is_succeeded = has_condition(owner, kSucceeded);
  facts.is_finished = facts.is_being_deleted || facts.is_succeeded || has_condition(owner, kFailed);
  const Json& terms = run_terms_of(owner);
  facts.is_suspended = flag_at(terms, {"suspend"});
  if (workload.kind == "JobSet") facts.obstacle = obstacle_of_job_set(owner);
  if (const auto pods = pods_of_owner(owner, workload.kind)) {
    facts.pods = static_cast<std::uint32_t>(std::min(*pods, kMaxPods));
  }
  constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;
  facts.time_limit = base::seconds(
      std::clamp<std::int64_t>(number_at(terms, {"activeDeadlineSeconds"}), 0, kYear));
  return facts;
}

}  // namespace gpu_platform::execution
