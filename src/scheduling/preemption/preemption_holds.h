#pragma once

#include <map>
#include <utility>

#include "model/allocation.h"
#include "model/ids.h"
#include "model/preemption_hold.h"
#include "scheduling/node_shape.h"

namespace gpu_platform::scheduling {

// The preemption holds. A job has one at most, and holds never overlap.
//
// Ownership: holds copies. Thread: one owner.
class PreemptionHolds {
 public:
  using Map = std::map<model::JobId, model::PreemptionHold>;  // by beneficiary

  void put(model::PreemptionHold hold) {
    holds_.insert_or_assign(hold.beneficiary, std::move(hold));
  }
  bool erase(model::JobId beneficiary) { return holds_.erase(beneficiary) > 0; }

  const model::PreemptionHold* find(model::JobId beneficiary) const {
    const auto found = holds_.find(beneficiary);
    return found == holds_.end() ? nullptr : &found->second;
  }
  const Map& all() const { return holds_; }
  bool empty() const { return holds_.empty(); }

  friend bool operator==(const PreemptionHolds&, const PreemptionHolds&) = default;

 private:
  Map holds_;
};

// The CPUs and memory of each node in all preemption holds together. GPUs are not counted, because
// a GPU is in one hold at most.
class AmountsOnHold {
 public:
  void add(const model::Allocation& held);
  void remove(const model::Allocation& held);  // added before
  // Returns what is held on the node of that part beside the part itself, which must have been
  // added.
  FreeState beside(const model::NodeAllocation& part) const;

 private:
  struct Amount {
    std::uint32_t cpus = 0;
    base::Bytes memory;
  };
  std::map<model::NodeId, Amount> on_;
};

}  // namespace gpu_platform::scheduling
