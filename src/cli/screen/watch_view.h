#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/screen/watch_keys.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// What `watch` shows, as lines of text.

namespace gpu_platform::cli {

// A job on a GPU.
struct WatchedJob {
  std::string id;  // as people know it: "15_5"; empty: not ours to know
  std::string user;
  std::string name;
  base::Instant ends_by;  // by its time limit; unset: not known
};

struct WatchView {
  v1::Status status;                       // of the daemon's newest answer
  std::optional<v1::Job> head;             // the job that is next; nothing: none waits
  std::map<std::string, WatchedJob> jobs;  // by their id
  // Since when GPUs that jobs hold are at 0 %, by their place ("dgx-1:3").
  std::map<std::string, base::Instant> idle_since;
  std::string problem;  // why there is no newer answer; empty: there is
  base::Instant now;
};

WatchedJob watched_job(const v1::Job& job);

// "idle 35s" for a GPU that a job holds; empty where it is busy, or only since a moment.
std::string idle_text(const v1::Gpu& gpu, const WatchView& view);

// Brings idle_since up to the status.
void note_idle_gpus(WatchView& view);

// The view with only the GPUs that the filter finds, in that order.
WatchView arranged(const WatchView& view, const WatchArrangement& arrangement);

// "[|||||     60 %]": `width` columns in all, at least 3. The text stands over the bar's end.
std::string bar(double part, std::string_view text, std::size_t width);

// Totals, queue, problem: a few lines, cut to `width` (0: not).
std::vector<std::string> watch_header(const WatchView& view, std::size_t width);

// A line of titles and one for each GPU, with bars where `width` is not 0, and cut to it.
std::vector<std::string> watch_rows(const WatchView& view, std::size_t width);

}  // namespace gpu_platform::cli
