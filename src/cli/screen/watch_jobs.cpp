#include "cli/screen/watch_jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/request_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

// A driver and a library take as much of a GPU's memory before a program has put anything there.
constexpr double kEmptyShare = 0.02;

// What a job does on its GPUs now.
struct JobNow {
  std::size_t gpus = 0;
  std::size_t idle = 0;
  base::Instant idle_since;  // when the last of the idle ones became so
  std::size_t measured = 0;  // GPUs with a utilization
  double percent = 0;        // of all of these together
  std::size_t with_memory = 0;
  std::uint64_t memory = 0;
  std::uint64_t memory_total = 0;

  std::optional<double> mean_percent() const {
    if (measured == 0) return std::nullopt;
    return percent / static_cast<double>(measured);
  }
};

WatchedPart used_of(const v1::Gpu& gpu, const std::string& job, const WatchView& view) {
  if (!gpu.parts().empty()) {
    const auto found = view.parts.find({job, place_name(gpu)});
    return found == view.parts.end() ? WatchedPart() : found->second;
  }
  WatchedPart whole;
  if (gpu.has_utilization_percent()) whole.utilization_percent = gpu.utilization_percent();
  if (gpu.has_memory_used_bytes()) whole.memory_used_bytes = gpu.memory_used_bytes();
  return whole;
}

void add_to_job(const v1::Gpu& gpu, const WatchedPart& used, const WatchView& view, JobNow& now) {
  ++now.gpus;
  if (used.utilization_percent) {
    ++now.measured;
    now.percent += *used.utilization_percent;
  }
  if (used.memory_used_bytes) {
    ++now.with_memory;
    now.memory += *used.memory_used_bytes;
    now.memory_total += gpu.memory_total_bytes();
  }
  const auto since = view.idle_since.find(place_name(gpu));
  if (since == view.idle_since.end()) return;
  ++now.idle;
  now.idle_since = std::max(now.idle_since, since->second);
}

// By the id of the job.
std::map<std::string, JobNow> jobs_now(const WatchView& view) {
  std::map<std::string, JobNow> jobs;
  for (const v1::Gpu& gpu : view.status.gpus()) {
    for (const std::string& id : gpu.jobs()) {
      const auto job = view.jobs.find(id);
      if (job == view.jobs.end()) continue;
      add_to_job(gpu, used_of(gpu, job->second.id, view), view, jobs[id]);
    }
  }
  return jobs;
}

// "idle 35s, 40 GiB loaded", "2 of 8 GPUs idle 35s"; empty: it uses them.
std::string why_idle(const JobNow& now, const WatchView& view) {
  if (now.idle == 0 || view.now - now.idle_since < kIdleMoment) return {};
  const std::string idle = "idle " + age(view.now - now.idle_since);
  if (now.idle < now.gpus) return fmt::format("{} of {} GPUs {}", now.idle, now.gpus, idle);
  if (now.with_memory == 0) return idle;
  const double share = static_cast<double>(now.memory) /
                       static_cast<double>(std::max<std::uint64_t>(now.memory_total, 1));
  return idle + (share < kEmptyShare
                     ? ", nothing loaded"
                     : fmt::format(", {} loaded", readable_size(as_signed(now.memory))));
}

std::string asked_gpus(const v1::JobSpec& spec) {
  return is_part(spec) ? share_text(spec.gpu_share()) : fmt::format("{}", total_gpus(spec));
}

std::string left_of(const WatchedJob& job, const WatchView& view) {
  if (!job.ends_by.is_set()) return {};
  return age(std::max(job.ends_by - view.now, base::Duration()));
}

// A running job with what is shown of it.
struct RunningRow {
  const v1::Job* job = nullptr;
  WatchedJob watched;
  JobNow now;
  std::string note;
};

