#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/ids.h"

// Paths of output files may name the job: %j its id, %x its name, %u its user, %N its (first) node,
// %% a percent sign; of a member of an array also %A the array's id and %a its index there.

namespace gpu_platform::model {

struct OutputNames {
  JobId job;
  std::string_view name;
  std::string_view user;
  std::string_view node;
  JobId array_id = {};  // invalid: it is no member of an array
  std::uint32_t array_index = 0;
};

enum class PatternOf : std::uint8_t { kJob, kArray };

// An error names `field` and the part that is not understood.
base::Status check_output_pattern(std::string_view pattern, std::string_view field, PatternOf of);

// Returns whether it contains the job's name, which may change.
bool names_job(std::string_view pattern);

// A '/' in a name becomes '_', so that no name leads into another directory. What is not understood
// stays as it is.
std::string expand_output(std::string_view pattern, const OutputNames& names);

}  // namespace gpu_platform::model
