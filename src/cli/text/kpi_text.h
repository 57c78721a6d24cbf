#pragma once

#include <string>

#include "cli/text/table.h"
#include "gpu_platform/v1/kpi.pb.h"

// Key figures, for people and for spreadsheets.

namespace gpu_platform::cli {

// Tables and lines of times, jobs, causes, GPUs, kinds, teams and idle jobs, with the targets
// beside the figures. What is not known shows as "-".
std::string kpi_page(const v1::Kpi& kpi, const TableStyle& style);

// A line for each figure that is known: "section,name,figure,value", with a title.
std::string kpi_csv(const v1::Kpi& kpi);

}  // namespace gpu_platform::cli
