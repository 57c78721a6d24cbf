#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// What `watch` shows, as lines of text.

namespace gpu_platform::cli {

struct WatchView {
  v1::Status status;                         // of the daemon's newest answer
  std::optional<v1::Job> head;               // the job that is next; nothing: none waits
  std::map<std::string, std::string> users;  // of jobs by their id; empty: not ours to know
  std::string problem;                       // why there is no newer answer; empty: there is
  base::Instant now;
};

// "[|||||     60 %]": `width` columns in all, at least 3. The text stands over the bar's end.
std::string bar(double part, std::string_view text, std::size_t width);

// Totals, queue, problem: a few lines, cut to `width` (0: not).
std::vector<std::string> watch_header(const WatchView& view, std::size_t width);

// A line of titles and one for each GPU, with bars where `width` is not 0, and cut to it.
std::vector<std::string> watch_rows(const WatchView& view, std::size_t width);

}  // namespace gpu_platform::cli
