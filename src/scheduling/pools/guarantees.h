#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/gpu_catalogue.h"
#include "model/job.h"
#include "model/team.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

// The guarantee of one holder: of a team, with all below it that has no guarantee itself, or of a
// user.
struct Guarantee {
  base::GpuShare gpus;
  std::optional<base::GpuShare> borrow_limit;   // held at once above it; absent: any
  base::GpuShare lend_limit;                    // at most gpus
  std::optional<base::GpuShare> max_gpus = {};  // held at once; absent: any
  std::uint32_t weight = 1;                     // among those that want more (surplus.h)

  friend bool operator==(const Guarantee&, const Guarantee&) = default;
};

// All guarantees of one pool, and the rest of it, which is guaranteed to no holder. Every job has
// one holder in it: its user if that user has a guarantee, else the nearest team with one, else
// none, which has no guarantee.
struct Guarantees {
  std::map<QuotaSubject, Guarantee> of;
  base::GpuShare shared;     // nothing where more is guaranteed than there is
  bool has_weights = false;  // a weight was set: what is beyond them is shared by weight

  bool empty() const { return of.empty(); }
  // Returns null if the holder has no guarantee.
  const Guarantee* find(const QuotaSubject& holder) const {
    const auto found = of.find(holder);
    return found == of.end() ? nullptr : &found->second;
  }
  friend bool operator==(const Guarantees&, const Guarantees&) = default;
};

// The GPUs of a type, or of a family, of which some are guaranteed by type are a pool with its
// name. All other GPUs are the common pool, named "": the rest of guaranteed_gpus counts there.
template <class Of>
using ByPool = std::map<std::string, Of, std::less<>>;

// Returns the name of the pool that GPUs of the type are in; null if nothing in it is guaranteed.
template <class Of>
const std::string* pool_of_type(const ByPool<Of>& pools, std::string_view gpu_type) {
  const std::string* common = nullptr;
  for (const auto& [name, of] : pools) {
    if (name.empty()) {
      common = &name;
    } else if (model::gpu_type_matches(name, gpu_type)) {
      return &name;
    }
  }
  return common;
}

// The GPUs of the cluster, by type.
using GpusByType = std::map<std::string, std::uint64_t>;

// Returns the guarantees as the mode reads them, of each pool that has some; docs/scheduling.md has
// the formulas. Empty if nothing is guaranteed; then no code of this folder keeps a job back.
ByPool<Guarantees> guarantees_of(const model::Organisation& organisation,
                                 const GpusByType& gpus_by_type);

// The GPUs of a pool that the configuration guarantees, before a mode scales them, and all of it.
struct PoolSize {
  std::uint64_t guaranteed = 0;
  std::uint64_t gpus = 0;
};
ByPool<PoolSize> pool_sizes(const model::Organisation& organisation,
                            const GpusByType& gpus_by_type);

// Returns a sentence for each pool of which more is guaranteed than was found, where guarantees
// count as they are written; a mode that scales them meets all it promises.
std::vector<std::string> unmet_guarantees(const model::Organisation& organisation,
                                          const GpusByType& found);

// Returns an empty value for no holder.
QuotaSubject holder_of(const Guarantees& guarantees, const model::Organisation& organisation,
                       const model::JobSpec& spec);

}  // namespace gpu_platform::scheduling
