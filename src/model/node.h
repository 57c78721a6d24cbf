#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/shared.h"
#include "base/units.h"
#include "model/capacity.h"
#include "model/engine_kind.h"
#include "model/evidence.h"
#include "model/gpu_clock.h"
#include "model/gpu_load.h"
#include "model/gpu_part.h"
#include "model/ids.h"
#include "model/network.h"
#include "model/states.h"
#include "model/taint.h"
#include "model/topology.h"

namespace gpu_platform::model {

// The driver does not say which device file is the GPU's. No device has this number, so a guard
// that uses it allows none.
inline constexpr std::uint32_t kUnknownMinor = 0xFFFF'FFFF;

// The properties of a GPU that are fixed while the node is up.
struct GpuInfo {
  std::string uuid;   // "GPU-…", as the driver gives it
  std::string model;  // the driver's name, "NVIDIA H100 80GB HBM3"
  std::string type;   // catalogue name, "H100-80GB"; the model's name where the catalogue has none
  base::Bytes memory;
  std::string pci_address;      // "00000000:1b:00.0", lower case
  std::uint32_t minor = 0;      // of /dev/nvidiaN, or kUnknownMinor
  std::int32_t numa_node = -1;  // -1: not known
  // The major number of its CUDA compute capability: 8 of an A100, 9 of an H100. None: not known.
  std::optional<std::uint32_t> compute_major;

  friend bool operator==(const GpuInfo&, const GpuInfo&) = default;
};

// The result of discovery for a node.
struct NodeInfo {
  std::string name;
  bool emulated = false;
  std::string boot_id;
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::string driver_version;  // empty: no driver
  std::vector<GpuInfo> gpus;   // by index
  Topology topology;
  NetworkPlace network;
  EngineKind engine = EngineKind::kProcess;
  // CPUs and memory that pods of other owners use on the node. CPUs are rounded up.
  std::uint32_t others_cpus = 0;
  base::Bytes others_memory;
  CapacityClass capacity = CapacityClass::kOnDemand;
  // The ways in which jobs can share a GPU of the node, ascending: a mode that is not here has no
  // mechanism there. Never kNone.
  std::vector<ShareMode> share_modes = {};
  // A probe of ours reads the memory of each process on its GPUs.
  bool watches_gpu_memory = false;

  friend bool operator==(const NodeInfo&, const NodeInfo&) = default;
};

// What the cluster of a node lets the node do, in records of versions without taints of nodes.
enum class NodeService : std::uint8_t {
  kUp,
  kDraining,  // it takes no new work; what runs there runs on
  kOffline,
};
inline constexpr std::size_t kNodeServices = 3;

// An attempt's part of a GPU.
struct GpuHolder {
  AttemptId attempt;
  base::GpuShare share;
  base::Bytes memory;
  HolderPhase phase = HolderPhase::kAllocated;
  // Of a part of the GPU, where the share is less than kWholeGpu: how it is shared, and its owner.
  ShareMode mode = ShareMode::kNone;
  std::uint32_t uid = 0;
  std::string team = {};

  friend bool operator==(const GpuHolder&, const GpuHolder&) = default;
};

struct Gpu {
  GpuInfo info;
  // It, `cause`, `changed_by` and `changed_at` follow from the taints and the holders: settle().
  GpuState state = GpuState::kAvailable;
  std::string cause;               // why it is out of service; empty: it is not
  std::vector<GpuHolder> holders;  // ascending attempt
  bool is_reported = true;         // false: the node's driver does not list it any more
  // Processes on it that belong to no job, in words, for every rule of the site; empty: none.
  std::string unmanaged_processes;
  // What they make of it, as last seen while no job held it, but with the memory of now; none:
  // there are none, or the site does not place jobs by load (Policy::load_rules).
  std::optional<GpuLoad> load;
  std::string changed_by;    // who set the worst taint; empty if it is in service
  base::Instant changed_at;  // when
  Taints taints;
  // What was seen of its health, ascending by time and bounded (health/verdict.h).
  base::Shared<std::vector<Evidence>> evidence;
  // What health would do and does not, and why; empty: it does what it says.
  std::string withheld_verdict;

  // Of the part that no attempt holds. Kept by the meaning of events (controller/apply).
  GpuClock clock;

