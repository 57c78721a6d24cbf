#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "cli/json_view.h"
#include "cli/table.h"

// A job as text for people.

namespace gpu_platform::cli {

// One line for each job: `jobs list`.
Table job_table();
std::vector<std::string> job_row(const Json& job, base::Instant now);

// All of a job, as "key: value" lines: `jobs describe`.
// "12 % of 4 CPUs, 45 % of 16 GiB, 20 % of 1h"; empty where nothing is known.
std::string efficiency_of(const Json& job);

std::string job_page(const Json& job, base::Instant now);

// "dgx-1:0-2 dgx-2:4,6": nodes with the indices of their GPUs; the nodes alone where there are
// none.
std::string place_of(const Json& object);

// Time from submission to the start, to the end, or to now; empty when not known.
std::string waited(const Json& job, base::Instant now);
// "42", and "40_3" of a member of an array.
std::string shown_id(const Json& job);

}  // namespace gpu_platform::cli
