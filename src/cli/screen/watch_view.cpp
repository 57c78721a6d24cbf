#include "cli/screen/watch_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// Below it the jobs have more use for the room than long bars and names.
constexpr std::size_t kBroad = 120;
// So that the time left stays in sight.
constexpr std::size_t kShortName = 10;
// From here on the graph has a column of its own. Below, it stands in the place of the bar.
constexpr std::size_t kVeryBroad = 170;

std::size_t bar_width(std::size_t width) {
  if (width >= 150) return 28;
  return width >= kBroad ? 20 : 10;
}

bool is_narrow(std::size_t width) {
  return width != 0 && width < kBroad;
}

std::string past_of(const v1::Gpu& gpu, const WatchView& view, std::size_t columns,
                    const WatchStyle& style) {
  return view.past.line(place_name(gpu), view.at, columns, style.is_ascii);
}

std::string utilization_cell(const v1::Gpu& gpu, const WatchView& view, const WatchStyle& style) {
  const std::string text = utilization_of(gpu);
  if (text.empty() || style.width == 0) return text;
  if (style.has_graphs && style.width < kVeryBroad) {
    const std::size_t columns = bar_width(style.width) - (sizeof "100 %" - 1);
    return fmt::format("{:>5} {}", text, past_of(gpu, view, columns, style));
  }
  return bar(gpu.utilization_percent() / 100, text, bar_width(style.width));
}

std::string memory_cell(const v1::Gpu& gpu, std::size_t width) {
  if (!gpu.has_memory_used_bytes() || gpu.memory_total_bytes() == 0) return {};
  const auto used = static_cast<double>(gpu.memory_used_bytes());
  const auto total = static_cast<double>(gpu.memory_total_bytes());
  constexpr auto kGib = static_cast<double>(std::int64_t{1} << 30);
  const std::string text = fmt::format("{:.0f}/{:.0f} GiB", used / kGib, total / kGib);
  return width < kBroad ? text : bar(used / total, text, bar_width(width));
}

// "500 W", and "500/700 W" where the limit is known and there is room.
std::string power_cell(const v1::Gpu& gpu, const WatchView& view, std::size_t width) {
  const auto limit = view.power_limits.find(place_name(gpu));
  if (!gpu.has_power_watts() || limit == view.power_limits.end() || is_narrow(width)) {
    return power_of(gpu);
  }
  return fmt::format("{:.0f}/{:.0f} W", gpu.power_watts(), limit->second);
}

// "42 ada train 1h05m left".
std::string job_text(const std::string& id, const WatchView& view, std::size_t width) {
  const auto found = view.jobs.find(id);
  // The caller may not see it.
  if (found == view.jobs.end()) return id;
  const WatchedJob& job = found->second;
  const std::string name = is_narrow(width) ? shortened(job.name, kShortName) : job.name;
  std::string text = fmt::format("{} {}{}{}", job.id, job.user, name.empty() ? "" : " ", name);
  if (job.ends_by.is_set()) {
    text += fmt::format(" {} left", age(std::max(job.ends_by - view.now, base::Duration())));
  }
  return text;
}

}  // namespace

std::string place_name(const v1::Gpu& gpu) {
  return fmt::format("{}:{}", gpu.node(), gpu.index());
}

std::string idle_text(const v1::Gpu& gpu, const WatchView& view) {
  const auto since = view.idle_since.find(place_name(gpu));
  if (since == view.idle_since.end() || view.now - since->second < kIdleMoment) return {};
  return "idle " + age(view.now - since->second);
}

