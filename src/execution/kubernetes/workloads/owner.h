#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/kubernetes/workloads/pod.h"

// The object that makes the pods of a workload: how many there will be, and whether more can come.
// Pure.

namespace gpu_platform::execution {

struct OwnerFacts {
  // It is there and is the one that is meant. Otherwise it is gone: no pod of it will come.
  bool is_there = false;
  bool is_finished = false;           // or being deleted: no pod of it will come
  std::optional<std::uint32_t> pods;  // at once; absent: the kind does not say
  base::Duration time_limit;          // of all of it; zero: none
  bool is_being_deleted = false;
  bool is_succeeded = false;  // finished, and its work is done
  bool is_suspended = false;  // no pod of it will come until it is resumed
  // Why its pods cannot start together, which the platform asks of them; empty: they can.
  std::string obstacle;

  friend bool operator==(const OwnerFacts&, const OwnerFacts&) = default;
};

// What is known of an owner whose pods have all ended.
enum class OwnerEnd : std::uint8_t {
  kSucceeded,  // it makes no more of them
  kFailed,     // it makes no more of them
  kDeleted,    // it was deleted
  kSuspended,  // it makes none until it is resumed
};
// Nothing: it may make more.
std::optional<OwnerEnd> end_of_owner(const OwnerFacts& facts);

// The path to read the owner by; empty: the platform knows no such kind.
std::string owner_path(const WorkloadRef& workload, const std::string& api_version);

// The same by its kind alone, for kinds that the platform knows: of several versions the one that
// is mostly served.
std::string owner_path(const WorkloadRef& workload);

// From the owner's JSON. Of a batch Job the least of parallelism and the completions that are left;
// of a JobSet the sum of replicas times parallelism; of a job of Kubeflow the sum of replicas; of a
// RayCluster its head and all workers, within the bounds of each group.
OwnerFacts facts_of_owner(const nlohmann::json& owner, const WorkloadRef& workload);

}  // namespace gpu_platform::execution
