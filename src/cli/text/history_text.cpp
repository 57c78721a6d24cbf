#include "cli/text/history_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/utc.h"
#include "cli/client_names.h"
#include "cli/text/csv.h"
#include "cli/text/graph.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "cli/text/use_text.h"

namespace gpu_platform::cli {

namespace {

using Series = v1::HistorySeries;

constexpr std::size_t kMaxGraphs = 4;  // of one metric
constexpr std::size_t kGraphLines = 5;
// A single reading stands for the time until the next one, which is seconds away.
constexpr double kSampleSeconds = 10;
constexpr std::size_t kMinBars = 8;
constexpr std::size_t kMaxBars = 48;
// The columns that the numbers beside the bars need.
constexpr std::size_t kBesideBars = 52;
// Names of GPUs of one node differ at their ends only: a longer one is cut there.
constexpr std::size_t kSeriesWidth = 24;

base::Instant instant_at(double seconds) {
  return base::Instant(std::llround(seconds * 1e3) * 1'000'000);
}

std::string value_text(double value, std::string_view unit) {
  const auto bytes = [&] { return readable_size(static_cast<std::int64_t>(value)); };
  if (unit == "percent") return fmt::format("{:.0f} %", value);
  if (unit == "bytes") return bytes();
  if (unit == "bytes_per_second") return bytes() + "/s";
  if (unit == "celsius") return fmt::format("{:.0f} C", value);
  if (unit == "watts") return fmt::format("{:.0f} W", value);
  if (unit == "megahertz") return fmt::format("{:.0f} MHz", value);
  if (unit == "millijoules") return fmt::format("{:.0f} J", value / 1000);
  return fmt::format("{:.6g}", value);
}

// "dgx-1:3", "job 42 on dgx-1:3", "team ml".
std::string name_of(const Series& series) {
  if (series.has_team()) return "team " + series.team();
  std::string place = series.node();
  if (series.has_index()) {
    place += fmt::format(":{}", series.index());
  } else if (place.empty()) {
    place = series.gpu_id();
  }
  if (!series.has_job()) return place;
  const std::string attempt =
      series.attempt() > 1 ? fmt::format(", attempt {}", series.attempt()) : std::string();
  return fmt::format("job {}{} on {}{}", series.job(), attempt, place,
                     series.shared() ? " (its part)" : "");
}

const google::protobuf::RepeatedField<double>& values_of(const Series& series) {
  return series.counter() ? series.points().growth() : series.points().mean();
}

std::vector<GraphPoint> points_of(const Series& series) {
  const double seconds = series.step_seconds() > 0 ? series.step_seconds() : kSampleSeconds;
  const auto& values = values_of(series);
  const int count = std::min(values.size(), series.points().at_size());
  std::vector<GraphPoint> points;
  for (int i = 0; i < count; ++i) {
    const double at = series.points().at(i);
    points.push_back({instant_at(at), instant_at(at + seconds), values.Get(i)});
  }
  return points;
}

GraphScale scale_of(const v1::History& history, const std::vector<const Series*>& all) {
  GraphScale scale;
  scale.from = time_of(history.from()).value_or(base::Instant());
  scale.to = time_of(history.to()).value_or(scale.from);
  if (scale.to <= scale.from) scale.to = scale.from + base::seconds(1);
  bool is_first = true;
  double least = 0;
  double most = 0;
  for (const Series* const series : all) {
    for (const double value : values_of(*series)) {
      least = is_first ? value : std::min(least, value);
      most = is_first ? value : std::max(most, value);
      is_first = false;
    }
  }
  const std::string& unit = all.front()->unit();
  // Temperatures lie far from 0, and their changes matter.
  scale.least = unit == "celsius" ? std::floor(least) : std::min(0.0, least);
  scale.most = unit == "percent" ? std::max(100.0, most) : std::ceil(most);
  if (scale.most <= scale.least) scale.most = scale.least + 1;
  return scale;
}

std::string percentile_name(double percentile) {
  return fmt::format("p{:g}", percentile);
}

// The name, the metric, and what it was over the window.
std::vector<std::string> title_of(const Series& series) {
  std::vector<std::string> title = {name_of(series), series.metric()};
  const v1::HistoryWindow& window = series.window();
  if (window.has_growth()) {
    title.push_back("grew by " + value_text(window.growth(), series.unit()));
    return title;
  }
  if (!window.has_mean()) {
    title.emplace_back("no readings");
    return title;
  }
  title.push_back("min " + value_text(window.min(), series.unit()));
  title.push_back("mean " + value_text(window.mean(), series.unit()));
  title.push_back("max " + value_text(window.max(), series.unit()));
  for (const v1::HistoryPercentile& one : window.percentiles()) {
    title.push_back(percentile_name(one.percentile()) + " " +
                    value_text(one.value(), series.unit()));
  }
  if (window.has_energy_joules()) title.push_back("energy " + energy_text(window.energy_joules()));
  return title;
}

// The parts in lines of that width. A number stays beside what it is.
std::string lines_of_parts(const std::vector<std::string>& parts, std::size_t width) {
  constexpr std::string_view kBetween = "  ";
  std::string text;
  std::size_t used = 0;
  for (const std::string& part : parts) {
    for (const std::string& piece : wrapped(harmless(part), width)) {
      const std::size_t taken = display_width(piece);
      const bool fits = used > 0 && used + kBetween.size() + taken <= width;
      if (used > 0) text += fits ? kBetween : "\n";
      text += piece;
      used = fits ? used + kBetween.size() + taken : taken;
    }
  }
  return text + '\n';
}

std::string graph_of(const v1::History& history, const Series& series, const HistoryStyle& style) {
  std::string text = lines_of_parts(title_of(series), style.width);
  if (series.points().at().empty()) return text;
  const GraphStyle graph_style{style.width, kGraphLines, style.is_ascii};
  return text + graph(
                    points_of(series), scale_of(history, {&series}),
                    [&](double value) { return value_text(value, series.unit()); }, graph_style);
}

std::string cell_of(bool is_known, double value, std::string_view unit) {
  return is_known ? value_text(value, unit) : std::string();
}

std::string table_of(const v1::History& history, const std::vector<const Series*>& all,
                     const HistoryStyle& style) {
  const Series& first = *all.front();
  const std::size_t room = style.width - std::min(style.width, kBesideBars);
  const std::size_t bars = std::clamp(room, kMinBars, kMaxBars);
  using enum Column::Align;
  std::vector<Column> columns = {{"OF", kLeft, kSeriesWidth}, {"OVER TIME"}};
  if (first.counter()) {
    columns.push_back({"GROWTH", kRight});
  } else {
    columns.insert(columns.end(),
                   {{"MIN", kRight, {}, 3}, {"MEAN", kRight}, {"MAX", kRight, {}, 1}});
    for (const v1::HistoryPercentile& one : first.window().percentiles()) {
      columns.push_back({"P" + percentile_name(one.percentile()).substr(1), kRight, {}, 2});
    }
  }
  const std::size_t percentiles = columns.size() - (first.counter() ? 3 : 5);
  const GraphScale scale = scale_of(history, all);
  Table table(columns);
  for (const Series* const series : all) {
    const v1::HistoryWindow& window = series->window();
    std::vector<std::string> cells = {name_of(*series),
                                      sparkline(points_of(*series), scale, bars, style.is_ascii)};
    const auto add = [&](bool is_known, double value) {
      cells.push_back(cell_of(is_known, value, series->unit()));
    };
    if (first.counter()) {
      add(window.has_growth(), window.growth());
    } else {
      add(window.has_min(), window.min());
      add(window.has_mean(), window.mean());
      add(window.has_max(), window.max());
      for (std::size_t i = 0; i < percentiles; ++i) {
        const bool is_known = std::cmp_less(i, window.percentiles_size());
        add(is_known, is_known ? window.percentiles(static_cast<int>(i)).value() : 0);
      }
    }
    table.add(std::move(cells));
  }
  const std::string heading =
      fmt::format("{}  {} to {}, {} to {}", harmless(first.metric()), short_time(scale.from),
                  short_time(scale.to), value_text(scale.least, first.unit()),
                  value_text(scale.most, first.unit()));
  std::string text;
  for (const std::string& line : wrapped(heading, style.width)) text += line + '\n';
  return text + table.render({.width = style.width});
}

}  // namespace

std::string history_page(const v1::History& history, const HistoryStyle& style) {
  // By metric, in the order in which they came.
  std::vector<std::pair<std::string, std::vector<const Series*>>> metrics;
  for (const Series& series : history.series()) {
    auto found = std::ranges::find_if(
        metrics, [&](const auto& entry) { return entry.first == series.metric(); });
    if (found == metrics.end()) found = metrics.insert(metrics.end(), {series.metric(), {}});
    found->second.push_back(&series);
  }
  std::string text;
  for (const auto& [metric, all] : metrics) {
    if (all.size() > kMaxGraphs) {
      if (!text.empty()) text += '\n';
      text += table_of(history, all, style);
      continue;
    }
    for (const Series* const series : all) {
      if (!text.empty()) text += '\n';
      text += graph_of(history, *series, style);
    }
  }
  return text;
}

std::string history_csv(const v1::History& history) {
  std::string text =
      "node,index,gpu_id,job,attempt,team,metric,unit,at,min,mean,max,count,growth\n";
  for (const Series& series : history.series()) {
    const std::string names = fmt::format(
        "{},{},{},{},{},{},{},{}", csv_cell(series.node()),
        series.has_index() ? fmt::format("{}", series.index()) : "", csv_cell(series.gpu_id()),
        csv_cell(series.job()), series.has_attempt() ? fmt::format("{}", series.attempt()) : "",
        csv_cell(series.team()), csv_cell(series.metric()), csv_cell(series.unit()));
    const v1::HistoryPoints& points = series.points();
    const auto cell = [](const google::protobuf::RepeatedField<double>& values, int i) {
      return i < values.size() ? fmt::format("{}", values.Get(i)) : std::string();
    };
    for (int i = 0; i < points.at_size(); ++i) {
      text += fmt::format("{},{},{},{},{},{},{}\n", names,
                          base::utc(instant_at(points.at(i)), base::Fraction::kMilliseconds),
                          cell(points.min(), i), cell(points.mean(), i), cell(points.max(), i),
                          i < points.count_size() ? fmt::format("{}", points.count(i)) : "",
                          cell(points.growth(), i));
    }
  }
  return text;
}

}  // namespace gpu_platform::cli
