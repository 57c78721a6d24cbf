#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// What jobs held within a time, as sreport sums it up. Pure.

namespace gpu_platform::shims {

struct Period {
  base::Instant begin;
  base::Instant end;

  base::Duration length() const { return end - begin; }
};

// Returns the part of the period that the records of the cluster cover, which begin at `since`; of
// length zero if they begin after it. Nothing: it is not known when they begin.
Period recorded_part(const Period& period, std::optional<base::Instant> since);

// Resources that are counted, under Slurm's names.
inline constexpr std::string_view kCountedResources[] = {"cpu", "mem", "node", "gres/gpu"};
bool is_counted(std::string_view resource);

// The key is a resource, the value is in seconds; that of memory in MiB seconds.
using Held = std::map<std::string, double, std::less<>>;

// The key is an account and a user.
using HeldBy = std::map<std::pair<std::string, std::string>, Held>;

// Sums up the attempts of jobs as far as they ran within the period. An attempt that runs still
// counts until `now`.
HeldBy usage_of(const std::vector<v1::Job>& jobs, const Period& period, base::Instant now);

// What the nodes have, of each resource. Memory in MiB.
Held capacity_of(const v1::Status& status);

}  // namespace gpu_platform::shims
