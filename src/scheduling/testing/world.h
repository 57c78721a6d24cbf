#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "model/node.h"
#include "model/policy.h"
#include "scheduling/books.h"

// Builders for the tests and benchmarks of this room: node(1).gpus(8, "H100-80GB").cpus(112).

namespace gpu_platform::scheduling {

// The instant at which tests plan; jobs may have run for long.
inline constexpr base::Instant kNow(base::hours(1000).value());

// The UUID of a GPU of the worlds.
inline std::string uuid_in_tests(std::uint64_t node, std::size_t gpu) {
  return "GPU-" + std::to_string(node) + "-" + std::to_string(gpu);
}

class NodeBuilder {
 public:
  explicit NodeBuilder(std::uint64_t id) {
    node_.id = model::NodeId(id);
    node_.cpus = 64;
    node_.memory = base::kGiB * 512;
  }
  // Adds GPUs with the memory given, `per_numa` of them to each NUMA node in turn.
  NodeBuilder& gpus(std::uint32_t count, std::string type = "H100-80GB",
                    base::Bytes memory = base::kGiB * 80, std::uint32_t per_numa = 4) {
    for (std::uint32_t i = 0; i < count; ++i) {
      model::Gpu gpu;
      gpu.info.type = type;
      gpu.info.memory = memory;
      gpu.info.numa_node = static_cast<std::int32_t>(node_.gpus.size() / per_numa);
      node_.gpus.push_back(std::move(gpu));
    }
    return *this;
  }
  // Processes of no job load the GPU.
  NodeBuilder& loaded(std::uint32_t gpu, std::uint32_t percent, base::Bytes free) {
    node_.gpus.at(gpu).load = model::GpuLoad{percent, free};
    return *this;
  }
  NodeBuilder& numa(std::uint32_t gpu, std::int32_t numa_node) {
    node_.gpus.at(gpu).info.numa_node = numa_node;
    return *this;
  }
  // NUMA nodes 0, 1, … lie on these sockets; to be called once.
  NodeBuilder& sockets(std::initializer_list<std::int32_t> of_numa_nodes) {
    std::uint32_t id = 0;
    for (const std::int32_t socket : of_numa_nodes) {
      node_.topology.numa_nodes.push_back({.id = id++, .socket = socket});
    }
    return *this;
  }
  // Call it after all GPUs; pairs without a link stay unknown.
  NodeBuilder& link(std::uint32_t a, std::uint32_t b, model::GpuLink link) {
    const std::size_t count = node_.gpus.size();
    node_.topology.links.resize(count * (count - 1) / 2);
    node_.topology.links.at(model::link_index(count, a, b)) = link;
    return *this;
  }
  NodeBuilder& links_between_all(model::GpuLink each) {
    const std::size_t count = node_.gpus.size();
    node_.topology.links.assign(count * (count - 1) / 2, each);
    return *this;
  }
  NodeBuilder& cpus(std::uint32_t count) {
    node_.cpus = count;
    return *this;
  }
  NodeBuilder& memory(base::Bytes size) {
    node_.memory = size;
    return *this;
  }
  NodeBuilder& used(std::uint32_t cpus, base::Bytes memory = {}) {
    node_.cpus_used = cpus;
    node_.memory_used = memory;
    return *this;
  }
  NodeBuilder& state(model::NodeState state) {
    node_.state = state;
    return *this;
  }
  NodeBuilder& gpu_state(std::uint32_t gpu, model::GpuState state) {
    node_.gpus.at(gpu).state = state;
    return *this;
  }
  NodeBuilder& network(std::string domain, std::string rack = {}, std::string zone = {}) {
    node_.network = {std::move(domain), std::move(rack), std::move(zone)};
    return *this;
  }
  NodeBuilder& kubernetes() {
    node_.engine = model::EngineKind::kKubernetes;
    return *this;
  }
  NodeBuilder& capacity(model::CapacityClass capacity) {
    node_.capacity = capacity;
    return *this;
  }
  // Pods of others use this much of the node.
  NodeBuilder& others(std::uint32_t cpus, base::Bytes memory = {}) {
    node_.others_cpus = cpus;
    node_.others_memory = memory;
    return *this;
  }
  // Names all GPUs so far as uuid_in_tests() does.
  NodeBuilder& named() {
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
      node_.gpus[i].info.uuid = uuid_in_tests(node_.id.value, i);
    }
    return *this;
  }
  NodeBuilder& degraded(std::uint32_t gpu) {
    model::Gpu& of = node_.gpus.at(gpu);
    model::set_taint(
        of.taints,
        {model::TaintSource::kHealth, model::TaintEffect::kDegraded, "it has XIDs", "health", {}});
    model::settle(of);
    return *this;
  }
  // Its GPUs can be shared in these ways, in their order.
  NodeBuilder& shares(std::vector<model::ShareMode> modes = {model::ShareMode::kTimeSlice,
                                                             model::ShareMode::kMps}) {
    node_.share_modes = std::move(modes);
    node_.watches_gpu_memory = true;
    return *this;
  }
  // Its driver withholds the memory of processes.
  NodeBuilder& unwatched() {
    node_.watches_gpu_memory = false;
    return *this;
  }
  NodeBuilder& busy(std::uint32_t gpu) { return gpu_state(gpu, model::GpuState::kInUse); }
  operator model::Node() const { return node_; }  // NOLINT(google-explicit-constructor): a builder

