#include "model/job_array.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/parse.h"

namespace gpu_platform::model {

namespace {

std::unexpected<base::Error> bad(std::string_view text, std::string_view what) {
  return base::invalid(
      "array", fmt::format("array: '{}' {}; write indices from 0 to {} as in 0-99, 1,3,5-9:2 or "
                           "0-99%8 (at most 8 at once)",
                           text.substr(0, 64), what, kLargestArrayIndex));
}

std::uint64_t count_of(const IndexRun& run) {
  return (std::uint64_t{run.last} - run.first) / run.step + 1;
}

// "7", "5-9" or "5-9:2".
base::Result<IndexRun> parse_run(std::string_view text) {
  IndexRun run;
  const std::size_t colon = text.find(':');
  const std::string_view range = text.substr(0, colon);
  const std::size_t dash = range.find('-');
  const auto first = base::parse_count(range.substr(0, dash), 0, kLargestArrayIndex);
  if (!first) return bad(text, "does not begin with an index");
  run.first = run.last = static_cast<std::uint32_t>(*first);
  if (dash != std::string_view::npos) {
    const auto last = base::parse_count(range.substr(dash + 1), 0, kLargestArrayIndex);
    if (!last) return bad(text, "does not end with an index");
    if (*last < *first) return bad(text, "runs backwards");
    run.last = static_cast<std::uint32_t>(*last);
  }
  if (colon == std::string_view::npos) return run;
  const auto step = base::parse_count(text.substr(colon + 1), 1, kLargestArrayIndex);
  if (!step || dash == std::string_view::npos) return bad(text, "has no step behind its range");
  run.step = static_cast<std::uint32_t>(*step);
  run.last -= (run.last - run.first) % run.step;
  return run;
}

// Runs of equal steps, greedily from the left, so that none reaches into the next.
std::vector<IndexRun> runs_of(const std::vector<std::uint32_t>& indices) {
  std::vector<IndexRun> runs;
  for (std::size_t at = 0; at < indices.size();) {
    IndexRun run{indices[at], indices[at], 1};
    if (at + 1 < indices.size()) {
      const std::uint32_t step = indices[at + 1] - indices[at];
      // Two alone are no run, unless they are neighbours.
      const bool goes_on = at + 2 < indices.size() && indices[at + 2] - indices[at + 1] == step;
      if (step == 1 || goes_on) run.step = step;
      const bool is_run = step == 1 || goes_on;
      while (is_run && at + 1 < indices.size() && indices[at + 1] - indices[at] == run.step) ++at;
      run.last = indices[at];
    }
    runs.push_back(run);
    ++at;
  }
  return runs;
}

base::Result<std::vector<std::uint32_t>> indices_of(std::string_view text) {
  std::vector<IndexRun> written;
  std::uint64_t count = 0;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    TRY_ASSIGN(const IndexRun run, parse_run(rest.substr(0, comma)));
    written.push_back(run);
    count += count_of(run);
    if (count > kMaxArrayMembers) break;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (count > kMaxArrayMembers) {
    return bad(text, fmt::format("has more than {} members, the most of any array "
                                 "(policies.max_array_size may be lower)",
                                 kMaxArrayMembers));
  }
  std::vector<std::uint32_t> indices;
  indices.reserve(count);
  for (const IndexRun& run : written) {
    for (std::uint64_t index = run.first; index <= run.last; index += run.step) {
      indices.push_back(static_cast<std::uint32_t>(index));
    }
  }
  std::ranges::sort(indices);
  const auto repeats = std::ranges::unique(indices);
  indices.erase(repeats.begin(), repeats.end());
  return indices;
}

}  // namespace

base::Result<ArraySpec> parse_array(std::string_view text) {
  ArraySpec array;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const auto limit = base::parse_count(text.substr(percent + 1), 1, kLargestArrayIndex);
    if (!limit) return bad(text, "has no number of members behind its %");
    array.limit = static_cast<std::uint32_t>(*limit);
  }
  TRY_ASSIGN(const std::vector<std::uint32_t> indices, indices_of(text.substr(0, percent)));
  array.runs = runs_of(indices);
  if (array.runs.size() > kMaxArrayRuns) {
    return bad(text, fmt::format("comes to {} runs of indices; the limit is {}", array.runs.size(),
                                 kMaxArrayRuns));
  }
  return array;
}

std::string to_string(const ArraySpec& array) {
  std::string text;
  for (const IndexRun& run : array.runs) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}", run.first);
    if (run.last != run.first) text += fmt::format("-{}", run.last);
    if (run.step != 1 && run.last != run.first) text += fmt::format(":{}", run.step);
  }
  if (array.limit != 0) text += fmt::format("%{}", array.limit);
  return text;
}

std::uint64_t member_count(const ArraySpec& array) {
  std::uint64_t count = 0;
  for (const IndexRun& run : array.runs) count += count_of(run);
  return count;
}

std::uint32_t least_index(const ArraySpec& array) {
  return array.runs.front().first;
}

std::uint32_t largest_index(const ArraySpec& array) {
  return array.runs.back().last;
}

std::uint32_t index_step(const ArraySpec& array) {
  return member_count(array) < 2 ? 1 : index_at(array, 1) - index_at(array, 0);
}

std::uint32_t index_at(const ArraySpec& array, std::uint64_t position) {
  for (const IndexRun& run : array.runs) {
    const std::uint64_t count = count_of(run);
    if (position < count) return static_cast<std::uint32_t>(run.first + position * run.step);
    position -= count;
  }
  CHECK(false);
  return 0;
}

std::optional<std::uint64_t> position_of(const ArraySpec& array, std::uint32_t index) {
  std::uint64_t before = 0;
  for (const IndexRun& run : array.runs) {
    if (index < run.first) return std::nullopt;
    const bool is_here = index <= run.last && (index - run.first) % run.step == 0;
    if (is_here) return before + (index - run.first) / run.step;
    before += count_of(run);
  }
  return std::nullopt;
}

}  // namespace gpu_platform::model
