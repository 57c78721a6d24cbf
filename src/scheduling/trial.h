#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/allocation.h"
#include "model/ids.h"
#include "scheduling/cluster.h"

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

  // Takes the allocation, which must be free: whole GPUs, CPUs and memory, on all its nodes.
  void take(const model::Allocation& allocation);
  // Gives back an allocation, as if its attempt had ended; it must not be free now. GPUs that are
  // out of service stay so.
  void release(const model::Allocation& allocation);
  // Takes as much of the allocation as is free.
  void withhold(model::NodeId node, const FreeState& amount);
  // Takes all free GPUs of the node out of reach that are in the mask.
  void withhold_gpus(model::NodeId node, GpuMask gpus);
  // Makes free degraded GPUs as good as the others.
  void expose_degraded();
  // Shuts the node: nothing more is placed on it.
  void shut(model::NodeId node);

  using Mark = UndoLog<Cluster, model::NodeId, FreeState>::Mark;
  Mark mark() const { return log_.mark(); }
  void rollback_to(Mark mark) { log_.rollback_to(cluster_, mark); }
  void rollback() { rollback_to(0); }
  // Keeps all changes so far; earlier marks are void.
  void commit() { log_.forget(); }

 private:
  Cluster& cluster_;
  UndoLog<Cluster, model::NodeId, FreeState> log_;
};

}  // namespace gpu_platform::scheduling
