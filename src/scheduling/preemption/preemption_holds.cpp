#include "scheduling/preemption/preemption_holds.h"

namespace gpu_platform::scheduling {

void AmountsOnHold::add(const model::Allocation& held) {
  for (const model::NodeAllocation& part : held.nodes) {
    Amount& amount = on_[part.node];
    amount.cpus += part.cpus;
    amount.memory += part.memory;
  }
}

void AmountsOnHold::remove(const model::Allocation& held) {
  for (const model::NodeAllocation& part : held.nodes) {
    Amount& amount = on_.at(part.node);
    amount.cpus -= part.cpus;
    amount.memory -= part.memory;
  }
}

FreeState AmountsOnHold::beside(const model::NodeAllocation& part) const {
  const Amount& amount = on_.at(part.node);
  return {.cpus = amount.cpus - part.cpus, .memory = amount.memory - part.memory};
}

}  // namespace gpu_platform::scheduling
