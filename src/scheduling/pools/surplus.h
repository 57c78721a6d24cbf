#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/units.h"
#include "model/quota_excess.h"
#include "scheduling/pools/balance.h"
#include "scheduling/quota/subjects.h"

// The GPUs beyond all guarantees, shared among the holders that want them by weight.

namespace gpu_platform::scheduling {

// What a holder has, wants and may have of them. All GPUs are those above its guarantee.
struct SurplusPart {
  std::uint32_t weight = 1;
  base::GpuShare held;
  base::GpuShare wanted;  // with its waiting jobs, as far as its own limits go
  base::GpuShare share;   // at most wanted

  friend bool operator==(const SurplusPart&, const SurplusPart&) = default;
};
using SurplusParts = std::map<QuotaSubject, SurplusPart>;

using WaitingGpus = std::map<QuotaSubject, base::GpuShare>;

// Sets the share of each part, by filling them in proportion to their weights: a part that has
// all it wants leaves the rest to the others. A part without weight gets only what the others do
// not want. Rounded down to the least share of a GPU. Cost: O(parts log parts).
void fill(SurplusParts& parts, base::GpuShare surplus);

// Returns the parts of all holders, and of the work without one (an empty subject), given the GPUs
// that their jobs wait for. The surplus is what is guaranteed to no holder, and what holders lend
// whose running and waiting jobs do not need it. Empty if no weight is set.
SurplusParts surplus_parts(const PoolBalance& balance, const WaitingGpus& waiting);

// Returns why jobs of the holder above its guarantee come last: it has its share, with what the
// balance counts now, and wants more. Nothing if it is not so.
std::optional<model::SurplusExcess> surplus_excess(const SurplusParts& parts,
                                                   const PoolBalance& balance,
                                                   const QuotaSubject& holder);

}  // namespace gpu_platform::scheduling
