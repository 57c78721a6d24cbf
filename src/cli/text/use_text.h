#pragma once

#include <string>

#include "cli/text/json_view.h"
#include "cli/text/table.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/use.pb.h"

// What jobs and commands did on their GPUs, for people.

namespace gpu_platform::cli {

// "monitored 45.2 s, 45 readings each 1 s", a table with a line for each GPU, and notes below it:
// energy, throttling, readings that are missing.
std::string use_page(const v1::AttemptUse& use, const TableStyle& style);

// The page of each attempt, the latest last. Empty: nothing was read.
std::string use_page(const v1::JobUse& use, const TableStyle& style);

// "GPU 87 %, GPU memory 19 % (15.1 GiB), 12.3 kJ"; empty: nothing is known.
std::string gpu_use_text(const v1::JobGpuUse& use);

// "1.2 kJ".
std::string energy_text(double joules);

// Compares two documents of monitor_json(): a row for each metric that both have, with the mean of
// each over all its GPUs, the difference, and how much of it may be noise.
std::string diff_page(const Json& a, const Json& b, const TableStyle& style);
// The same as a document.
Json diff_json(const Json& a, const Json& b);

}  // namespace gpu_platform::cli
