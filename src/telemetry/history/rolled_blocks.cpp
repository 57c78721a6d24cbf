#include "telemetry/history/rolled_blocks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "telemetry/rollup.h"

namespace gpu_platform::telemetry {

namespace {

// Reads the columns of a block side by side, in the order of the times.
class Rows {
 public:
  Rows(Of of, const Block& block) {
    for (const Column& column : block.columns) {
      const std::optional<MetricId> id = metric_named(of, column.metric);
      if (id) cursors_.push_back({*id, &column, 0});
    }
    std::ranges::sort(cursors_, {}, &Cursor::metric);
  }

  // The values at the next time, which has this place. Valid until the next call.
  const std::vector<Value>& at(std::size_t place) {
    values_.clear();
    for (Cursor& cursor : cursors_) {
      const Column& column = *cursor.column;
      if (cursor.next == column.values.size()) continue;
      if (!column.places.empty() && column.places[cursor.next] != place) continue;
      values_.push_back({cursor.metric, column.values[cursor.next++]});
    }
    return values_;
  }

 private:
  struct Cursor {
    MetricId metric = 0;
    const Column* column = nullptr;
    std::size_t next = 0;
  };
  std::vector<Cursor> cursors_;  // ascending by metric
  std::vector<Value> values_;
};

// Makes a block of finished spans, one after the other.
class BlockOfSpans {
 public:
  explicit BlockOfSpans(Tier tier) { block_.tier = tier; }

  void add(const RolledSpan& span) {
    const auto place = static_cast<std::uint32_t>(block_.times.size());
    block_.times.push_back(span.from);
    for (const RolledMetric& rolled : span.metrics) {
      Column& column = column_of(rolled.metric);
      column.places.push_back(place);
      column.values.push_back(rolled.point.sum);
      column.min.push_back(rolled.point.min);
      column.max.push_back(rolled.point.max);
      column.count.push_back(rolled.point.count);
      if (span.tier == Tier::kQuarterHour && has_spread(metric(rolled.metric))) {
        column.spread.push_back(rolled.spread);
      }
    }
  }

  Block take() {
    for (Column& column : block_.columns) {
      if (column.places.size() == block_.times.size()) column.places.clear();
    }
    return std::move(block_);
  }

 private:
  Column& column_of(MetricId id) {
    const auto [index, is_new] = columns_.try_emplace(id, block_.columns.size());
    if (is_new) block_.columns.emplace_back().metric = metric(id).name;
    return block_.columns[index->second];
  }

  Block block_;
  std::map<MetricId, std::size_t> columns_;
};

void note(std::vector<Value>& counters, const std::vector<Value>& values) {
  for (const Value& value : values) {
    if (metric(value.metric).kind != MetricKind::kCounter) continue;
    const auto place = std::ranges::lower_bound(counters, value.metric, {}, &Value::metric);
    if (place != counters.end() && place->metric == value.metric) {
      place->value = value.value;
    } else {
      counters.insert(place, value);
    }
  }
}

}  // namespace

RolledBlocks roll_up(Of of, const Block& raw, std::vector<Value>& counters) {
  Rollup rollup;
  if (!raw.times.empty() && !counters.empty()) {
    // From them the counters grow; their own span is in the points already.
    rollup.take(raw.times.front(), counters);
    rollup.finish();
    rollup.finished();
  }
  Rows rows(of, raw);
  for (std::size_t place = 0; place < raw.times.size(); ++place) {
    const std::vector<Value>& values = rows.at(place);
    rollup.take(raw.times[place], values);
    note(counters, values);
  }
  rollup.finish();
  BlockOfSpans minutes(Tier::kMinute);
  BlockOfSpans quarters(Tier::kQuarterHour);
  for (const RolledSpan& span : rollup.finished()) {
    (span.tier == Tier::kMinute ? minutes : quarters).add(span);
  }
  return {minutes.take(), quarters.take()};
}

}  // namespace gpu_platform::telemetry