std::vector<RunningRow> running_rows(const WatchView& view, const std::string& filter) {
  const std::map<std::string, JobNow> now = jobs_now(view);
  std::vector<RunningRow> rows;
  for (const v1::Job& job : view.running) {
    RunningRow row{.job = &job, .watched = watched_job(job)};
    if (const auto found = now.find(job.id()); found != now.end()) row.now = found->second;
    const std::string place = place_or_reason(job);
    const std::string idle = why_idle(row.now, view);
    row.note = fmt::format("{}{}{}", idle, idle.empty() || place.empty() ? "" : "; ", place);
    const std::string text = fmt::format("{} {} {} {} {}", row.watched.id, row.watched.user,
                                         row.watched.name, state_name(job), row.note);
    if (fits_filter(text, filter)) rows.push_back(std::move(row));
  }
  return rows;
}

void sort_running(std::vector<RunningRow>& rows, WatchJobOrder order) {
  // Ids are numbers, and a longer number is larger.
  const auto id = [](const RunningRow& row) {
    return std::pair(row.job->id().size(), row.job->id());
  };
  const auto by = [&](auto&& key) {
    std::ranges::sort(rows, {},
                      [&](const RunningRow& row) { return std::pair(key(row), id(row)); });
  };
  switch (order) {
    case WatchJobOrder::kId:
      return by([](const RunningRow&) { return 0; });
    case WatchJobOrder::kUser:
      return by([](const RunningRow& row) { return row.watched.user; });
    // What is not known goes last.
    case WatchJobOrder::kLeastBusy:
      return by([](const RunningRow& row) { return row.now.mean_percent().value_or(101); });
    case WatchJobOrder::kByMemory:
      return by([](const RunningRow& row) {
        return row.now.with_memory == 0 ? 1.0 : -static_cast<double>(row.now.memory);
      });
    case WatchJobOrder::kTimeLeft:
      return by([](const RunningRow& row) {
        return std::pair(!row.watched.ends_by.is_set(), row.watched.ends_by);
      });
  }
}

Table job_table() {
  return Table({{"ID"},
                {"USER", Align::kLeft, 6},
                {"NAME", Align::kLeft, 8},
                {"GPUS", Align::kRight},
                {"STATE", Align::kLeft, std::nullopt, 3},
                {"TIME", Align::kRight, std::nullopt, 2},
                {"LEFT", Align::kRight, std::nullopt, 1},
                {"GPU", Align::kRight},
                {"GPU MEM", Align::kRight},
                {"WHERE OR WHY", Align::kLeft, 20}});
}

}  // namespace

WatchTable watch_jobs(const WatchView& view, const WatchArrangement& arrangement,
                      const WatchStyle& style) {
  std::vector<RunningRow> running = running_rows(view, arrangement.filter);
  sort_running(running, arrangement.job_order);
  Table table = job_table();
  std::vector<bool> noted;
  for (const RunningRow& row : running) {
    const auto percent = row.now.mean_percent();
    table.add({row.watched.id, row.watched.user, row.watched.name, asked_gpus(row.job->spec()),
               state_name(*row.job), ran(*row.job, view.now), left_of(row.watched, view),
               percent ? fmt::format("{:.0f} %", *percent) : std::string(),
               row.now.with_memory == 0 ? std::string() : readable_size(as_signed(row.now.memory)),
               row.note});
    noted.push_back(!why_idle(row.now, view).empty());
  }
  for (const v1::Job& job : view.waiting) {
    const std::string why = place_or_reason(job);
    const std::string text = fmt::format("{} {} {} {} {}", shown_id(job), job.spec().user(),
                                         job.spec().name(), state_name(job), why);
    if (!fits_filter(text, arrangement.filter)) continue;
    table.add({shown_id(job), job.spec().user(), job.spec().name(), asked_gpus(job.spec()),
               state_name(job), waited(job, view.now), "", "", "", why});
    noted.push_back(false);
  }
  WatchTable lines = watch_table(table, noted, style.width);
  const std::uint64_t shown = view.waiting.size();
  if (view.all_waiting > shown) {
    lines.rows.push_back({shortened(fmt::format("and {} more wait", view.all_waiting - shown),
                                    style.width == 0 ? 80 : style.width)});
  }
  return lines;
}

}  // namespace gpu_platform::cli
