#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/allocation.h"
#include "model/ids.h"
#include "scheduling/cluster.h"
#include "scheduling/part_index.h"

namespace gpu_platform::scheduling {

// The values that the writes of a trial replaced, newest last. It works on any table that offers
// Value exchange(Key, const Value&)   replace a value, return the former one
// and uses nothing else of it, so no operation needs an inverse of its own.
template <class Table, class Key, class Value>
class UndoLog {
 public:
  using Mark = std::size_t;

  void write(Table& table, const Key& key, const Value& value) {
    entries_.emplace_back(key, table.exchange(key, value));
  }
  Mark mark() const { return entries_.size(); }
  void rollback_to(Table& table, Mark mark) {
    for (; entries_.size() > mark; entries_.pop_back()) {
      table.exchange(entries_.back().first, entries_.back().second);
    }
  }
  void forget() { entries_.clear(); }

 private:
  std::vector<std::pair<Key, Value>> entries_;
};

// The GPUs that it has, or has parts of.
GpuMask gpus_of(const model::NodeAllocation& part);
// Returns whether all of it could be taken now: healthy GPUs alone, or degraded ones as well.
enum class Accepts : std::uint8_t { kHealthy, kDegraded };
bool is_free(const Cluster& cluster, const model::Allocation& allocation,
             Accepts accepts = Accepts::kHealthy);

// Tries, then commits or rolls back, on the owner's own index: the cluster is not copied. What is
// not committed is rolled back when the trial ends, and the cluster is then what it was.
//
// The cluster must outlive the trial, and nothing else may write to it meanwhile. Trials nest by
// marks.
class Trial {
 public:
  explicit Trial(Cluster& cluster) : cluster_(cluster) {}
  ~Trial() { rollback(); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const Cluster& cluster() const { return cluster_; }

  // Takes the allocation, which must be free: whole GPUs or a part of one, CPUs and memory, on all
  // its nodes. The first part of a GPU takes it from those that are wholly free.
  void take(const model::Allocation& allocation);
  // Gives back an allocation, as if its attempt had ended; it must not be free now. GPUs that are
  // out of service stay so. With its last part a GPU is wholly free again.
  void release(const model::Allocation& allocation);
  // Takes as much of the amount as is free. Of GPUs in parts nothing more is given.
  void withhold(model::NodeId node, const FreeState& amount);
  // Takes all free GPUs of the node out of reach that are in the mask, and so what is free of those
  // in parts.
  void withhold_gpus(model::NodeId node, GpuMask gpus);
  // Takes out of reach what jobs of these tenants are to have of a GPU, as far as it is free:
  // others get parts beside it alone. A GPU in parts of another mode is out of reach as a whole.
  void withhold_part(const model::GpuRef& gpu, const model::GpuGrant& part,
                     const std::vector<model::Tenant>& tenants);
  // Makes free degraded GPUs as good as the others.
  void expose_degraded();
  // Shuts the node: nothing more is placed on it.
  void shut(model::NodeId node);

  struct Mark {
    std::size_t nodes = 0;
    std::size_t gpus = 0;
  };
  Mark mark() const { return {log_.mark(), part_log_.mark()}; }
  void rollback_to(const Mark& mark) {
    log_.rollback_to(cluster_, mark.nodes);
    part_log_.rollback_to(cluster_.gpu_parts_for_trial(), mark.gpus);
  }
  void rollback() { rollback_to({}); }
  // Keeps all changes so far; earlier marks are void.
  void commit() {
    log_.forget();
    part_log_.forget();
  }

 private:
  void take_part(const model::Allocation& allocation);
  void release_part(const model::Allocation& allocation);
  void withhold_parts(model::NodeId node, GpuMask gpus);
  void write(const model::GpuRef& gpu, const PartState& state) {
    part_log_.write(cluster_.gpu_parts_for_trial(), gpu, state);
  }

  Cluster& cluster_;
  UndoLog<Cluster, model::NodeId, FreeState> log_;
  UndoLog<PartIndex, model::GpuRef, PartState> part_log_;
};

}  // namespace gpu_platform::scheduling
