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
#include "model/team.h"

namespace gpu_platform::scheduling {

// A team, user or project whose limit a job counts against.
struct QuotaSubject {
  model::QuotaHolder holder = model::QuotaHolder::kUser;
  std::string name;

  friend auto operator<=>(const QuotaSubject&, const QuotaSubject&) = default;
};

struct QuotaLimit {
  QuotaSubject subject;
  model::Quota quota;
};

// The limits that a job counts against: of its team and of those above it, of its user, of its
// project. Only those that limit something. Cost: the teams' number.
std::vector<QuotaLimit> limits_of(const model::Organisation& organisation,
                                  const model::JobSpec& spec);

// Whether anything is limited, what may run is, and GPU-hours are.
bool limits_anything(const model::Organisation& organisation);
bool limits_starts(const model::Organisation& organisation);
// Whether anything is guaranteed: then it matters which jobs are preemptible.
bool guarantees_anything(const model::Organisation& organisation);
bool limits_hours(const model::Organisation& organisation);

// GPUs in 1/7000, times milliseconds.
std::uint64_t gpu_time(base::GpuShare gpus, base::Duration time);

// What a job asks for, in whole GPUs' shares.
base::GpuShare gpu_share_of(const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
