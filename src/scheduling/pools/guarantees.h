#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/units.h"
#include "model/job.h"
#include "model/team.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

// What is one holder's own: a team's, with all below it that has no guarantee itself, or a user's.
struct Guarantee {
  base::GpuShare gpus;
  std::optional<base::GpuShare> borrow_limit;  // held at once above it; absent: any
  base::GpuShare lend_limit;                   // at most gpus

  friend bool operator==(const Guarantee&, const Guarantee&) = default;
};

// All guarantees, and the rest of the cluster, which is guaranteed to no holder. Every job has one
// holder: its user if that user has a guarantee, else the nearest team with one, else none, which
// has no guarantee.
struct Guarantees {
  std::map<QuotaSubject, Guarantee> of;
  base::GpuShare shared;  // nothing where more is guaranteed than there is

  bool empty() const { return of.empty(); }
  // Null: the holder has none.
  const Guarantee* find(const QuotaSubject& holder) const {
    const auto found = of.find(holder);
    return found == of.end() ? nullptr : &found->second;
  }
  friend bool operator==(const Guarantees&, const Guarantees&) = default;
};

// The guarantees as the mode reads them; docs/scheduling.md has the formulas. Empty if nothing is
// guaranteed; then nothing of this folder keeps a job back.
Guarantees guarantees_of(const model::Organisation& organisation, std::uint64_t cluster_gpus);

// GPUs that the configuration guarantees, before a mode scales them.
std::uint64_t guaranteed_in_all(const model::Organisation& organisation);

// Empty: no holder.
QuotaSubject holder_of(const Guarantees& guarantees, const model::Organisation& organisation,
                       const model::JobSpec& spec);

}  // namespace gpu_platform::scheduling
