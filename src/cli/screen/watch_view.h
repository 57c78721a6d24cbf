#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/screen/watch_keys.h"
#include "cli/screen/watch_past.h"
#include "cli/text/gpu_text.h"
#include "cli/text/table.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// What `watch` shows, and the GPUs of it as lines of text.

namespace gpu_platform::cli {

// A GPU that a job holds is idle after this time at 0 %. A shorter pause between two steps of a
// job is no idle GPU.
inline constexpr base::Duration kIdleMoment = base::seconds(10);

// A job on a GPU.
struct WatchedJob {
  std::string id;  // as people know it: "15_5"
  std::string user;
  std::string name;
  base::Instant ends_by;  // by its time limit; unset: not known
};

// What a job uses of a GPU that it shares.
struct WatchedPart {
  std::optional<double> utilization_percent;
  std::optional<std::uint64_t> memory_used_bytes;
};

struct WatchView {
  std::string server;                          // that answers
  v1::Status status;                           // of the daemon's newest answer
  std::vector<v1::Job> running;                // those that the caller may see
  std::vector<v1::Job> waiting;                // the first of the queue
  std::uint64_t all_waiting = 0;               // that the caller may see
  std::map<std::string, WatchedJob> jobs;      // the running ones by their id
  std::map<std::string, double> power_limits;  // in watts, by the place of the GPU
  // By the job as people know it, and the place of the GPU.
  std::map<std::pair<std::string, std::string>, WatchedPart> parts;
  // Since when GPUs that jobs hold are at 0 %, by their place ("dgx-1:3").
  std::map<std::string, base::Instant> idle_since;
  WatchPast past;
  std::string problem;  // why there is no newer answer; empty: there is
  base::Instant now;
  base::Instant at;  // of the status, by the daemon's clock
};

// A line of a table.
struct WatchRow {
  std::string text;
  bool is_noted = false;  // it needs attention
};

struct WatchTable {
  std::string titles;
  std::vector<WatchRow> rows;
};

// How tables are drawn.
struct WatchStyle {
  std::size_t width = 0;    // of the terminal; 0: nothing is cut, and there are no bars
  bool has_graphs = false;  // with the last minutes, where the width has room
  bool is_ascii = false;    // of bars and graphs
};

// "dgx-1:3".
std::string place_name(const v1::Gpu& gpu);

WatchedJob watched_job(const v1::Job& job);

// "idle 35s" for a GPU that a job holds; empty where it is busy, or only since a moment.
std::string idle_text(const v1::Gpu& gpu, const WatchView& view);

// Whether the GPU is not well, or a job holds it and does not use it.
bool is_noted(const v1::Gpu& gpu, const WatchView& view);

// Brings idle_since up to the status.
void note_idle_gpus(WatchView& view);

// Whether the text has the filter in it, in letters of either case.
bool fits_filter(std::string_view text, std::string_view filter);

// The GPUs that the filter finds, in that order.
ClusterGpus arranged(const WatchView& view, const WatchArrangement& arrangement);

// "[|||||     60 %]": `width` columns in all, at least 3. The text stands over the bar's end.
std::string bar(double part, std::string_view text, std::size_t width);

// The lines of a table, cut to the width; `noted` has one value for each row.
WatchTable watch_table(const Table& table, const std::vector<bool>& noted, std::size_t width);

// Totals, queue, problem: a few lines, cut to `width` (0: not).
std::vector<std::string> watch_header(const WatchView& view, std::size_t width);

// A line for each of these GPUs.
WatchTable watch_gpus(const ClusterGpus& gpus, const WatchView& view, const WatchStyle& style);

}  // namespace gpu_platform::cli
