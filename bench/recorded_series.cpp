#include "recorded_series.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"

namespace gpu_platform::bench {

namespace {

using telemetry::Metric;
using telemetry::MetricId;
using telemetry::MetricKind;
using telemetry::Of;

// The columns of the file.
enum Cell : std::uint8_t { kNode, kIndex, kGpuId, kJob, kAttempt, kTeam, kMetric, kUnit, kAt };
constexpr std::size_t kMean = 10;
constexpr std::size_t kGrowth = 13;
constexpr std::size_t kCells = 14;
constexpr std::string_view kHeader =
    "node,index,gpu_id,job,attempt,team,metric,unit,at,min,mean,max,count,growth";

using Cells = std::array<std::string_view, kCells>;

// None if there are more or fewer. Names of nodes, GPUs and metrics are never quoted.
std::optional<Cells> cells_of(std::string_view line) {
  Cells cells;
  for (std::size_t i = 0; i + 1 < kCells; ++i) {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    cells[i] = line.substr(0, comma);
    line.remove_prefix(comma + 1);
  }
  if (line.find(',') != std::string_view::npos) return std::nullopt;
  cells.back() = line;
  return cells;
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The file has the API's units, in which these have decimals.
double in_own_unit(const Metric& metric, double value) {
  if (metric.unit == model::GpuUnit::kMilliwatts) return value * 1000;
  const bool is_share =
      metric.unit == model::GpuUnit::kPermille && metric.name.ends_with("_percent");
  return is_share ? value * 10 : value;
}

// Sorts the readings of a file, which come by metric, into frames.
class Recording {
 public:
  base::Status take(std::string_view line) {
    const auto cells = cells_of(line);
    if (!cells || !(*cells)[kJob].empty() || !(*cells)[kTeam].empty()) {
      return base::invalid("", "is no reading of a GPU or a host");
    }
    const Of of = (*cells)[kGpuId].empty() ? Of::kHost : Of::kGpu;
    const auto id = telemetry::metric_named(of, (*cells)[kMetric]);
    if (!id) return base::invalid("", fmt::format("there is no metric {}", (*cells)[kMetric]));
    const Metric& metric = telemetry::metric(*id);
    const bool is_counter = metric.kind == MetricKind::kCounter;
    const auto at = base::parse_rfc3339((*cells)[kAt]);
    const auto value = number_in((*cells)[is_counter ? kGrowth : kMean]);
    if (!at || !value) return base::invalid("", "has no time, or no value");
    telemetry::Subject subject{.of = of,
                               .node = std::string((*cells)[kNode]),
                               .uuid = std::string((*cells)[kGpuId]),
                               .attempt = {}};
    std::int64_t number = std::llround(in_own_unit(metric, *value));
    if (is_counter) number = counters_[{subject, *id}] += number;
    subjects_[std::move(subject)][*at][*id] = number;
    return {};
  }

  std::vector<std::vector<telemetry::Frame>> frames() const {
    std::vector<std::vector<telemetry::Frame>> all;
    for (const auto& [subject, moments] : subjects_) {
      std::vector<telemetry::Frame>& frames = all.emplace_back();
      for (const auto& [at, values] : moments) {
        telemetry::Frame& frame = frames.emplace_back();
        frame.subject = subject;
        frame.at = at;
        for (const auto& [metric, value] : values) frame.values.push_back({metric, value});
      }
    }
    return all;
  }

 private:
  using Moments = std::map<base::Instant, std::map<MetricId, std::int64_t>>;

  std::map<telemetry::Subject, Moments> subjects_;
  std::map<std::pair<telemetry::Subject, MetricId>, std::int64_t> counters_;
};

}  // namespace

base::Result<std::vector<std::vector<telemetry::Frame>>> read_recording(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || line != kHeader) {
    return base::invalid("", fmt::format("{}: it does not begin with {}", path, kHeader));
  }
  Recording recording;
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    if (const auto taken = recording.take(line); !taken) {
      return base::invalid("", fmt::format("{}:{}: {}", path, number, taken.error().message));
    }
  }
  auto frames = recording.frames();
  if (frames.empty()) return base::invalid("", path + ": it has no readings");
  return frames;
}

}  // namespace gpu_platform::bench
