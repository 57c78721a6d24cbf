#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/node.h"
#include "model/policy.h"
#include "scheduling/gang/network_places.h"
#include "scheduling/gpu_names.h"
#include "scheduling/group_tree.h"
#include "scheduling/load_levels.h"
#include "scheduling/node_shape.h"
#include "scheduling/order/cluster_totals.h"
#include "scheduling/part_index.h"
#include "scheduling/part_rules.h"
#include "scheduling/placement/best_subset.h"

// The free capacity of all nodes, indexed for placement. The owner reports each node that an event
// touched. Nothing is ever rebuilt, and a cycle reads the index without looking at single nodes.
//
// Ownership: holds copies of what it needs, refers to nothing outside. Thread: one owner.
// Cost: update and exchange O(log nodes); a decision costs by groups of equal nodes, not by nodes.

namespace gpu_platform::scheduling {

// GPUs of one type and memory size on the nodes of a shape.
struct GpuPool {
  TypeIndex type = 0;
  base::Bytes memory;
  GpuMask gpus = 0;
};

// All nodes of one shape. The groups hold those that are up.
struct ShapeClass {
  const NodeShape* shape = nullptr;
  std::vector<GpuPool> pools;            // ascending type, memory
  const SubsetTable* subsets = nullptr;  // of its layout; the cluster's
  GroupTree groups;
  std::uint32_t nodes = 0;
  std::uint32_t nodes_up = 0;
  std::uint32_t sharing_nodes = 0;  // that let jobs share some of their GPUs
};

// The names of GPU types, numbered, and which of them a request accepts. Remembers each comparison
// of names: there are few types, and asking the catalogue for every decision would cost more than
// placing.
class GpuTypes {
 public:
  TypeIndex number_of(std::string_view type);
  std::optional<TypeIndex> find(std::string_view type) const;
  std::string_view name_of(TypeIndex type) const { return names_.at(type); }
  std::size_t size() const { return names_.size(); }
  // Returns for each known type, by number, whether a request that names `wanted` accepts it.
  const std::vector<bool>& accepted_by(const std::string& wanted) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, TypeIndex, std::less<>> numbers_;
  mutable std::map<std::string, std::vector<bool>, std::less<>> accepted_;
};

class Cluster {
 public:
  struct NodeRecord {
    ShapeClass* shape_class = nullptr;
    FreeState free;
    GpuMask in_service = 0;  // GPUs that can be free again when their holder ends
    GpuMask degraded = 0;    // the same for jobs that accept degraded GPUs
    LeafIndex leaf = 0;
    std::vector<std::string> uuids = {};             // of its GPUs, by index
    PartTerms terms = {};                            // what it offers to parts
    std::vector<model::ShareMode> share_modes = {};  // that `terms` follow from
    bool watches_gpu_memory = false;                 // the same, as the next
    GpuMask gpus_with_mps_limits = 0;
    bool are_terms_known = false;
    LoadLevels loads = {};  // of its GPUs; empty: no process of others is on any
  };

  Cluster() = default;
  // Moving keeps every address: records point into the maps' nodes.
  Cluster(Cluster&&) = default;
  Cluster& operator=(Cluster&&) = default;

  // Adds the node or replaces its record. Returns true if its free capacity, its state or the state
  // of a GPU has changed. Not while a Trial is alive.
  bool update(const model::Node& node);
  bool remove(model::NodeId node);

  // Takes over which GPUs may be shared. Returns true if that is new: then the owner puts all nodes
  // again.
  bool follow(const model::Sharing& rules);
  // The same for the rules by which loaded GPUs are rated.
  bool follow(const model::LoadRules& rules);
  const model::Sharing& sharing() const { return sharing_; }

  std::size_t size() const { return nodes_.size(); }
  std::size_t nodes_up() const;

  // Content and index hashed in an order of their own, so that equal clusters have equal hashes
  // however they came about. Visits every node: for tests and invariant checks.
  std::uint64_t hash() const;

  const NodeRecord* find(model::NodeId node) const;
  // Returns the free state of a node that is up.
  static GroupTree::const_iterator group_of(const NodeRecord& record);
  // Returns the classes in the order of the shapes themselves, never in that of insertion.
  const std::map<NodeShape, ShapeClass>& shapes() const { return shapes_; }
  const GpuTypes& types() const { return types_; }
  const GpuNames& gpu_names() const { return gpu_names_; }
  // The nodes with degraded GPUs, held or not.
  const std::set<model::NodeId>& nodes_with_degraded() const { return with_degraded_; }
  // The nodes with GPUs that others load, held or not.
  const std::set<model::NodeId>& nodes_with_load() const { return with_load_; }
  const NetworkPlaces& places() const { return places_; }
  const ClusterTotals& totals() const { return totals_; }
  const PartIndex& gpu_parts() const { return gpu_parts_; }

  // Replaces the free state of a known node and returns the former one; the index follows.
  // A Trial writes with it: see trial.h.
  FreeState exchange(model::NodeId node, const FreeState& free);
  // The other table that a trial writes to.
  PartIndex& gpu_parts_for_trial() { return gpu_parts_; }

  // Equal if hash() is equal.
  friend bool operator==(const Cluster& a, const Cluster& b) { return a.hash() == b.hash(); }

 private:
  using Nodes = std::map<model::NodeId, NodeRecord>;

  // The data that all shapes of one layout share, the topology class.
  struct LayoutClass {
    explicit LayoutClass(const GpuLayout& layout) : subsets(layout) {}
    SubsetTable subsets;
    std::size_t shapes = 0;
  };

  ShapeClass& class_of(NodeShape shape);
  void erase_class(const NodeShape& shape);
  bool follow_parts(NodeRecord& record, const model::Node& node);
  void set_terms(NodeRecord& record, const model::Node& node);
  void set_degraded(NodeRecord& record, model::NodeId id, GpuMask degraded);
  bool follow_loads(NodeRecord& record, const model::Node& node);
  void hash_leaves(base::Encoder& out, const Group& group) const;
  static void move(NodeRecord& record, model::NodeId id, const FreeState& free);

  GpuTypes types_;
  NetworkPlaces places_;
  std::map<GpuLayout, LayoutClass> layouts_;
  std::map<NodeShape, ShapeClass> shapes_;
  Nodes nodes_;
  GpuNames gpu_names_;
  model::Sharing sharing_;
  PartIndex gpu_parts_;
  std::set<model::NodeId> with_degraded_;
  model::LoadRules load_rules_;
  std::set<model::NodeId> with_load_;
  ClusterTotals totals_;
};

}  // namespace gpu_platform::scheduling
