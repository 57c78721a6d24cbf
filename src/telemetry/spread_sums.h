#pragma once

#include <string>
#include <string_view>

#include "telemetry/block.h"

// Sums of the distributions of a block, so that a window which has all of the block reads one
// distribution of a metric and not one for each quarter of an hour: these take longer than all
// else.

namespace gpu_platform::telemetry {

// The name of the column that has the sum of the metric's distributions. No metric has such a name.
std::string name_of_sum(std::string_view metric);

// Adds one column of one point for each that has a distribution at each of its points.
void add_sums(Block& block);
// Removes these columns: before points are added to the block.
void remove_sums(Block& block);

}  // namespace gpu_platform::telemetry
