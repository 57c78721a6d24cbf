#include "cli/screen/watch_page.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/utf8.h"
#include "cli/screen/watch_jobs.h"
#include "cli/screen/watch_nodes.h"
#include "cli/text/graph.h"
#include "cli/text/state_color.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

// Below, both tables would have too few lines.
constexpr std::size_t kRowsOfBoth = 14;
// The titles, and a blank line before the second table.
constexpr std::size_t kRowsOfTitles = 3;
// The graph of all GPUs stands where so much is left.
constexpr std::size_t kGraphHeight = 5;
constexpr std::size_t kRowsOfGraph = kGraphHeight + 3;

constexpr std::string_view kKeys =
    "q quit  h help  Tab pane  s sort  / filter  g graph  n nodes  arrows scroll";

// Text for a terminal that shows nothing but ASCII. Each column stays a column.
std::string in_ascii(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    const std::string_view character = before.substr(0, before.size() - text.size());
    if (c < 0x80) {
      plain += character;
    } else if (c == U'…') {
      plain += '.';
    } else {
      plain.append(display_width(character), c == U'°' ? ' ' : '?');
    }
  }
  return plain;
}

std::string titled(const std::string& titles, bool has_keys, std::size_t columns) {
  if (!has_keys) return fmt::format("\x1b[4m{}\x1b[0m", titles);
  const std::size_t width = display_width(titles);
  return fmt::format("\x1b[7m{}{}\x1b[0m", titles,
                     std::string(columns - std::min(columns, width), ' '));
}

std::size_t count_nodes(const ClusterGpus& gpus) {
  std::set<std::string_view> nodes;
  for (const v1::Gpu& gpu : gpus) nodes.insert(gpu.node());
  return nodes.size();
}

bool shows_nodes(const ClusterGpus& gpus, WatchUnit unit, std::size_t room) {
  if (unit != WatchUnit::kWhatFits) return unit == WatchUnit::kNode;
  return gpus.size() > static_cast<int>(room) && count_nodes(gpus) > 1;
}

