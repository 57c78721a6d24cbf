#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/node.h"
#include "model/policy.h"
#include "scheduling/node_shape.h"

namespace gpu_platform::scheduling {

// The totals of all nodes, in service or not: shares of the cluster are measured by them. Owner and
// thread: the cluster's. Cost: a node's GPUs.
class ClusterTotals {
 public:
  void add(const NodeShape& node);
  void remove(const NodeShape& node);  // added before

  std::uint64_t gpus() const;
  const std::map<std::string, std::uint64_t>& gpus_by_type() const { return gpus_by_type_; }
  std::uint64_t cpus() const { return cpus_; }
  base::Bytes memory() const { return memory_; }
  // Thousandths of a GPU that counts 1.
  std::uint64_t weighted_gpus(const std::vector<model::GpuWeight>& weights) const;

  friend bool operator==(const ClusterTotals&, const ClusterTotals&) = default;

 private:
  std::map<std::string, std::uint64_t> gpus_by_type_;
  std::uint64_t cpus_ = 0;
  base::Bytes memory_;
};

// The resources of an allocation, to be measured by the totals.
struct HeldAmounts {
  std::uint64_t gpus = 0;  // sevenths of a thousandth of a GPU that counts 1: share × weight
  std::uint64_t cpus = 0;
  base::Bytes memory;

  void add(const model::NodeAllocation& part, const model::Node& node,
           const std::vector<model::GpuWeight>& weights);
};

// Returns the dominant share: the largest of the parts of all GPUs, CPUs and memory, in 2^-32, at
// most all.
// Source: A. Ghodsi et al., Dominant Resource Fairness, NSDI 2011.
std::uint64_t dominant_part(const HeldAmounts& held, const ClusterTotals& totals,
                            const std::vector<model::GpuWeight>& weights);

}  // namespace gpu_platform::scheduling
