#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"

namespace gpu_platform::model {

// Selects jobs that have not ended; a job must match all given filters.
struct JobSelection {
  std::vector<JobId> ids;           // ascending; empty: any
  std::optional<std::string> user;  // absent: any
  std::vector<JobState> states;     // empty: any
  std::string name;                 // a pattern; empty: any
  std::vector<Label> labels;        // all must be there
};

bool selects(const JobSelection& selection, const Job& job);

// `*` stands for any text, `?` for one character, everything else for itself.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace gpu_platform::model