std::vector<std::string> graph_of_all(const ClusterGpus& gpus, const WatchView& view,
                                      const WatchPageStyle& style) {
  std::vector<std::string> places;
  for (const v1::Gpu& gpu : gpus) places.push_back(place_name(gpu));
  const std::vector<GraphPoint> points = view.past.points_of(places);
  if (points.empty()) return {};
  const std::string text = graph(
      points, scale_of_past(view.at), [](double value) { return fmt::format("{:.0f} %", value); },
      {.width = style.size.columns, .height = kGraphHeight, .is_ascii = style.is_ascii});
  std::vector<std::string> lines = {
      "", shortened("utilization of these GPUs in the last 10 minutes", style.size.columns)};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(shortened(text.substr(begin, end - begin), style.size.columns));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void WatchPage::scroll(char key, WatchPane pane) {
  Part& moved = part(pane);
  const std::size_t page = std::max<std::size_t>(moved.visible, 1);
  if (key == 'j' || key == kKeyDown) moved.first += 1;
  if (key == ' ' || key == kKeyPageDown) moved.first += page;
  if (key == 'k' || key == kKeyUp) moved.first -= std::min<std::size_t>(moved.first, 1);
  if (key == 'b' || key == kKeyPageUp) moved.first -= std::min(moved.first, page);
}

std::vector<std::string> WatchPage::lines(const WatchView& view, const WatchKeys& keys,
                                          const WatchPageStyle& style, std::string_view note) {
  const ScreenSize& size = style.size;
  std::vector<std::string> lines = watch_header(view, size.columns);
  lines.emplace_back();
  if (keys.mode() == WatchKeys::Mode::kHelp) {
    for (const std::string& line : watch_help()) lines.push_back(shortened(line, size.columns));
  } else {
    const std::size_t taken = lines.size() + 1;
    const auto shown = tables(view, keys, style, size.rows - std::min(size.rows, taken));
    lines.insert(lines.end(), shown.begin(), shown.end());
  }
  // A terminal of very few rows shows what fits.
  const std::size_t room = std::max<std::size_t>(size.rows, 1) - 1;
  lines.resize(room);
  lines.push_back(shortened(footer(keys, note), size.columns));
  if (style.is_ascii) std::ranges::transform(lines, lines.begin(), in_ascii);
  return lines;
}

// `room`: lines for all of it.
std::vector<std::string> WatchPage::tables(const WatchView& view, const WatchKeys& keys,
                                           const WatchPageStyle& style, std::size_t room) {
  const WatchArrangement& arrangement = keys.arrangement();
  const WatchStyle table_style{.width = style.size.columns,
                               .has_graphs = arrangement.has_graphs,
                               .is_ascii = style.is_ascii};
  const bool has_both = room >= kRowsOfBoth;
  const bool has_gpus = has_both || keys.pane() == WatchPane::kGpus;
  const bool has_jobs = has_both || keys.pane() == WatchPane::kJobs;
  const std::size_t titles = has_both ? kRowsOfTitles : 1;
  const std::size_t content = room - std::min(room, titles);

  const WatchTable jobs = watch_jobs(view, arrangement, table_style);
  // The jobs get a third where there are many of both.
  const std::size_t kept_for_jobs = has_both ? std::min(jobs.rows.size(), content / 3) : 0;
  const ClusterGpus shown = arranged(view, arrangement);
  shows_nodes_ = shows_nodes(shown, arrangement.unit, content - kept_for_jobs);
  const WatchTable gpus =
      shows_nodes_ ? watch_nodes(shown, view, table_style) : watch_gpus(shown, view, table_style);
  part(WatchPane::kGpus) = {.first = part(WatchPane::kGpus).first,
                            .visible = std::min(gpus.rows.size(), content - kept_for_jobs),
                            .all = gpus.rows.size()};
  const std::size_t left = content - (has_gpus ? part(WatchPane::kGpus).visible : 0);
  part(WatchPane::kJobs) = {.first = part(WatchPane::kJobs).first,
                            .visible = std::min(jobs.rows.size(), left),
                            .all = jobs.rows.size()};

  std::vector<std::string> lines;
  if (has_gpus) add_table(gpus, WatchPane::kGpus, keys, style, lines);
  if (has_both) lines.emplace_back();
  if (has_jobs) add_table(jobs, WatchPane::kJobs, keys, style, lines);
  if (arrangement.has_graphs && lines.size() + kRowsOfGraph <= room) {
    const auto graph = graph_of_all(shown, view, style);
    lines.insert(lines.end(), graph.begin(), graph.end());
  }
  return lines;
}

void WatchPage::add_table(const WatchTable& table, WatchPane pane, const WatchKeys& keys,
                          const WatchPageStyle& style, std::vector<std::string>& lines) {
  Part& shown = part(pane);
  shown.first = std::min(shown.first, shown.all - shown.visible);
  lines.push_back(titled(table.titles, keys.pane() == pane, style.size.columns));
  for (std::size_t i = shown.first; i < shown.first + shown.visible; ++i) {
    const WatchRow& row = table.rows[i];
    lines.push_back(colored(row.text, row.is_noted && style.has_colors ? "33" : ""));
  }
}

std::string WatchPage::footer(const WatchKeys& keys, std::string_view note) const {
  if (const std::string prompt = keys.prompt(); !prompt.empty()) return prompt;
  if (!note.empty()) return harmless(note);
  if (keys.mode() == WatchKeys::Mode::kHelp) return "any key goes back";
  const WatchArrangement& arrangement = keys.arrangement();
  std::vector<std::string> parts;
  const Part& shown = part(keys.pane());
  const bool is_jobs = keys.pane() == WatchPane::kJobs;
  if (shown.visible < shown.all) {
    const std::string_view noun = is_jobs ? "jobs" : shows_nodes_ ? "nodes" : "GPUs";
    parts.push_back(fmt::format("{} {} to {} of {}", noun, shown.first + 1,
                                shown.first + shown.visible, shown.all));
  }
  if (is_jobs && arrangement.job_order != WatchJobOrder::kId) {
    parts.push_back(fmt::format("by {}", to_string(arrangement.job_order)));
  }
  if (!is_jobs && arrangement.order != WatchOrder::kNode) {
    parts.push_back(fmt::format("by {}", to_string(arrangement.order)));
  }
  if (!arrangement.filter.empty()) parts.push_back(fmt::format("only '{}'", arrangement.filter));
  const std::string text = joined(parts, ", ");
  return text.empty() ? std::string(kKeys) : fmt::format("{}  {}", text, kKeys);
}

std::string watch_picture(const WatchView& view, std::size_t width, bool is_ascii) {
  const WatchArrangement all;
  const WatchStyle style{.width = width, .has_graphs = width != 0, .is_ascii = is_ascii};
  std::string text;
  const auto add = [&](const std::string& line) {
    text += is_ascii && width != 0 ? in_ascii(line) : line;
    text += '\n';
  };
  const auto add_table = [&](const WatchTable& table) {
    add(table.titles);
    for (const WatchRow& row : table.rows) add(row.text);
  };
  for (const std::string& line : watch_header(view, width)) add(line);
  add_table(watch_gpus(view.status.gpus(), view, style));
  const WatchTable jobs = watch_jobs(view, all, style);
  if (jobs.rows.empty()) return text;
  add({});
  add_table(jobs);
  return text;
}

}  // namespace gpu_platform::cli
