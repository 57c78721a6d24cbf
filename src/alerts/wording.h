#pragma once

#include <string>

#include "alerts/evaluator.h"

namespace gpu_platform::alerts {

// "GPU 3 of dgx-1 has 91 °C (limit 85 °C)": one sentence with the value of the fact, without its
// full stop. Odd bytes of labels are shown as '?'.
std::string summary_of(const Rule& rule, const Fact& fact);

// The name of what the labels are about: "GPU 3 of dgx-1", "node dgx-1", "job 42".
std::string place_of(const Labels& labels);

}  // namespace gpu_platform::alerts
