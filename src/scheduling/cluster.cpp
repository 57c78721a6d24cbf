#include "scheduling/cluster.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"
#include "model/gpu_catalogue.h"
#include "scheduling/free_of.h"

namespace gpu_platform::scheduling {

namespace {

GroupKey key_of(const FreeState& free) {
  return {.free_gpus = static_cast<std::uint32_t>(std::popcount(free.gpus)),
          .cpus = free.cpus,
          .memory = free.memory,
          .gpus = free.gpus};
}

std::vector<GpuPool> pools_of(const NodeShape& shape, GpuTypes& types) {
  std::map<std::pair<TypeIndex, base::Bytes>, GpuMask> pools;
  const std::size_t count = std::min(shape.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    const GpuKind& gpu = shape.gpus[i];
    pools[{types.number_of(gpu.type), gpu.memory}] |= GpuMask{1} << i;
  }
  std::vector<GpuPool> result;
  for (const auto& [kind, gpus] : pools) result.push_back({kind.first, kind.second, gpus});
  return result;
}

// Returns the widest reach of its types: an allocation has GPUs of one type only.
Reach reach_of(const ShapeClass& shape_class, GpuMask gpus) {
  Reach reach;
  const std::vector<GpuPool>& pools = shape_class.pools;
  for (std::size_t i = 0; i < pools.size();) {
    const TypeIndex type = pools[i].type;
    GpuMask of_type = 0;
    for (; i < pools.size() && pools[i].type == type; ++i) of_type |= pools[i].gpus;
    reach.raise_to(shape_class.subsets->reach(of_type & gpus));
  }
  return reach;
}

Group& group_for(ShapeClass& shape_class, const FreeState& free) {
  const GroupKey key = key_of(free);
  const auto known = shape_class.groups.find(key);
  if (known != shape_class.groups.end()) return known->second;
  const Group group{.nodes = {}, .by_leaf = {}, .reach = reach_of(shape_class, free.gpus)};
  return shape_class.groups.insert({key, group}).first->second;
}

std::set<model::NodeId>::node_type extract_from_leaf(Group& group, LeafIndex leaf,
                                                     model::NodeId id) {
  const auto members = group.by_leaf.find(leaf);
  CHECK(members != group.by_leaf.end());
  auto element = members->second.extract(id);
  CHECK(!element.empty());
  if (members->second.empty()) group.by_leaf.erase(members);
  return element;
}

void encode(base::Encoder& out, const NodeShape& shape) {
  out.u64(shape.cpus);
  out.i64(shape.memory.value());
  out.u64(shape.gpus.size());
  for (const GpuKind& gpu : shape.gpus) {
    out.text(gpu.type);
    out.i64(gpu.memory.value());
    out.i64(gpu.numa_node);
    out.i64(gpu.socket);
  }
  for (const Nearness nearness : shape.nearness) out.u64(nearness);
  out.u64(static_cast<std::uint64_t>(shape.engine));
  out.u64(static_cast<std::uint64_t>(shape.capacity));
}

void encode(base::Encoder& out, const model::NetworkPlace& place) {
  out.text(place.domain);
  out.text(place.rack);
  out.text(place.zone);
}

void encode(base::Encoder& out, const ModeWalls& walls) {
  for (const auto& wall : walls) {
    out.boolean(wall.has_value());
    if (!wall) continue;
    out.u64(static_cast<std::uint64_t>(wall->memory));
    out.u64(static_cast<std::uint64_t>(wall->compute));
  }
}

void encode(base::Encoder& out, const FreeState& free) {
  out.boolean(free.is_up);
  out.u64(free.gpus);
  out.u64(free.cpus);
  out.i64(free.memory.value());
  out.u64(free.missing_cpus);
  out.i64(free.missing_memory.value());
  out.u64(free.degraded);
}

}  // namespace

TypeIndex GpuTypes::number_of(std::string_view type) {
  if (const auto known = numbers_.find(type); known != numbers_.end()) return known->second;
  const auto number = static_cast<TypeIndex>(names_.size());
  names_.emplace_back(type);
  numbers_.emplace(std::string(type), number);
  return number;
}

std::optional<TypeIndex> GpuTypes::find(std::string_view type) const {
  const auto known = numbers_.find(type);
  return known == numbers_.end() ? std::nullopt : std::optional(known->second);
}

const std::vector<bool>& GpuTypes::accepted_by(const std::string& wanted) const {
  std::vector<bool>& accepted = accepted_[wanted];
  while (accepted.size() < names_.size()) {
    accepted.push_back(model::gpu_type_matches(wanted, names_[accepted.size()]));
  }
  return accepted;
}

bool Cluster::update(const model::Node& node) {
  const FreeState free = free_state_of(node);
  const GpuMask in_service = gpus_in_service(node);
  const GpuMask degraded = gpus_degraded(node);
  const auto known = nodes_.find(node.id);
  const bool is_there =
      known != nodes_.end() && places_.place_of(known->second.leaf) == node.network;
  if (is_there && has_shape(node, *known->second.shape_class->shape)) {
    NodeRecord& record = known->second;
    const bool has_new_names = gpu_names_.update(node, record.uuids);
    const bool has_new_parts = follow_parts(record, node);
    const bool has_new_loads = follow_loads(record, node);
    if (record.free == free && record.in_service == in_service && record.degraded == degraded) {
      return has_new_names || has_new_parts || has_new_loads;
    }
    move(record, node.id, free);
    record.in_service = in_service;
    set_degraded(record, node.id, degraded);
  } else {
    remove(node.id);
    ShapeClass& shape_class = class_of(shape_of(node));
    ++shape_class.nodes;
    totals_.add(*shape_class.shape);
    NodeRecord& record = nodes_[node.id];
    record.shape_class = &shape_class;
    record.in_service = in_service;
    record.leaf = places_.number_of(node.network);
    gpu_names_.update(node, record.uuids);
    set_degraded(record, node.id, degraded);
    move(record, node.id, free);
    follow_parts(record, node);
    follow_loads(record, node);
  }
  return true;
}

bool Cluster::remove(model::NodeId node) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return false;
  ShapeClass& shape_class = *known->second.shape_class;
  move(known->second, node, FreeState{});
  gpu_names_.remove(node, known->second.uuids);
  with_degraded_.erase(node);
  with_load_.erase(node);
  for (GpuMask left = gpu_parts_.on(node); left != 0; left &= left - 1) {
    gpu_parts_.exchange({node, static_cast<std::uint32_t>(std::countr_zero(left))}, {});
  }
  if (known->second.terms.gpus != 0) --shape_class.sharing_nodes;
  nodes_.erase(known);
  totals_.remove(*shape_class.shape);
  if (--shape_class.nodes == 0) erase_class(*shape_class.shape);
  return true;
}

