#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/words/list_command.h"
#include "gpu_platform/v1/jobs.pb.h"

// The columns of lists of jobs.

namespace gpu_platform::cli {

using JobColumn = ListColumn<v1::Job>;

// The columns that need what the jobs did on their GPUs, which the daemon gives if it is asked.
inline constexpr std::array<std::string_view, 2> kJobUseColumns = {"gpu-utilization", "gpu-memory"};
// The same of what they cost, which is a look-up for each job: only if it is named.
inline constexpr std::string_view kJobCostColumn = "cost";

// The columns of `jobs list`. A narrow terminal leaves out those with the highest number first.
std::vector<JobColumn> job_columns();
// Those of them with these keys, each once, in this order.
std::vector<JobColumn> job_columns(std::initializer_list<std::string_view> keys);

// "87%"; empty if it is not known.
std::string percent_cell(bool is_known, double percent);

}  // namespace gpu_platform::cli
