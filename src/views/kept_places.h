#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "scheduling/order/rank.h"
#include "views/snapshot_books.h"

namespace gpu_platform::views {

// Resources that are free and kept for the planned start of another job.
struct KeptPlace {
  model::JobId job;
  base::Instant until;  // unset: at any moment
};

// Finds the job for which free resources are kept that another one could start on. Asks once for
// equal requests.
//
// Ownership: refers to the books, which must outlive it. Thread: one at a time. Cost: planned
// starts and preemption holds, for each kind of request.
class KeptPlaces {
 public:
  explicit KeptPlaces(SnapshotBooks& books) : books_(&books) {}

  // `rank`: null for a job that would be submitted now. `comes_last`: behind all planned starts,
  // at any rank.
  std::optional<KeptPlace> kept_from(const model::JobSpec& spec, const scheduling::Rank* rank,
                                     bool comes_last);

 private:
  struct Known {
    model::ResourceRequest request;
    base::Duration time_limit;
    std::size_t planned_ahead = 0;
    std::optional<KeptPlace> kept;
  };

  const controller::Snapshot& snapshot() const { return books_->snapshot(); }
  std::size_t planned_before(const scheduling::Rank* rank) const;
  std::optional<KeptPlace> find(const model::JobSpec& spec, std::size_t planned_ahead);

  SnapshotBooks* books_;
  std::vector<Known> known_;
};

}  // namespace gpu_platform::views