const Cluster::NodeRecord* Cluster::find(model::NodeId node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? nullptr : &known->second;
}

GroupTree::const_iterator Cluster::group_of(const NodeRecord& record) {
  return std::as_const(record.shape_class->groups).find(key_of(record.free));
}

FreeState Cluster::exchange(model::NodeId node, const FreeState& free) {
  const auto known = nodes_.find(node);
  CHECK(known != nodes_.end());
  const FreeState former = known->second.free;
  move(known->second, node, free);
  return former;
}

std::uint64_t Cluster::hash() const {
  std::string bytes;
  base::Encoder out(bytes);
  for (const auto& [id, record] : nodes_) {
    out.u64(id.value);
    encode(out, *record.shape_class->shape);
    encode(out, record.free);
    out.u64(record.in_service);
    out.u64(record.degraded);
    encode(out, record.loads);
    for (const std::string& uuid : record.uuids) out.text(uuid);
    encode(out, places_.place_of(record.leaf));
    out.u64(record.terms.gpus);
    out.u64(record.terms.mps_gpus);
    encode(out, record.terms.walls);
    encode(out, record.terms.walls_of_root);
  }
  gpu_parts_.encode(out);
  for (const auto& [shape, shape_class] : shapes_) {
    encode(out, shape);
    out.u64(shape_class.nodes);
    out.u64(shape_class.nodes_up);
    out.u64(shape_class.sharing_nodes);
    for (const auto& [key, group] : shape_class.groups) {
      encode(out, FreeState{true, key.gpus, key.cpus, key.memory});
      out.u64(group.nodes.size());
      for (const auto& [id, leaf] : group.nodes) out.u64(id.value);
      hash_leaves(out, group);
    }
  }
  return base::hash64(bytes);
}

bool Cluster::follow(const model::Sharing& rules) {
  if (sharing_ == rules) return false;
  sharing_ = rules;
  gpu_parts_.follow(rules);
  for (auto& [id, record] : nodes_) record.are_terms_known = false;
  return true;
}

bool Cluster::follow(const model::LoadRules& rules) {
  if (load_rules_ == rules) return false;
  load_rules_ = rules;
  return true;
}

bool Cluster::follow_loads(NodeRecord& record, const model::Node& node) {
  LoadLevels loads = load_levels_of(node, load_rules_);
  if (record.loads == loads) return false;
  loads.empty() ? void(with_load_.erase(node.id)) : void(with_load_.insert(node.id));
  record.loads = std::move(loads);
  return true;
}

