#include "cli/text/graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/letters.h"
#include "cli/text/local_clock.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kLeastColumns = 10;
// A window that is shorter needs seconds, and in a longer one the day says more than the clock.
constexpr base::Duration kWithSeconds = base::minutes(2);
constexpr base::Duration kOfDays = base::hours(48);

constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 4> kAscii = {" ", ".", ":", "#"};

std::span<const std::string_view> bars_of(bool is_ascii) {
  if (is_ascii) return kAscii;
  return kBlocks;
}

// The mean of what lies in each column, by the time that it lies there.
std::vector<std::optional<double>> columns_of(std::span<const GraphPoint> points,
                                              const GraphScale& scale, std::size_t count) {
  std::vector<double> sums(count);
  std::vector<double> weights(count);
  const auto span = static_cast<double>((scale.to - scale.from).value());
  const auto place_of = [&](base::Instant at) {
    const double place = static_cast<double>((at - scale.from).value()) / span;
    return std::clamp(place, 0.0, 1.0) * static_cast<double>(count);
  };
  for (const GraphPoint& point : points) {
    const double begin = place_of(point.from);
    const double end = place_of(point.to);
    const auto last = static_cast<std::size_t>(std::ceil(end));
    for (auto i = static_cast<std::size_t>(begin); i < std::min(last, count); ++i) {
      const auto column = static_cast<double>(i);
      const double weight = std::min(end, column + 1) - std::max(begin, column);
      sums[i] += point.value * weight;
      weights[i] += weight;
    }
  }
  std::vector<std::optional<double>> columns(count);
  for (std::size_t i = 0; i < count; ++i) {
    // Less is the rounding of a bound.
    if (weights[i] > 1e-9) columns[i] = sums[i] / weights[i];
  }
  return columns;
}

// How high a bar is, in steps from 1 up.
std::size_t height_of(double value, const GraphScale& scale, std::size_t steps) {
  const double range = scale.most - scale.least;
  const double share = range > 0 ? std::clamp((value - scale.least) / range, 0.0, 1.0) : 0;
  const auto height = static_cast<std::size_t>(std::lround(share * static_cast<double>(steps)));
  return std::max<std::size_t>(1, height);
}

// One line of bars whose foot is `below` steps up.
std::string line_of(std::span<const std::optional<double>> columns, const GraphScale& scale,
                    std::size_t below, std::size_t steps, std::span<const std::string_view> bars) {
  std::string line;
  for (const std::optional<double>& value : columns) {
    const std::size_t height = value ? height_of(*value, scale, steps) : 0;
    line += bars[std::min(height - std::min(height, below), bars.size() - 1)];
  }
  return line;
}

std::string without_end(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// A moment below a graph, in full and as what matters most in a window of that length.
struct AxisTime {
  std::string full;
  std::string brief;
};

AxisTime axis_time(base::Instant at, base::Duration window) {
  const std::tm parts = local_parts(at);
  const std::string day = fmt::format("{:02}-{:02}", parts.tm_mon + 1, parts.tm_mday);
  std::string clock = fmt::format("{:02}:{:02}", parts.tm_hour, parts.tm_min);
  if (window < kWithSeconds) clock += fmt::format(":{:02}", parts.tm_sec);
  return {fmt::format("{:04}-{} {}", parts.tm_year + 1900, day, clock),
          window > kOfDays ? day : clock};
}

// The begin at the left, the end at the right and, if it is given, the middle between them.
std::string spread_over(std::span<const std::string> labels, std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::size_t free = columns - labels[i].size();
    line.resize(i == 0 ? 0 : free * i / (labels.size() - 1), ' ');
    line += labels[i];
  }
  return line;
}

// Over days, the middle has its time, too. Where there is no room, the texts are brief, then fewer.
std::string times_below(const GraphScale& scale, std::size_t columns) {
  const base::Duration window = scale.to - scale.from;
  std::vector<base::Instant> times = {scale.from, scale.to};
  if (window > kOfDays)
    times.insert(times.begin() + 1, scale.from + base::nanoseconds(window.value() / 2));
  std::vector<std::string> full;
  std::vector<std::string> brief;
  for (const base::Instant at : times) {
    AxisTime text = axis_time(at, window);
    full.push_back(std::move(text.full));
    brief.push_back(std::move(text.brief));
  }
  for (const std::vector<std::string>& labels : {full, brief}) {
    if (labels.size() * (labels.front().size() + 1) <= columns) return spread_over(labels, columns);
  }
  return brief.front();
}

}  // namespace

bool has_utf8(const ProcessEnvironment& process_environment) {
  for (const std::string_view name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = client::variable(process_environment, name);
    if (!value) continue;
    const std::string upper = base::to_upper(*value);
    return upper.find("UTF-8") != std::string::npos || upper.find("UTF8") != std::string::npos;
  }
  return false;
}

std::string sparkline(std::span<const GraphPoint> points, const GraphScale& scale,
                      std::size_t columns, bool is_ascii) {
  const auto bars = bars_of(is_ascii);
  return line_of(columns_of(points, scale, columns), scale, 0, bars.size() - 1, bars);
}

std::string graph(std::span<const GraphPoint> points, const GraphScale& scale,
                  const std::function<std::string(double)>& value_text, const GraphStyle& style) {
  const std::string most = value_text(scale.most);
  const std::string least = value_text(scale.least);
  const std::size_t margin = std::max(display_width(most), display_width(least));
  const std::size_t used = margin + 2;
  const std::size_t columns = std::max(kLeastColumns, style.width - std::min(style.width, used));
  const auto values = columns_of(points, scale, columns);
  const auto bars = bars_of(style.is_ascii);
  const std::size_t steps_of_line = bars.size() - 1;
  std::string text;
  for (std::size_t line = style.height; line-- > 0;) {
    std::string label;
    if (line == 0) label = least;
    if (line + 1 == style.height) label = most;
    const std::string shown =
        line_of(values, scale, line * steps_of_line, style.height * steps_of_line, bars);
    text += without_end(fmt::format("{}{} {}{}", std::string(margin - display_width(label), ' '),
                                    label, style.is_ascii ? "|" : "│", shown));
    text += '\n';
  }
  text += std::string(used, ' ') + times_below(scale, columns) + '\n';
  return text;
}

}  // namespace gpu_platform::cli
