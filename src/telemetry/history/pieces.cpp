#include "telemetry/history/pieces.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "telemetry/history/schema.h"

namespace gpu_platform::telemetry {

namespace {

constexpr std::size_t kNoColumn = SIZE_MAX;

struct TimedFrame {
  const Frame* frame = nullptr;
  base::Instant at;
};

struct BySubject {
  bool operator()(const Subject* a, const Subject* b) const { return *a < *b; }
};
using FramesBySubject = std::map<const Subject*, std::vector<TimedFrame>, BySubject>;

// Makes the blocks of one subject after the other; the list of columns is kept.
class BlockMaker {
 public:
  BlockMaker() : column_of_(metrics().size(), kNoColumn) {}

  Block make(std::span<const TimedFrame> samples) {
    Block block;
    block.times.reserve(samples.size());
    for (const TimedFrame& sample : samples) {
      const auto place = static_cast<std::uint32_t>(block.times.size());
      block.times.push_back(sample.at);
      for (const Value& value : sample.frame->values) {
        Column& column = column_for(value.metric, block, samples.size());
        column.places.push_back(place);
        column.values.push_back(value.value);
      }
    }
    for (Column& column : block.columns) {
      if (column.places.size() == block.times.size()) column.places.clear();
    }
    for (const MetricId metric : used_) column_of_[metric] = kNoColumn;
    used_.clear();
    return block;
  }

 private:
  Column& column_for(MetricId id, Block& block, std::size_t samples) {
    std::size_t& index = column_of_[id];
    if (index == kNoColumn) {
      index = block.columns.size();
      used_.push_back(id);
      Column& column = block.columns.emplace_back();
      column.metric = metric(id).name;
      column.places.reserve(samples);
      column.values.reserve(samples);
    }
    return block.columns[index];
  }

  std::vector<std::size_t> column_of_;  // by metric
  std::vector<MetricId> used_;
};

// Appends the pieces of one subject: one for each span, and more where a span has too many samples.
void add_pieces(const Subject& subject, std::span<const TimedFrame> samples, BlockMaker& maker,
                std::vector<Piece>& pieces) {
  std::map<base::Instant, std::vector<TimedFrame>> spans;
  std::vector<base::Instant> order;
  for (const TimedFrame& sample : samples) {
    const auto [span, is_new] = spans.try_emplace(floor_to(sample.at, span_of(Tier::kRaw)));
    if (is_new) order.push_back(span->first);
    span->second.push_back(sample);
  }
  for (const base::Instant begin : order) {
    std::span<const TimedFrame> rest = spans[begin];
    while (!rest.empty()) {
      const std::size_t count = std::min(rest.size(), kMaxBlockTimes);
      pieces.push_back({subject, begin, maker.make(rest.first(count))});
      rest = rest.subspan(count);
    }
  }
}

// Points whose version of the program kept no distribution of the metric get an empty one, if
// others have one.
void append_spread(Column& to, const Column& from) {
  if (to.spread.empty() && from.spread.empty()) return;
  to.spread.resize(to.values.size());
  to.spread.insert(to.spread.end(), from.spread.begin(), from.spread.end());
  to.spread.resize(to.values.size() + from.values.size());
}

void append(Column& to, const Column& from, std::size_t times_before) {
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    const std::size_t place = from.places.empty() ? i : from.places[i];
    to.places.push_back(static_cast<std::uint32_t>(times_before + place));
  }
  const auto add = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  append_spread(to, from);
  add(to.values, from.values);
  add(to.min, from.min);
  add(to.max, from.max);
  add(to.count, from.count);
}

}  // namespace

Pieces pieces_of(std::span<const Frames> frames, base::Instant latest) {
  Pieces result;
  FramesBySubject samples;
  for (const Frames& reading : frames) {
    for (const Frame& frame : *reading) {
      if (frame.at > latest) ++result.clamped;
      samples[&frame.subject].push_back({&frame, std::min(believed(frame.at), latest)});
    }
  }
  BlockMaker maker;
  for (const auto& [subject, list] : samples) add_pieces(*subject, list, maker, result.pieces);
  return result;
}

Block joined(std::span<const Block> blocks) {
  Block all;
  std::map<std::string, std::size_t, std::less<>> columns;
  if (!blocks.empty()) all.tier = blocks.front().tier;
  for (const Block& block : blocks) {
    CHECK(block.tier == all.tier);
    for (const Column& column : block.columns) {
      const auto [index, is_new] = columns.try_emplace(column.metric, all.columns.size());
      if (is_new) all.columns.emplace_back().metric = column.metric;
      append(all.columns[index->second], column, all.times.size());
    }
    all.times.insert(all.times.end(), block.times.begin(), block.times.end());
  }
  for (Column& column : all.columns) {
    if (column.places.size() == all.times.size()) column.places.clear();
  }
  return all;
}

}  // namespace gpu_platform::telemetry
