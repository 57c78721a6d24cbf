#pragma once

#include "model/allocation.h"
#include "model/ids.h"
#include "scheduling/cluster.h"
#include "scheduling/undo_log.h"

namespace gpu_platform::scheduling {

GpuMask gpus_of(const model::NodeAllocation& part);
// Whether all of it could be taken now.
bool is_free(const Cluster& cluster, const model::Allocation& allocation);

// Try, then commit or roll back, on the owner's own index: no copy of the cluster is made. What is
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

  // Takes what the allocation says, which must be free: whole GPUs, CPUs and memory, on all its
  // nodes.
  void take(const model::Allocation& allocation);
  // Gives back an allocation, as if its attempt had ended; it must not be free now. GPUs that are
  // out of service stay so.
  void release(const model::Allocation& allocation);
  // Takes as much of this as is free.
  void withhold(model::NodeId node, const FreeState& amount);
  // Nothing more may be placed on the node.
  void shut(model::NodeId node);

  using Mark = UndoLog<Cluster, model::NodeId, FreeState>::Mark;
  Mark mark() const { return log_.mark(); }
  void rollback_to(Mark mark) { log_.rollback_to(cluster_, mark); }
  void rollback() { rollback_to(0); }
  // Keeps everything done so far; marks made before are void.
  void commit() { log_.forget(); }

 private:
  Cluster& cluster_;
  UndoLog<Cluster, model::NodeId, FreeState> log_;
};

}  // namespace gpu_platform::scheduling
