#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "telemetry/frame.h"
#include "telemetry/points.h"

// What can be asked of the history. telemetry/history has the one on disk; tests use a fake.

namespace gpu_platform::telemetry {

struct HistoryQuery {
  std::vector<Subject> subjects;  // `node` may be empty: the GPU wherever it was
  std::vector<MetricId> metrics;
  base::Instant from;  // included
  base::Instant to;    // not included
  // The span of each point, from the hour on; 0: as fine as it is kept. A span that is finer than
  // what is kept is answered with what is kept.
  base::Duration step;
  bool wants_spread = false;  // the distribution of all values in the window
};

struct Series {
  Subject subject;
  MetricId metric = 0;
  base::Duration step;        // of its points; 0: samples
  std::vector<Point> points;  // ascending; spans without samples are left out
  std::optional<Distribution> spread;
  // The distribution is of spans of a quarter of an hour that reach beyond the window.
  bool is_spread_wide = false;

  // All points as one. Of the window, as far as the tier's steps allow.
  Point whole() const;
};

// How much is kept.
struct HistoryCoverage {
  std::optional<base::Instant> raw_since;
  std::optional<base::Instant> minutes_since;
  std::optional<base::Instant> quarters_since;
  std::uint64_t bytes = 0;      // of the file
  std::uint64_t max_bytes = 0;  // that it may have
  std::uint64_t dropped = 0;    // frames that could not be kept since the start
  std::string problem;          // why nothing is kept now; empty: it is
};

// Safe from any thread.
class History {
 public:
  virtual ~History() = default;

  // May take tens of milliseconds of disk. kInvalidArgument: the window or step is not one.
  // kUnavailable: the history's file cannot be read; everything else goes on.
  virtual base::Result<std::vector<Series>> query(const HistoryQuery& query) const = 0;
  virtual HistoryCoverage coverage() const = 0;
};

// The summaries of jobs are the notes with these names, each with the number of its job behind it.
// Where the file is full and they take more than a quarter of it, those of the oldest jobs go.
inline constexpr std::string_view kSummaryNotes = "use/";

// Small values that are kept beside the history, by name: the states of alerts, the summaries of
// jobs. Safe from any thread; put() returns at once, and is on disk within seconds.
class Notes {
 public:
  virtual ~Notes() = default;

  virtual void put(std::string name, std::string bytes) = 0;
  virtual void remove(std::string name) = 0;
  virtual std::optional<std::string> get(const std::string& name) const = 0;
  struct Note {
    std::string name;
    std::string bytes;
  };
  // Those whose name begins with the prefix, ascending by name.
  virtual std::vector<Note> all(const std::string& prefix) const = 0;
};

}  // namespace gpu_platform::telemetry
