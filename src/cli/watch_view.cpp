#include "cli/watch_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/gpu_text.h"
#include "cli/job_text.h"
#include "cli/table.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

std::size_t bar_width(std::size_t width) {
  if (width >= 150) return 28;
  if (width >= 120) return 20;
  return 14;
}

bool all_emulated(const Json& gpus) {
  return !gpus.empty() &&
         std::ranges::all_of(gpus, [](const Json& gpu) { return flag_at(gpu, "emulated"); });
}

std::string utilization_cell(const Json& gpu, std::size_t width) {
  const auto percent = number_at(gpu, "utilization_percent");
  if (!percent) return {};
  const std::string text = fmt::format("{:.0f} %", *percent);
  return width == 0 ? text : bar(*percent / 100, text, bar_width(width));
}

std::string memory_cell(const Json& gpu, std::size_t width) {
  const auto used = integer_at(gpu, "memory_used_bytes");
  const auto total = integer_at(gpu, "memory_total_bytes");
  if (!used || !total || *total <= 0) return {};
  const auto in_gib = [](std::int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::int64_t{1} << 30);
  };
  const std::string text = fmt::format("{:.0f}/{:.0f} GiB", in_gib(*used), in_gib(*total));
  if (width == 0) return text;
  return bar(static_cast<double>(*used) / static_cast<double>(*total), text, bar_width(width));
}

// "42 ada, 4711 bob (no job); a fan is loud".
std::string jobs_cell(const Json& gpu, const WatchView& view) {
  std::vector<std::string> parts;
  for (const std::string& job : texts_at(gpu, "jobs")) {
    const auto user = view.users.find(job);
    const bool known = user != view.users.end() && !user->second.empty();
    parts.push_back(known ? fmt::format("{} {}", job, user->second) : job);
  }
  for (const Json& process : list_at(gpu, "unmanaged_processes")) {
    if (unnamed_unmanaged_processes(gpu) == 0) break;
    const std::string user = text_at(process, "user");
    parts.push_back(
        fmt::format("{}{}{} (no job)", text_at(process, "pid"), user.empty() ? "" : " ", user));
  }
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  const std::string reason = text_at(gpu, "reason");
  if (!reason.empty()) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

std::string next_job(const Json& job) {
  const std::string why = text_at(object_at(job, "wait_reason"), "text");
  return fmt::format("next: {} {} ({}, {}){}", text_at(job, "id"), text_at(spec_of(job), "name"),
                     text_at(spec_of(job), "user"), counted(total_gpus(spec_of(job)), "GPU"),
                     why.empty() ? "" : ": " + why);
}

// The mean of what was measured.
std::string measured(const Json& gpus) {
  double sum = 0;
  std::size_t count = 0;
  for (const Json& gpu : gpus) {
    const auto percent = number_at(gpu, "utilization_percent");
    if (!percent) continue;
    sum += *percent;
    ++count;
  }
  return count == 0 ? std::string()
                    : fmt::format(", {:.0f} % busy", sum / static_cast<double>(count));
}

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

std::vector<std::string> watch_header(const WatchView& view, std::size_t width) {
  const Json& status = view.status;
  const Json& gpus = list_at(status, "gpus");
  const double share = number_at(status, "utilization").value_or(0) * 100;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}  {} GPUs{}, {} available, {:.0f} % allocated{}",
                              local_time(view.now), text_at(status, "total_gpus"),
                              all_emulated(gpus) ? " (emulated)" : "",
                              text_at(status, "available_gpus"), share, measured(gpus)));
  std::string queue = fmt::format("jobs: {} running, {} queued, {} held, {} suspended",
                                  text_at(status, "running_jobs"), text_at(status, "queued_jobs"),
                                  text_at(status, "held_jobs"), text_at(status, "suspended_jobs"));
  if (view.head.is_object()) queue += "; " + next_job(view.head);
  lines.push_back(std::move(queue));
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
               {"MEMORY", width == 0 ? Align::kRight : Align::kLeft, std::nullopt, 2},
               {"TEMP", Align::kRight, std::nullopt, 1},
               {"POWER", Align::kRight, std::nullopt, 3},
               {"STATE"},
               {"JOBS AND REASON", Align::kLeft, 12}});
  const Json& gpus = list_at(view.status, "gpus");
  const bool is_marked_once = all_emulated(gpus);
  for (const Json& gpu : gpus) {
    table.add({is_marked_once ? text_at(gpu, "node") : marked_name(gpu, "node"),
               text_at(gpu, "index"), text_at(gpu, "type"), utilization_cell(gpu, width),
               memory_cell(gpu, width), reading(gpu, "temperature_c", " °C"),
               reading(gpu, "power_watts", " W"), text_at(gpu, "state"), jobs_cell(gpu, view)});
  }
  std::vector<std::string> lines;
  const std::string text = table.render(width);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    lines.push_back(width == 0 ? std::move(line) : shortened(line, width));
    begin = end + 1;
  }
  return lines;
}

}  // namespace gpu_platform::cli
