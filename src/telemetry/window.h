#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "telemetry/history.h"
#include "telemetry/points.h"

// Answers a query from what several tiers keep of one series.

namespace gpu_platform::telemetry {

// One sample as it was kept.
struct Sample {
  base::Instant at;
  std::int64_t value = 0;
};

// The distribution of the values of a quarter of an hour, or of several, which then lie in the
// window and have no samples.
struct KeptSpread {
  base::Instant from;
  base::Instant to;
  Distribution values;
};

// What is kept of one metric of one subject, or the part of it that a query needs: minutes add up
// exactly, so samples matter only for steps below a minute, at ends of the window that lie within a
// minute, and after the last minute. `…_since`: from when on the list has all that there was (none:
// it has nothing). Lists are in the order in which their parts came: a span may come twice, and
// times may run backwards. They may reach beyond the window: the last value of a counter before it
// says from where the counter grew. Spans that are still open may be among them (Rollup::open).
struct KeptSeries {
  std::optional<base::Instant> samples_since;
  std::vector<Sample> samples;
  std::optional<base::Instant> minutes_since;
  std::vector<Point> minutes;
  std::optional<base::Instant> quarters_since;
  std::vector<Point> quarters;
  std::vector<KeptSpread> spreads;  // of `quarters`, if the query wants them
};

// The span of the points that answer the query: its own step or the one that is kept, if that is
// longer; 0: samples. A multiple of the step of every tier that is read.
base::Duration step_of_answer(const HistoryQuery& query, const KeptSeries& kept);

// Answers the query for one of its series. Of each moment the finest tier that has it is taken, and
// no moment is counted twice. Points are spans of step_of_answer(): steps that divide an hour begin
// with the hour, steps of hours with the day (UTC).
Series answer(const HistoryQuery& query, const Subject& subject, MetricId metric,
              const KeptSeries& kept);

}  // namespace gpu_platform::telemetry
