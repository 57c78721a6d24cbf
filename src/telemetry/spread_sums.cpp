#include "telemetry/spread_sums.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "telemetry/rollup.h"

namespace gpu_platform::telemetry {

namespace {

constexpr std::string_view kSum = ".sum";

Column sum_of(const Column& column) {
  Point point;
  Distribution spread;
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    const Point quarter{.min = column.min[i],
                        .max = column.max[i],
                        .sum = column.values[i],
                        .count = static_cast<std::uint32_t>(column.count[i])};
    point = joined(point, quarter, MetricKind::kLevel);
    spread.add(column.spread[i]);
  }
  return {.metric = name_of_sum(column.metric),
          .places = {0},
          .values = {point.sum},
          .min = {point.min},
          .max = {point.max},
          .count = {point.count},
          .spread = {std::move(spread)}};
}

}  // namespace

std::string name_of_sum(std::string_view metric) {
  return std::string(metric) += kSum;
}

void add_sums(Block& block) {
  std::vector<Column> sums;
  for (const Column& column : block.columns) {
    const auto is_empty = [](const Distribution& spread) { return spread.count() == 0; };
    if (column.spread.empty() || std::ranges::any_of(column.spread, is_empty)) continue;
    sums.push_back(sum_of(column));
  }
  std::ranges::move(sums, std::back_inserter(block.columns));
}

void remove_sums(Block& block) {
  std::erase_if(block.columns, [](const Column& column) { return column.metric.ends_with(kSum); });
}

}  // namespace gpu_platform::telemetry
