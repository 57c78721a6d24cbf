#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "shims/options/option_table.h"
#include "shims/submission/resources.h"
#include "shims/views/partitions.h"

// What -p and -q of a submission stand for at the site. Pure.

namespace gpu_platform::shims {

struct SiteChoice {
  std::string partition;
  std::string qos;  // empty: none was named, and the site has none called "normal"
  std::vector<std::string> gpu_types;        // of the partition's nodes; empty: all nodes
  std::string priority;                      // class; empty: the usual one
  std::optional<base::Duration> time_limit;  // of a job that gives none
  bool can_notify = false;                   // the site has a command for --mail-type
  std::uint32_t shards_per_gpu = 4;          // the site's
  std::vector<std::string> warnings;
};

struct SiteRefusal {
  std::string detail;  // names what was asked for, and what there is
  std::string reason;  // in Slurm's words: "Invalid partition name specified"
};

// Returns the first of several partitions ("-p a,b") whose limits the job keeps. `time_limit`: what
// the job requests.
std::expected<SiteChoice, SiteRefusal> choose(const Site& site, const Settings& settings,
                                              const Resources& resources,
                                              std::optional<base::Duration> time_limit);

}  // namespace gpu_platform::shims
