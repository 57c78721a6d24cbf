#pragma once

#include <cstddef>
#include <string>

#include "gpu_platform/v1/telemetry.pb.h"

// The history for people, and for spreadsheets.

namespace gpu_platform::cli {

struct HistoryStyle {
  std::size_t width = 80;
  bool is_ascii = false;
};

// A graph for each series; where a metric has more than four of them, a line for each.
std::string history_page(const v1::History& history, const HistoryStyle& style);

// A line for each point, below a line of the columns' names.
std::string history_csv(const v1::History& history);

}  // namespace gpu_platform::cli
