#pragma once

#include <string>

#include "simulation/faults/run_faults.h"

namespace gpu_platform::simulation {

// The report as one JSON document (docs/contract.md) and as text for people.
std::string fault_report_json(const FaultReport& report, Plant plant);
std::string fault_report_text(const FaultReport& report, Plant plant);

}  // namespace gpu_platform::simulation
