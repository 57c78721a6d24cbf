#include "cli/screen/watch_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/request_text.h"
#include "cli/text/share_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// A shorter pause between two steps of a job is no idle GPU.
constexpr base::Duration kIdleMoment = base::seconds(10);

// Below it the jobs have more use for the room than long bars and names.
constexpr std::size_t kBroad = 120;
// So that the time left stays in sight.
constexpr std::size_t kShortName = 10;

std::size_t bar_width(std::size_t width) {
  if (width >= 150) return 28;
  return width >= kBroad ? 20 : 10;
}

bool is_narrow(std::size_t width) {
  return width != 0 && width < kBroad;
}

std::string utilization_cell(const v1::Gpu& gpu, std::size_t width) {
  const std::string text = utilization_of(gpu);
  if (text.empty() || width == 0) return text;
  return bar(gpu.utilization_percent() / 100, text, bar_width(width));
}

std::string memory_cell(const v1::Gpu& gpu, std::size_t width) {
  if (!gpu.has_memory_used_bytes() || gpu.memory_total_bytes() == 0) return {};
  const auto used = static_cast<double>(gpu.memory_used_bytes());
  const auto total = static_cast<double>(gpu.memory_total_bytes());
  constexpr auto kGib = static_cast<double>(std::int64_t{1} << 30);
  const std::string text = fmt::format("{:.0f}/{:.0f} GiB", used / kGib, total / kGib);
  return width < kBroad ? text : bar(used / total, text, bar_width(width));
}

std::string gpu_name_of(const v1::Gpu& gpu) {
  return fmt::format("{}:{}", gpu.node(), gpu.index());
}

// "42 ada train 1h05m left".
std::string job_text(const std::string& id, const WatchView& view, std::size_t width) {
  const auto found = view.jobs.find(id);
  if (found == view.jobs.end() || found->second.id.empty()) return id;
  const WatchedJob& job = found->second;
  const std::string name = is_narrow(width) ? shortened(job.name, kShortName) : job.name;
  std::string text = fmt::format("{} {}{}{}", job.id, job.user, name.empty() ? "" : " ", name);
  if (job.ends_by.is_set()) {
    text += fmt::format(" {} left", age(std::max(job.ends_by - view.now, base::Duration())));
  }
  return text;
}

}  // namespace

std::string idle_text(const v1::Gpu& gpu, const WatchView& view) {
  const auto since = view.idle_since.find(gpu_name_of(gpu));
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

std::string next_job(const v1::Job& job) {
  const std::string& why = job.wait_reason().text();
  return fmt::format("next: {} {} ({}, {}){}", shown_id(job), job.spec().name(), job.spec().user(),
                     is_part(job.spec()) ? share_text(job.spec().gpu_share()) + " GPU"
                                         : counted(total_gpus(job.spec()), "GPU"),
                     why.empty() ? "" : ": " + why);
}

// The mean of what was measured.
std::string measured(const ClusterGpus& gpus) {
  double sum = 0;
  std::size_t count = 0;
  for (const v1::Gpu& gpu : gpus) {
    if (!gpu.has_utilization_percent()) continue;
    sum += gpu.utilization_percent();
    ++count;
  }
  return count == 0 ? std::string()
                    : fmt::format(", {:.0f} % busy", sum / static_cast<double>(count));
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
    const auto before = view.idle_since.find(gpu_name_of(gpu));
    idle[gpu_name_of(gpu)] = before == view.idle_since.end() ? view.now : before->second;
  }
  view.idle_since = std::move(idle);
}

WatchView arranged(const WatchView& view, const WatchArrangement& arrangement) {
  WatchView shown = view;
  auto& gpus = *shown.status.mutable_gpus();
  if (!arrangement.filter.empty()) {
    const std::string wanted = base::to_lower(arrangement.filter);
    const auto fits = [&](const v1::Gpu& gpu) {
      const std::string text = fmt::format("{} {} {} {}", gpu_name_of(gpu), gpu.type(),
                                           state_name(gpu), jobs_cell(gpu, view, 0));
      return base::to_lower(text).find(wanted) != std::string::npos;
    };
    gpus.erase(
        std::remove_if(gpus.begin(), gpus.end(), [&](const auto& gpu) { return !fits(gpu); }),
        gpus.end());
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
  return shown;
}

std::vector<std::string> watch_header(const WatchView& view, std::size_t width) {
  const v1::Status& status = view.status;
  const ClusterGpus& gpus = status.gpus();
  const double share = status.utilization() * 100;
  std::vector<std::string> lines;
  const std::string now = local_time(view.now);
  lines.push_back(fmt::format("{}  {} GPUs{}, {} available, {:.0f} % allocated{}",
                              is_narrow(width) ? now.substr(kDateSize, kTimeSize) : now,
                              status.total_gpus(), all_emulated(gpus) ? " (emulated)" : "",
                              free_gpus_text(status.available_gpus(), status.available_share()),
                              share, measured(gpus)));
  std::string queue =
      fmt::format("jobs: {} running, {} queued, {} held, {} suspended", status.running_jobs(),
                  status.queued_jobs(), status.held_jobs(), status.suspended_jobs());
  const std::string next = view.head ? next_job(*view.head) : "";
  const bool is_one_line = width == 0 || queue.size() + next.size() + 2 <= width;
  if (!next.empty() && is_one_line) queue += "; " + next;
  lines.push_back(std::move(queue));
  if (!next.empty() && !is_one_line) lines.push_back(next);
  if (!view.problem.empty()) lines.push_back("no newer answer: " + view.problem);
  for (std::string& line : lines) {
    line = harmless(line);
    if (width != 0) line = shortened(line, width);
  }
  return lines;
}

std::vector<std::string> watch_rows(const WatchView& view, std::size_t width) {
  Table table({{"NODE", Align::kLeft, 8},
               {"GPU", Align::kRight},
               {"TYPE", Align::kLeft, 8, 4},
               {"UTIL", width == 0 ? Align::kRight : Align::kLeft},
               {"MEMORY", width < kBroad ? Align::kRight : Align::kLeft, std::nullopt, 1},
               {"TEMP", Align::kRight, std::nullopt, 2},
               {"POWER", Align::kRight, std::nullopt, 3},
               {"STATE"},
               {"JOBS AND REASON", Align::kLeft, 24}});
  const ClusterGpus& gpus = view.status.gpus();
  const bool is_marked_once = all_emulated(gpus);
  for (const v1::Gpu& gpu : gpus) {
    table.add({marked_name(gpu.node(), gpu.emulated() && !is_marked_once),
               fmt::format("{}", gpu.index()), gpu.type(), utilization_cell(gpu, width),
               memory_cell(gpu, width), temperature_of(gpu), power_of(gpu), state_name(gpu),
               jobs_cell(gpu, view, width)});
  }
  std::vector<std::string> lines;
  const std::string text = table.render({.width = width, .is_one_line = true});
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    lines.push_back(width == 0 ? std::move(line) : shortened(line, width));
    begin = end + 1;
  }
  return lines;
}

}  // namespace gpu_platform::cli
