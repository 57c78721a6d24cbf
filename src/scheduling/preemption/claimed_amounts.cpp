#include "scheduling/preemption/claimed_amounts.h"

namespace gpu_platform::scheduling {

void ClaimedAmounts::add(const model::Allocation& claimed) {
  for (const model::NodeAllocation& part : claimed.nodes) {
    Amount& amount = on_[part.node];
    amount.cpus += part.cpus;
    amount.memory += part.memory;
  }
}

void ClaimedAmounts::remove(const model::Allocation& claimed) {
  for (const model::NodeAllocation& part : claimed.nodes) {
    Amount& amount = on_.at(part.node);
    amount.cpus -= part.cpus;
    amount.memory -= part.memory;
  }
}

FreeState ClaimedAmounts::beside(const model::NodeAllocation& part) const {
  const Amount& amount = on_.at(part.node);
  return {.cpus = amount.cpus - part.cpus, .memory = amount.memory - part.memory};
}

}  // namespace gpu_platform::scheduling