// Terms follow from the shape and the name of the node and from its means, so most updates keep
// them.
void Cluster::set_terms(NodeRecord& record, const model::Node& node) {
  const GpuMask with_mps_limits = gpus_with_mps_limits(node);
  if (record.are_terms_known && record.share_modes == node.share_modes &&
      record.watches_gpu_memory == node.watches_gpu_memory &&
      record.gpus_with_mps_limits == with_mps_limits) {
    return;
  }
  const bool did_share = record.terms.gpus != 0;
  record.terms = part_terms_of(sharing_, node);
  record.share_modes = node.share_modes;
  record.watches_gpu_memory = node.watches_gpu_memory;
  record.gpus_with_mps_limits = with_mps_limits;
  record.are_terms_known = true;
  const bool does_share = record.terms.gpus != 0;
  if (does_share && !did_share) ++record.shape_class->sharing_nodes;
  if (did_share && !does_share) --record.shape_class->sharing_nodes;
}

// Returns true if what is free of GPUs in parts has changed, or what the node offers to parts.
bool Cluster::follow_parts(NodeRecord& record, const model::Node& node) {
  const PartTerms former_terms = record.terms;
  set_terms(record, node);
  bool is_new = record.terms != former_terms;
  const GpuMask shared = free_gpus_of(node).shared;
  for (GpuMask left = shared | gpu_parts_.on(node.id); left != 0; left &= left - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
    const GpuMask bit = left & -left;
    PartState state;
    if ((shared & bit) != 0) {
      state = part_state_of(node.gpus[index]);
      state.type = types_.number_of(node.gpus[index].info.type);
      state.is_open = state.is_open && (record.terms.gpus_in(state.mode) & bit) != 0;
    }
    is_new |= gpu_parts_.exchange({node.id, index}, state) != state;
  }
  return is_new;
}

void Cluster::set_degraded(NodeRecord& record, model::NodeId id, GpuMask degraded) {
  if (record.degraded == degraded) return;
  record.degraded = degraded;
  degraded != 0 ? void(with_degraded_.insert(id)) : void(with_degraded_.erase(id));
}

// Leaves are numbered in the order in which they became known, so the hash uses their names.
void Cluster::hash_leaves(base::Encoder& out, const Group& group) const {
  std::map<model::NetworkPlace, const std::set<model::NodeId>*> by_place;
  for (const auto& [leaf, nodes] : group.by_leaf) by_place.emplace(places_.place_of(leaf), &nodes);
  for (const auto& [place, nodes] : by_place) {
    encode(out, place);
    out.u64(nodes->size());
    for (const model::NodeId id : *nodes) out.u64(id.value);
  }
}

std::size_t Cluster::nodes_up() const {
  std::size_t count = 0;
  for (const auto& [shape, shape_class] : shapes_) count += shape_class.nodes_up;
  return count;
}

ShapeClass& Cluster::class_of(NodeShape shape) {
  const auto [place, is_new] = shapes_.try_emplace(std::move(shape));
  ShapeClass& shape_class = place->second;
  if (is_new) {
    shape_class.shape = &place->first;
    shape_class.pools = pools_of(place->first, types_);
    const GpuLayout layout = layout_of(place->first);
    LayoutClass& layout_class = layouts_.try_emplace(layout, layout).first->second;
    ++layout_class.shapes;
    shape_class.subsets = &layout_class.subsets;
  }
  return shape_class;
}

void Cluster::erase_class(const NodeShape& shape) {
  const auto place = shapes_.find(shape);
  const auto layout = layouts_.find(place->second.subsets->chooser().layout());
  shapes_.erase(place);
  if (--layout->second.shapes == 0) layouts_.erase(layout);
}

// Takes the node out of its group and into the one of its new state. The containers' own elements
// move along, so nothing is allocated but the rare new group.
void Cluster::move(NodeRecord& record, model::NodeId id, const FreeState& free) {
  ShapeClass& shape_class = *record.shape_class;
  std::map<model::NodeId, LeafIndex>::node_type element;
  std::set<model::NodeId>::node_type leaf_element;
  if (record.free.is_up) {
    const auto group = shape_class.groups.find(key_of(record.free));
    CHECK(group != shape_class.groups.end());
    element = group->second.nodes.extract(id);
    CHECK(!element.empty());
    if (record.leaf != 0) leaf_element = extract_from_leaf(group->second, record.leaf, id);
    if (group->second.nodes.empty()) shape_class.groups.erase(group);
    --shape_class.nodes_up;
  }
  if (free.is_up) {
    Group& group = group_for(shape_class, free);
    if (element.empty()) {
      group.nodes.emplace(id, record.leaf);
    } else {
      group.nodes.insert(std::move(element));
    }
    if (record.leaf != 0) {
      std::set<model::NodeId>& members = group.by_leaf[record.leaf];
      leaf_element.empty() ? void(members.insert(id))
                           : void(members.insert(std::move(leaf_element)));
    }
    ++shape_class.nodes_up;
  }
  record.free = free;
}

}  // namespace gpu_platform::scheduling
