#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/capacity.h"
#include "model/engine_kind.h"
#include "model/gpu_part.h"
#include "model/ids.h"
#include "model/network.h"

// What a job asks for.

namespace gpu_platform::model {

// Says whether a job's GPUs on one node may lie on several sockets.
enum class NumaPolicy : std::uint8_t {
  kDefault,     // only where no NUMA domain of the node could hold them all
  kAllowCross,  // --allow-cross-numa
  kStrict,      // --strict-numa: never
};
inline constexpr std::size_t kNumaPolicies = 3;

inline constexpr std::uint32_t kMaxGangNodes = 4096;

// The resources that a job needs at once. Absent cpus and memory mean the node's share per GPU (per
// CPU for CPU jobs). A gang asks for `nodes` times all of this, or, with cross_node, for `gpus` on
// as few nodes as possible, with the same number on each; cpus and memory then count for each of
// its nodes.
struct ResourceRequest {
  std::uint32_t gpus = 0;
  // Less than kWholeGpu: a part of one GPU, by its compute; only with one GPU on one node.
  base::GpuShare share_per_gpu = base::kWholeGpu;
  std::vector<std::string>
      gpu_types;  // canonical catalogue names or families, best first; empty: any
  // The memory that the job needs on each GPU: the least memory of a whole GPU (zero: any), the
  // limit of a part (zero: the share of the GPU's).
  base::Bytes gpu_memory;
  std::optional<std::uint32_t> cpus;
  std::optional<base::Bytes> memory;
  NumaPolicy numa = NumaPolicy::kDefault;
  std::uint32_t nodes = 1;                        // 1 to kMaxGangNodes
  bool cross_node = false;                        // then nodes is 1
  NetworkLevel within = NetworkLevel::kAnywhere;  // nodes of a gang lie together at this level
  std::vector<NodeId> nodelist;                   // ascending: none but these; empty: any
  std::vector<NodeId> exclude;                    // ascending
  // Thousandths, one for each of gpu_types, the first 1000: how fast the job is on that type.
  // Empty: equally fast on all.
  std::vector<std::uint32_t> gpu_speeds;
  // The name of a reservation (model::Reservation). The job runs on its GPUs alone, within its
  // time. Empty: the job uses no reservation.
  std::string reservation;
  // Percent of each node's CPUs and memory that the shares of GPU jobs leave to CPU jobs: the
  // site's rule when the job was submitted.
  std::uint32_t reserve_percent = 0;
  // It is placed on nodes of these engines alone, and the nodes of a gang are all of one: decided
  // when the job was submitted.
  EngineSet engines = kProcessesOnly;
  CapacityRequest capacity = CapacityRequest::kAny;  // it is placed on such nodes alone
  // UUIDs of GPUs, ascending, none twice.
  std::vector<std::string> gpus_avoid = {};
  std::vector<std::string> gpus_only = {};  // none but these; empty: any
  bool accept_degraded = false;             // it may have GPUs that are DEGRADED
  // How a part must be shared; absent: as the site prefers. kNone: the job has its GPUs alone.
  std::optional<ShareMode> share_mode = {};
  Isolation require_isolation = Isolation::kNone;
  base::Duration slice = {};  // of a part that takes turns; zero: the site's
  // Of a part: whose it is. Decided when the job was submitted.
  Tenant tenant = {};
  // GPU types that it may not have at present, for a limit by type (scheduling/cycle/limits.h).
  // Only in copies made for one decision: it is never stored.
  std::vector<std::string> barred_types = {};

  friend bool operator==(const ResourceRequest&, const ResourceRequest&) = default;
};
inline constexpr std::uint32_t kFullSpeed = 1000;

// Returns whether it asks for a part of a GPU.
inline bool is_part(const ResourceRequest& request) {
  return request.gpus > 0 && request.share_per_gpu < base::kWholeGpu;
}
// May have parts on several nodes.
bool is_gang(const ResourceRequest& request);
// Returns whether it names GPUs, to use or to avoid.
inline bool names_gpus(const ResourceRequest& request) {
  return !request.gpus_avoid.empty() || !request.gpus_only.empty();
}
// Returns where its GPUs may lie: a job that names GPUs gets them across sockets, too, unless it is
// strict, because it may have no others.
inline NumaPolicy numa_of(const ResourceRequest& request) {
  const bool is_open = request.numa == NumaPolicy::kDefault && names_gpus(request);
  return is_open ? NumaPolicy::kAllowCross : request.numa;
}
// Returns whether the GPUs that it names leave it this one.
bool may_use_gpu(const ResourceRequest& request, const std::string& uuid);
// Returns the GPUs on all nodes of the request.
std::uint64_t total_gpus(const ResourceRequest& request);
// Returns the time that a job may run at a speed, if its time limit is meant for kFullSpeed;
// rounded up.
base::Duration limit_at_speed(base::Duration limit, std::uint32_t speed);
// Returns the longest of these over all types that it accepts.
base::Duration longest_limit(const ResourceRequest& request, base::Duration limit);

}  // namespace gpu_platform::model
