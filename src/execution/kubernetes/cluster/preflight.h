#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "execution/kubernetes/caller.h"
#include "execution/kubernetes/settings.h"
#include "kubernetes/client.h"

// What is looked at before the first job: that the server answers, that this platform may do what
// it needs, that the cluster has what the settings say, and that no other controller has the
// cluster.

namespace gpu_platform::execution {

// A permission that the engine needs.
struct Right {
  std::string verb;
  std::string group;  // "" for the core group
  std::string resource;
  std::string subresource;
  enum class Where : std::uint8_t { kJobs, kEverywhere, kLease };
  Where where = Where::kJobs;  // the namespaces of jobs, all, or the lease's
};
// Those that are looked at before the first job. Those on the workloads of others count in each
// namespace whose label says that they are queued (right_of_queue).
std::vector<Right> needed_rights(const KubernetesSettings& settings);

// Stands for all that the role gpu-platform-queue gives.
Right right_of_queue();
// Asks the API server whether the platform has a right; an empty namespace means all.
kubernetes::Request review_of(const Right& right, const std::string& namespace_name);
bool is_allowed(const kubernetes::Answer& review);

// A lease of the cluster, which one controller holds.
struct LeaseTerms {
  std::string namespace_name;
  std::string name;      // "gpu-platform-CLUSTER"
  std::string identity;  // stays the same over restarts of one daemon
  base::Duration duration = base::seconds(15);
};

// The error of an answer that is not a success: kUnavailable, kUnauthenticated, kPermissionDenied
// or kFailedPrecondition. `what` was being done.
base::Status failure_of(const kubernetes::Answer& answer, std::string_view what);

// Looks whether the server answers, and has and allows what the settings need. Errors are those of
// check_cluster.
base::Status check_access(kubernetes::Client& client, const KubernetesSettings& settings,
                          const LeaseTerms& lease, CallLimits limits);

// Whether this platform has had the cluster before, by what it keeps.
enum class ClusterHistory : std::uint8_t { kKnown, kNew };

// Waits for each answer, at most `limits.timeout` in all. Errors:
//   kUnavailable         the server does not answer; it may later
//   kUnauthenticated     it does not know us (expired token, wrong certificate)
//   kPermissionDenied    rights are missing: says which verbs on what
//   kFailedPrecondition  the cluster has no DRA and the settings need it; another controller has
//                        it; or it is kNew, and pods or claims of its jobs are there
//                        (is_of_platform): they are of another journal, whose job numbers this one
//                        would give again
// Takes the lease, or sees that it is held: then watches for up to its duration whether the holder
// still renews it. It is given back where things of another journal are there.
base::Status check_cluster(kubernetes::Client& client, const KubernetesSettings& settings,
                           const LeaseTerms& lease, ClusterHistory history, CallLimits limits);

// Empties the lease if it is that of `terms.identity`.
base::Status give_lease_back(Caller& caller, const LeaseTerms& terms);

// Why none of so many nodes has a GPU, as far as the settings tell, with what to do.
std::string words_for_no_gpus(const KubernetesSettings& settings, std::size_t nodes);

}  // namespace gpu_platform::execution
