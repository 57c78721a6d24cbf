#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/job.h"
#include "model/quota_excess.h"
#include "model/resource_request.h"
#include "model/team.h"

namespace gpu_platform::scheduling {

// A team, user or project with a limit that a job counts against.
struct QuotaSubject {
  model::QuotaHolder holder = model::QuotaHolder::kUser;
  std::string name;

  friend auto operator<=>(const QuotaSubject&, const QuotaSubject&) = default;
};

struct QuotaLimit {
  QuotaSubject subject;
  model::Quota quota;
};

// Returns the limits of a subject; null if it has none.
const model::Quota* quota_of(const model::Organisation& organisation, const QuotaSubject& subject);

// Returns the limits that a job counts against: those of its team and of the teams above it, of its
// user and of its project. Only limits that are set. Cost: the number of teams.
std::vector<QuotaLimit> limits_of(const model::Organisation& organisation,
                                  const model::JobSpec& spec);

// Return whether anything is limited, whether running jobs are, and whether GPU-hours are, of any
// type or of one.
bool limits_anything(const model::Organisation& organisation);
bool limits_starts(const model::Organisation& organisation);
// Returns whether anything is guaranteed: then it matters which jobs are preemptible.
bool guarantees_anything(const model::Organisation& organisation);
// Returns whether the GPUs beyond guarantees are shared by weight.
bool weighs_surplus(const model::Organisation& organisation);
// Returns whether GPUs or GPU-hours are limited by type: then types are told apart.
bool limits_types(const model::Organisation& organisation);
bool limits_hours(const model::Organisation& organisation);

// Returns GPUs in 1/7000, times milliseconds.
std::uint64_t gpu_time(base::GpuShare gpus, base::Duration time);

// Returns the GPUs that a job asks for, in shares of whole GPUs.
base::GpuShare gpu_share_of(const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
