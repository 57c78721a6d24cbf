#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/ids.h"

// Paths of output files may name the job: %j its id, %x its name, %u its user, %N its (first) node,
// %% a percent sign.

namespace gpu_platform::model {

struct OutputNames {
  JobId job;
  std::string_view name;
  std::string_view user;
  std::string_view node;
};

// An error names `field` and the part that is not understood.
base::Status check_output_pattern(std::string_view pattern, std::string_view field);

// Whether it contains the job's name, which may change.
bool names_job(std::string_view pattern);

// A '/' in a name becomes '_', so that no name leads into another directory. What is not understood
// stays as it is.
std::string expand_output(std::string_view pattern, const OutputNames& names);

}  // namespace gpu_platform::model