namespace {

// " by time-slice" of a GPU that jobs share.
std::string mode_of(const v1::Gpu& gpu) {
  return gpu.parts().empty() ? "" : " by " + mode_word(gpu.parts(0).mode());
}

// "idle 35s: 42 ada train 1h05m left, 4711 bob (no job); a fan is loud". `width`: of the terminal.
std::string jobs_cell(const v1::Gpu& gpu, const WatchView& view, std::size_t width) {
  std::vector<std::string> parts;
  for (const std::string& job : gpu.jobs()) {
    parts.push_back(job_text(job, view, width) + share_beside(gpu, job));
  }
  if (!parts.empty() && !is_narrow(width)) parts.back() += mode_of(gpu);
  for (const v1::GpuProcess& process : gpu.unmanaged_processes()) {
    if (unnamed_unmanaged_processes(gpu) == 0) break;
    const std::string& user = process.user();
    parts.push_back(fmt::format("{}{}{} (no job)", process.pid(), user.empty() ? "" : " ", user));
  }
  const std::string idle = idle_text(gpu, view);
  std::string text = fmt::format("{}{}{}", idle, idle.empty() ? "" : ": ", fmt::join(parts, ", "));
  const std::string reason = short_reason(gpu);
  if (!reason.empty()) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

// ", 60 % utilized": what the daemon says, else the mean of what was measured.
std::string utilized(const v1::Status& status) {
  double sum = 0;
  std::size_t count = 0;
  for (const v1::Gpu& gpu : status.gpus()) {
    if (!gpu.has_utilization_percent()) continue;
    sum += gpu.utilization_percent();
    ++count;
  }
  if (!status.has_gpu_utilization() && count == 0) return {};
  const double percent = status.has_gpu_utilization() ? status.gpu_utilization() * 100
                                                      : sum / static_cast<double>(count);
  return fmt::format(", {:.0f} % utilized", percent);
}

// "16 GPUs: 3 free, 12 used, 1 out".
std::string gpu_counts(const v1::Status& status) {
  const ClusterGpus& gpus = status.gpus();
  const auto used =
      std::ranges::count_if(gpus, [](const v1::Gpu& gpu) { return !gpu.jobs().empty(); });
  const auto out =
      std::ranges::count_if(gpus, [](const v1::Gpu& gpu) { return !is_in_service(gpu); });
  return fmt::format("{}{}: {} free, {} used, {} out", counted(status.total_gpus(), "GPU"),
                     all_emulated(gpus) ? " (emulated)" : "",
                     free_gpus_text(status.available_gpus(), status.available_share()), used, out);
}

// Of "2026-11-28 09:36:48 +0000".
constexpr std::size_t kDateSize = sizeof "2026-11-28 " - 1;
constexpr std::size_t kTimeSize = sizeof "09:36:48" - 1;

}  // namespace

std::string bar(double part, std::string_view text, std::size_t width) {
  const std::size_t inside = std::max<std::size_t>(width, 3) - 2;
  const double share = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0.0;
  const auto filled = static_cast<std::size_t>(std::lround(share * static_cast<double>(inside)));
  std::string line(filled, '|');
  line.append(inside - filled, ' ');
  const std::string shown = shortened(text, inside);
  const std::size_t taken = display_width(shown);
  return "[" + line.substr(0, inside - taken) + shown + "]";
}

WatchedJob watched_job(const v1::Job& job) {
  WatchedJob watched{shown_id(job), job.spec().user(), job.spec().name(), {}};
  const auto started = client::time_of(job.started_at());
  if (job.has_started_at() && started && job.spec().has_time_limit_seconds()) {
    watched.ends_by =
        *started +
        base::milliseconds(static_cast<std::int64_t>(job.spec().time_limit_seconds() * 1000));
  }
  return watched;
}

void note_idle_gpus(WatchView& view) {
  std::map<std::string, base::Instant> idle;
  for (const v1::Gpu& gpu : view.status.gpus()) {
    const bool is_idle =
        !gpu.jobs().empty() && gpu.has_utilization_percent() && gpu.utilization_percent() == 0;
    if (!is_idle) continue;
    const auto before = view.idle_since.find(place_name(gpu));
    idle[place_name(gpu)] = before == view.idle_since.end() ? view.now : before->second;
  }
  view.idle_since = std::move(idle);
}

bool fits_filter(std::string_view text, std::string_view filter) {
  return base::to_lower(text).find(base::to_lower(filter)) != std::string::npos;
}

bool is_noted(const v1::Gpu& gpu, const WatchView& view) {
  return !is_in_service(gpu) || !gpu.reason().empty() || !idle_text(gpu, view).empty();
}

ClusterGpus arranged(const WatchView& view, const WatchArrangement& arrangement) {
  ClusterGpus gpus;
  for (const v1::Gpu& gpu : view.status.gpus()) {
    const bool is_shown = arrangement.filter.empty() ||
                          fits_filter(fmt::format("{} {} {} {}", place_name(gpu), gpu.type(),
                                                  state_name(gpu), jobs_cell(gpu, view, 0)),
                                      arrangement.filter);
    if (is_shown) *gpus.Add() = gpu;
  }
  // GPUs without a value go last.
  const auto by = [&](auto&& key) {
    std::ranges::stable_sort(gpus.pointer_begin(), gpus.pointer_end(), {},
                             [&](const v1::Gpu* gpu) { return key(*gpu); });
  };
  switch (arrangement.order) {
    case WatchOrder::kNode:
      break;
    case WatchOrder::kLeastBusy:
      by([](const v1::Gpu& gpu) {
        return gpu.has_utilization_percent() ? gpu.utilization_percent() : 101.0;
      });
      break;
    case WatchOrder::kByMemory:
      by([](const v1::Gpu& gpu) {
        return gpu.has_memory_used_bytes() ? -static_cast<double>(gpu.memory_used_bytes()) : 1.0;
      });
      break;
    case WatchOrder::kJob:
      by([](const v1::Gpu& gpu) {
        return gpu.jobs().empty() ? std::pair(true, std::string())
                                  : std::pair(false, std::string(gpu.jobs(0)));
      });
      break;
  }
  return gpus;
}

WatchTable watch_table(const Table& table, const std::vector<bool>& noted, std::size_t width) {
  WatchTable lines;
  const std::string text = table.render({.width = width, .is_one_line = true});
  for (std::size_t begin = 0, i = 0; begin < text.size(); ++i) {
    const std::size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    if (width != 0) line = shortened(line, width);
    if (i == 0) {
      lines.titles = std::move(line);
    } else {
      lines.rows.push_back({std::move(line), noted[i - 1]});
    }
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> watch_header(const WatchView& view, std::size_t width) {
  const v1::Status& status = view.status;
  std::vector<std::string> lines;
  const std::string now = local_time(view.now);
  lines.push_back(fmt::format("{}  {}; {:.0f} % allocated{}",
                              is_narrow(width) ? now.substr(kDateSize, kTimeSize) : now,
                              gpu_counts(status), status.utilization() * 100, utilized(status)));
  std::string jobs =
      fmt::format("jobs: {} running, {} queued, {} held, {} suspended", status.running_jobs(),
                  status.queued_jobs(), status.held_jobs(), status.suspended_jobs());
  if (!view.server.empty()) jobs += "  " + view.server;
  lines.push_back(std::move(jobs));
  if (!view.problem.empty()) lines.push_back("no newer answer: " + view.problem);
  for (std::string& line : lines) {
    line = harmless(line);
    if (width != 0) line = shortened(line, width);
  }
  return lines;
}

WatchTable watch_gpus(const ClusterGpus& gpus, const WatchView& view, const WatchStyle& style) {
  const std::size_t width = style.width;
  const bool has_past = style.has_graphs && width >= kVeryBroad;
  std::vector<Column> columns = {
      {"NODE", Align::kLeft, 8},
      {"GPU", Align::kRight},
      {"TYPE", Align::kLeft, 8, 4},
      {"UTIL", width == 0 ? Align::kRight : Align::kLeft},
      {"MEMORY", width < kBroad ? Align::kRight : Align::kLeft, std::nullopt, 1},
      {"TEMP", Align::kRight, std::nullopt, 2},
      {"POWER", Align::kRight, std::nullopt, 3},
      {"STATE"},
      {"JOBS AND REASON", Align::kLeft, 24}};
  if (has_past) columns.insert(columns.begin() + 4, Column{"LAST 10 MINUTES", Align::kLeft});
  Table table(std::move(columns));
  const bool is_marked_once = all_emulated(view.status.gpus());
  std::vector<bool> noted;
  for (const v1::Gpu& gpu : gpus) {
    std::vector<std::string> cells = {marked_name(gpu.node(), gpu.emulated() && !is_marked_once),
                                      fmt::format("{}", gpu.index()),
                                      gpu.type(),
                                      utilization_cell(gpu, view, style),
                                      memory_cell(gpu, width),
                                      temperature_of(gpu),
                                      power_cell(gpu, view, width),
                                      state_name(gpu),
                                      jobs_cell(gpu, view, width)};
    if (has_past) cells.insert(cells.begin() + 4, past_of(gpu, view, bar_width(width), style));
    table.add(std::move(cells));
    noted.push_back(is_noted(gpu, view));
  }
  return watch_table(table, noted, width);
}

}  // namespace gpu_platform::cli