 private:
  model::Node node_;
};

inline model::GpuLink nvlinks(std::uint32_t count) {
  return {.kind = model::LinkKind::kNvLink, .nvlinks = count};
}

inline NodeBuilder node(std::uint64_t id) {
  return NodeBuilder(id);
}

inline model::ResourceRequest gpus(std::uint32_t count) {
  model::ResourceRequest request;
  request.gpus = count;
  return request;
}

// A part of one GPU, in thousandths.
inline model::ResourceRequest part(std::int64_t thousandths, model::Tenant tenant = {1000, "red"}) {
  model::ResourceRequest request = gpus(1);
  request.share_per_gpu = base::GpuShare(thousandths * 7);
  request.tenant = std::move(tenant);
  return request;
}

// The rules of a site that lets all its GPUs be shared.
inline model::Sharing all_shared(model::SharedBetween between = model::SharedBetween::kNever) {
  model::Sharing rules;
  rules.is_on = true;
  rules.between_users = between;
  return rules;
}

inline WaitingJob waiting(std::uint64_t id, model::ResourceRequest request,
                          std::uint8_t priority = 5, std::int64_t submitted_at_s = 1) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->request = std::move(request);
  spec->priority = model::priority_of_number(priority);
  return {model::JobId(id), std::move(spec), base::Instant() + base::seconds(submitted_at_s)};
}

inline Cluster cluster_of(const std::vector<model::Node>& nodes, const model::Sharing& rules = {}) {
  Cluster cluster;
  cluster.follow(rules);
  for (const model::Node& each : nodes) cluster.update(each);
  return cluster;
}

inline WaitingQueue queue_of(const std::vector<WaitingJob>& jobs, const model::Policy& policy) {
  WaitingQueue queue;
  for (const WaitingJob& job : jobs) queue.put(job, policy);
  return queue;
}

inline Books books_of(const std::vector<model::Node>& nodes, const std::vector<WaitingJob>& jobs,
                      const model::Policy& policy) {
  return Books({.cluster = cluster_of(nodes, policy.sharing), .queue = queue_of(jobs, policy)});
}

// Enters an allocation into the nodes as the controller would.
inline void occupy(std::vector<model::Node>& nodes, const model::Allocation& allocation,
                   model::JobId job) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    model::Node& holder = *std::ranges::find(nodes, part.node, &model::Node::id);
    holder.cpus_used += part.cpus;
    holder.memory_used += part.memory;
    for (const model::GpuGrant& grant : part.grants) {
      model::Gpu& gpu = holder.gpus.at(grant.gpu_index);
      gpu.state = model::GpuState::kAllocated;
      gpu.holders.push_back({{job, 1},
                             grant.share,
                             grant.memory,
                             model::HolderPhase::kAllocated,
                             grant.mode,
                             allocation.tenant.uid,
                             allocation.tenant.team});
    }
  }
}

// The indices of the GPUs on the allocation's only node.
inline std::vector<std::uint32_t> indices(const model::Allocation& allocation) {
  std::vector<std::uint32_t> result;
  for (const model::GpuGrant& grant : allocation.nodes.at(0).grants) {
    result.push_back(grant.gpu_index);
  }
  return result;
}

// A vector in the form that explain/ visits.
struct NodeList {
  std::vector<model::Node> nodes;
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const model::Node& each : nodes) visit(each.id.value, each);
  }
};

}  // namespace gpu_platform::scheduling