  // In snapshots of versions that had no taints of processes and clusters. add_former_taints()
  // empties them.
  bool former_avoids_processes = false;
  std::string former_unavailable;

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Node {
  NodeId id;
  // It and `cause` follow from the taints: settle().
  NodeState state = NodeState::kUp;
  std::string cause;  // why it is not UP; empty: it is
  std::string name;
  bool emulated = false;
  std::string boot_id;
  std::string driver_version;
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::uint32_t cpus_used = 0;
  base::Bytes memory_used;
  std::vector<Gpu> gpus;
  Topology topology;  // links by the indices of `gpus`
  // The job for which the site's prolog, or its epilog, failed last here; none since it did well.
  JobId prolog_failed_for;
  JobId epilog_failed_for;
  NetworkPlace network;
  EngineKind engine = EngineKind::kProcess;
  std::uint32_t others_cpus = 0;  // as in NodeInfo, and so is the next
  base::Bytes others_memory;
  CapacityClass capacity = CapacityClass::kOnDemand;
  Taints taints;
  base::Shared<std::vector<Evidence>> evidence;  // of the node itself, as in Gpu
  std::vector<ShareMode> share_modes = {};       // as in NodeInfo
  bool watches_gpu_memory = false;               // the same

  // In snapshots of versions that had no taints of nodes. add_former_taints() empties them.
  bool former_is_heard = true;
  NodeService former_service = NodeService::kUp;
  std::string former_service_cause;

  friend bool operator==(const Node&, const Node&) = default;
};

// Returns the node's latest description of itself, without the GPUs that it does not report any
// more.
NodeInfo info_of(const Node& node);

// Takes over a description. GPUs are known by their UUID and keep their index; those that are not
// in it stay, not reported. A GPU that is new gets the lowest index of `free_places`, whose GPU is
// forgotten (bit i: index i), or else the next one.
void describe(Node& node, const NodeInfo& info, std::uint64_t free_places = 0);

// Returns whether nothing is lost if the GPU is forgotten, as far as the node knows: its driver
// does not list it any more, no attempt holds it, and no person keeps it from work.
bool is_forgettable(const Gpu& gpu);

// Returns the state that follows from the node's taints.
NodeState state_of(const Node& node);
// Returns the state that follows from the GPU's taints and its holders.
GpuState state_of(const Gpu& gpu);
// Gives the node or the GPU that state, and what is shown with it. To be called after each change
// of taints and holders; nothing else assigns a state.
void settle(Node& node);
void settle(Gpu& gpu);

// Returns false for a node that has not reported since it was lost.
bool is_heard(const Node& node);

// Returns whether the attempt holds the GPU; if so, it is that far now.
bool set_phase(Gpu& gpu, AttemptId holder, HolderPhase phase);

// The taint's effect of what a cluster lets its node do; nothing: none.
std::optional<TaintEffect> effect_of(NodeService service);

// The taint of a node of such a version that does not report.
Taint former_connection_taint();

// Gives a node and its GPUs, of a version with fewer taints, those that follow from what they had
// instead: of a GPU's operator and driver that version kept the last party alone.
void add_former_taints(Node& node);
void add_former_taints(Gpu& gpu);

// Returns the node as it would be if it were up and healthy, and nothing of it were in use.
Node as_idle(const Node& node);

// The NUMA nodes of these GPUs, ascending: where a job on them should run. Empty where one of them
// is not known, or where they are all that the node has.
std::vector<NumaNode> numa_nodes_near(const Node& node, const std::vector<std::uint32_t>& gpus);

// True when a party keeps new work from the GPU.
inline bool is_kept_from_work(const Gpu& gpu) {
  return !gpu.taints.empty();
}

// True when the GPU takes new work as soon as no attempt holds it.
inline bool is_in_service(const Gpu& gpu) {
  const bool has_its_turn = gpu.state == GpuState::kAvailable ||
                            gpu.state == GpuState::kAllocated || gpu.state == GpuState::kInUse ||
                            gpu.state == GpuState::kCleaning;
  return has_its_turn && !is_kept_from_work(gpu);
}

// True when all that keeps the GPU from work is that it is DEGRADED: it takes new work of jobs that
// accept that.
bool is_only_degraded(const Gpu& gpu);

// True when the GPU can take new exclusive work now, as far as it alone is concerned.
inline bool is_free(const Gpu& gpu) {
  return gpu.state == GpuState::kAvailable && gpu.holders.empty() && !is_kept_from_work(gpu);
}

}  // namespace gpu_platform::model
