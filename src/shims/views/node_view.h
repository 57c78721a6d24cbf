#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "client/client.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "shims/views/partitions.h"

// A node of the platform as Slurm's commands tell of it.

namespace gpu_platform::shims {

// The GPUs of one type on a node.
struct NodeGpus {
  std::string type;
  std::int64_t total = 0;
  std::vector<std::int64_t> used;  // the numbers of those that jobs have whole
  double shared = 0;               // what parts hold of the others: 0.5 is half a GPU
};

struct NodeView {
  std::string name;
  std::string base_state;      // idle, mixed, allocated or down
  bool is_draining = false;    // takes no new jobs
  bool is_silent = false;      // does not answer
  bool is_maintained = false;  // in an active reservation for maintenance
  bool is_reserved = false;    // in another active reservation
  bool is_completing = false;  // a job's last processes are still there
  std::int64_t cpus = 0;
  std::int64_t cpus_used = 0;
  std::int64_t memory_mib = 0;
  std::int64_t memory_used_mib = 0;
  std::int64_t sockets = 1;
  std::vector<NodeGpus> gpus;
  std::int64_t shards_per_gpu = 0;  // 0: no GPU of the site is shared
  std::string reason;               // empty: none
  std::string reason_user;          // empty: not known
  std::optional<base::Instant> reason_at;
};

// All nodes in the order of people.
client::Called<std::vector<NodeView>> list_nodes(client::Client& client);

// The same of what the daemon tells.
std::vector<NodeView> node_views(const v1::Status& status,
                                 const v1::ListReservationsResponse& reservations,
                                 const v1::GetTopologyResponse& topology);

// "drained", "mixed", "down*": in one word; compact: "drain", "mix", "down*".
std::string long_state(const NodeView& node);
std::string compact_state(const NodeView& node);
// "MIXED+DRAIN": as scontrol writes it.
std::string full_state(const NodeView& node);
// Whether a state of a filter ("drain", "IDLE", "mix") is the node's; nothing for what is none.
std::optional<bool> is_in_node_state(const NodeView& node, std::string_view state);
// The order of states in sinfo: drained nodes first, then mixed, allocated, idle and down ones.
int state_rank(const NodeView& node);

// "gpu:h100:8", "(null)" without GPUs; "gpu:h100:2(IDX:0-1)". With shards where GPUs are shared:
// "gpu:h100:8,shard:h100:32".
std::string gres_of(const NodeView& node);
std::string gres_used_of(const NodeView& node);
// "gpu", the types of the GPUs and their families: "gpu,h100,H100-80GB"; "(null)" without GPUs.
std::string features_of(const NodeView& node);
// "cpu=32,mem=62.50G,billing=32,gres/gpu=8"
std::string trackable_of(const NodeView& node);
std::string trackable_used_of(const NodeView& node);

// "a1,b[1-2]"
std::string nodes_of_reservation(const v1::Reservation& reservation);

bool is_in(const NodeView& node, const Partition& partition);

// What a partition has.
struct PartitionTres {
  std::vector<std::string> names;  // of its nodes
  std::int64_t cpus = 0;
  std::string text;     // "cpu=64,mem=1T,node=2,billing=88,gres/gpu=16"
  std::string weights;  // "GRES/gpu:h100-80gb=5.5"; empty: there are none

  std::int64_t nodes() const { return std::ssize(names); }
};
PartitionTres tres_of_partition(const Partition& partition, const BillingWeights& weights,
                                const std::vector<NodeView>& nodes);

}  // namespace gpu_platform::shims
