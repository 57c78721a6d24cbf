#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "telemetry/frame.h"
#include "telemetry/points.h"

// Makes points of a minute and of a quarter of an hour from the samples of one subject.

namespace gpu_platform::telemetry {

// The points of neighbouring spans, or of two parts of one span in the order in which they came, as
// one. It begins where the first begins. A sum beyond 64 bits stays at the bound.
Point joined(const Point& earlier, const Point& later, MetricKind kind);

// By how much a counter grew from one sample to the next; a restart counts from 0.
std::int64_t growth(std::int64_t before, std::int64_t now);

// The begin of the span of this length that the instant lies in. Spans lie side by side from
// 1970-01-01T00:00:00Z on.
base::Instant span_begin(base::Instant at, base::Duration length);

// One finished span of a subject.
struct RolledMetric {
  MetricId metric = 0;
  Point point;
  Distribution spread;  // of quarters of an hour and metrics that have one; else empty

  friend bool operator==(const RolledMetric&, const RolledMetric&) = default;
};
struct RolledSpan {
  Tier tier = Tier::kMinute;
  base::Instant from;
  std::vector<RolledMetric> metrics;  // ascending, each once

  friend bool operator==(const RolledSpan&, const RolledSpan&) = default;
};

// One thread. A span is finished by the first sample of another span, or by finish(). If the clock
// is set back or finish() comes early, a span comes twice: joined() makes one of both. The growth
// of a counter between the last sample of a span and the first of the next belongs to the next;
// that before its first sample of all is not known and counts as none.
class Rollup {
 public:
  // Adds what was read at one moment. `values` ascend by metric, each once, as in a Frame.
  void take(base::Instant at, std::span<const Value> values);
  // Finishes the open spans.
  void finish();
  // Returns the spans that were finished since the last call, in the order in which they ended.
  std::vector<RolledSpan> finished() { return std::exchange(finished_, {}); }
  // The spans that are open, as they are now.
  std::vector<RolledSpan> open() const;

 private:
  struct Metric {
    MetricId id = 0;
    MetricKind kind = MetricKind::kLevel;
    bool has_spread = false;
    std::optional<std::int64_t> last;  // of a counter
    Point minute;                      // count 0: nothing in the open one
    Point quarter;
    // The buckets of the open quarter in the order in which they first came: few, and mostly the
    // last one again.
    std::vector<std::pair<std::int16_t, std::uint32_t>> spread;
  };

  Metric& metric_at(std::size_t& place, MetricId id);
  static void add(Metric& metric, std::int64_t value);
  RolledSpan span_of(Tier tier) const;
  void finish(Tier tier);

  std::vector<Metric> metrics_;  // ascending
  std::optional<base::Instant> minute_;
  std::optional<base::Instant> quarter_;
  std::vector<RolledSpan> finished_;
};

}  // namespace gpu_platform::telemetry
