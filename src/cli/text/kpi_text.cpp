#include "cli/text/kpi_text.h"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/units.h"
#include "cli/client_names.h"
#include "cli/text/csv.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

constexpr std::size_t kFigureWidth = 20;

// ---- words

std::string time_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g}ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  return age(base::seconds(std::llround(seconds)));
}

std::string shown_time(const google::protobuf::Timestamp& at) {
  const auto time = time_of(at);
  return time ? short_time(*time) : std::string();
}

std::string percent_text(bool is_known, double percent) {
  return is_known ? fmt::format("{:.1f}%", percent) : std::string();
}

std::string readings_text(const v1::KpiGpuTime& time) {
  return percent_text(time.has_measured_percent(), time.measured_percent());
}

std::string utilization_text(const v1::KpiGpuTime& time) {
  return percent_text(time.has_utilization_percent(), time.utilization_percent());
}

std::string memory_text(const v1::KpiGpuTime& time) {
  return percent_text(time.has_memory_percent(), time.memory_percent());
}

// A site that has just begun has seconds of them.
std::string hours_text(double hours) {
  return hours > 0 && hours < 0.1 ? fmt::format("{:.3f}", hours) : fmt::format("{:.1f}", hours);
}

// "90% or more", "30-50%".
std::string target_text(const v1::KpiKind& kind) {
  const bool has_least = kind.has_min_target_percent();
  const bool has_most = kind.has_max_target_percent();
  if (has_least && has_most) {
    return fmt::format("{:.0f}-{:.0f}%", kind.min_target_percent(), kind.max_target_percent());
  }
  return has_least ? fmt::format("{:.0f}% or more", kind.min_target_percent()) : std::string();
}

std::string met_text(const v1::KpiKind& kind) {
  return if_known(kind.has_target_met(), kind.target_met() ? "met" : "missed");
}

template <class Message>
std::string kind_word(const Message& message) {
  return as_word(name_at(message, Message::kKindFieldNumber));
}

std::string team_word(const std::string& team) {
  return team.empty() ? "(no team)" : team;
}

// ---- tables

std::vector<std::string> times_row(std::string name, const v1::KpiTimes& times) {
  return {std::move(name), fmt::to_string(times.count()), time_text(times.mean_seconds()),
          time_text(times.p50_seconds()), time_text(times.p95_seconds())};
}

std::string times_table(const v1::Kpi& kpi, const TableStyle& style) {
  Table table({{.title = "TIME"},
               {"COUNT", Align::kRight},
               {"MEAN", Align::kRight},
               {"P50", Align::kRight},
               {"P95", Align::kRight}});
  if (kpi.has_completion_time()) table.add(times_row("completion", kpi.completion_time()));
  if (kpi.has_queue_wait()) table.add(times_row("queue wait", kpi.queue_wait()));
  if (kpi.has_allocation_time()) table.add(times_row("allocation", kpi.allocation_time()));
  if (kpi.has_response_time()) {
    const v1::KpiResponses& responses = kpi.response_time();
    const auto bound = [](bool is_known, double seconds) {
      return is_known ? time_text(seconds) : std::string("over 10s");
    };
    table.add({"API response", fmt::to_string(responses.count()),
               time_text(responses.mean_seconds()),
               bound(responses.has_p50_seconds(), responses.p50_seconds()),
               bound(responses.has_p95_seconds(), responses.p95_seconds())});
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string causes_table(const v1::Kpi& kpi, const TableStyle& style) {
  Table table({{.title = "ENDED BY"},
               {"JOBS", Align::kRight},
               {"SHARE", Align::kRight},
               {"ATTEMPTS", Align::kRight}});
  for (const v1::KpiCause& cause : kpi.causes()) {
    if (cause.jobs() == 0 && cause.attempts() == 0) continue;
    table.add({as_word(cause.cause()), fmt::to_string(cause.jobs()),
               percent_text(cause.has_jobs_percent(), cause.jobs_percent()),
               fmt::to_string(cause.attempts())});
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string kinds_table(const v1::Kpi& kpi, const TableStyle& style) {
  Table table({{.title = "KIND"},
               {"GPU-HOURS", Align::kRight},
               {"READINGS", Align::kRight},
               {"UTILIZATION", Align::kRight},
               {"TARGET", Align::kRight},
               {.title = "IS"},
               {"MEMORY", Align::kRight}});
  for (const v1::KpiKind& kind : kpi.kinds()) {
    table.add({kind_word(kind), hours_text(kind.gpus().gpu_hours()), readings_text(kind.gpus()),
               utilization_text(kind.gpus()), target_text(kind), met_text(kind),
               memory_text(kind.gpus())});
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string teams_table(const v1::Kpi& kpi, const TableStyle& style) {
  Table table({{.title = "TEAM", .cut_to = 8},
               {"JOBS", Align::kRight},
               {"FAILED", Align::kRight},
               {"GPU-HOURS", Align::kRight},
               {"ALLOCATION", Align::kRight},
               {"READINGS", Align::kRight},
               {"UTILIZATION", Align::kRight}});
  for (const v1::KpiTeam& team : kpi.teams()) {
    table.add({team_word(team.team()), fmt::to_string(team.jobs_ended()),
               fmt::to_string(team.jobs_failed()), hours_text(team.gpus().gpu_hours()),
               percent_text(team.has_allocation_percent(), team.allocation_percent()),
               readings_text(team.gpus()), utilization_text(team.gpus())});
  }
  return table.empty() ? std::string() : "\n" + table.render(style);
}

std::string idle_table(const v1::KpiIdle& idle, const TableStyle& style) {
  Table table({{"JOB", Align::kRight},
               {.title = "NAME", .cut_to = 8},
               {.title = "USER", .cut_to = 6},
               {.title = "TEAM", .cut_to = 6, .expendable = 1},
               {.title = "SINCE"},
               {"GPUS", Align::kRight},
               {"GPU-HOURS", Align::kRight},
               {"UTILIZATION", Align::kRight}});
  for (const v1::KpiIdleJob& job : idle.jobs()) {
    table.add({job.id(), job.name(), job.user(), team_word(job.team()), shown_time(job.since()),
               fmt::format("{:.4g}", job.gpus()), hours_text(job.use().gpu_hours()),
               utilization_text(job.use())});
  }
  return table.empty() ? std::string() : table.render(style);
}

// ---- lines

std::string jobs_text(const v1::Kpi& kpi) {
  std::string text = fmt::format("{} ended, {} completed, {} failed", kpi.jobs_ended(),
                                 kpi.jobs_completed(), kpi.jobs_failed());
  if (kpi.has_failure_percent()) text += fmt::format(" ({:.1f}%)", kpi.failure_percent());
  return text;
}

std::string throughput_text(const v1::Kpi& kpi) {
  if (!kpi.has_completed_per_hour()) return {};
  std::string text = fmt::format("{:.1f} completed in an hour", kpi.completed_per_hour());
  if (kpi.has_completed_per_day())
    text += fmt::format(", {:.1f} in a day", kpi.completed_per_day());
  return text;
}

std::string recovery_text(const v1::Kpi& kpi) {
  if (!kpi.has_recovery_percent()) return {};
  return fmt::format("{} of {} interrupted jobs completed ({:.1f}%)", kpi.recovered_jobs(),
                     kpi.interrupted_jobs(), kpi.recovery_percent());
}

std::string allocation_text(const v1::Kpi& kpi) {
  if (!kpi.has_allocation_percent()) {
    return hours_text(kpi.gpus().gpu_hours()) + " GPU-hours; those available are not known";
  }
  return fmt::format("{:.1f}% of {} GPU-hours available", kpi.allocation_percent(),
                     hours_text(kpi.available_gpu_hours()));
}

// "54.0% of 3525.0 GPU-hours allocated (98.0% have readings)".
std::string utilization_line(const v1::KpiGpuTime& time) {
  if (!time.has_utilization_percent()) return {};
  return fmt::format("{} of {} GPU-hours allocated ({} have readings)", utilization_text(time),
                     hours_text(time.gpu_hours()), readings_text(time));
}

std::string idle_text(const v1::KpiIdle& idle) {
  return fmt::format("{} below {:.0f}% for {} or more, {} GPU-hours",
                     counted(idle.attempts(), "attempt"), idle.below_percent(),
                     base::written(base::seconds(std::llround(idle.after_seconds()))),
                     hours_text(idle.gpu_hours()));
}

std::string lines_of(const std::vector<std::pair<std::string_view, std::string>>& lines,
                     std::size_t width) {
  std::string page;
  for (const auto& [key, value] : lines) page += key_line(key, value, kFigureWidth, width);
  return page;
}

// ---- CSV

class CsvLines {
 public:
  void add(std::string_view section, std::string_view name, std::string_view figure, double value) {
    text_ += fmt::format("{},{},{},{:.4f}\n", section, csv_cell(name), figure, value);
  }
  void add_if(bool is_known, std::string_view section, std::string_view name,
              std::string_view figure, double value) {
    if (is_known) add(section, name, figure, value);
  }
  template <class Times>
  void add_times(bool is_known, std::string_view name, const Times& times) {
    if (!is_known) return;
    add("time", name, "count", static_cast<double>(times.count()));
    add("time", name, "mean_seconds", times.mean_seconds());
    add("time", name, "p50_seconds", times.p50_seconds());
    add("time", name, "p95_seconds", times.p95_seconds());
  }
  void add_gpus(std::string_view section, std::string_view name, const v1::KpiGpuTime& time) {
    add(section, name, "gpu_hours", time.gpu_hours());
    add_if(time.has_measured_percent(), section, name, "measured_percent", time.measured_percent());
    add_if(time.has_utilization_percent(), section, name, "utilization_percent",
           time.utilization_percent());
    add_if(time.has_memory_percent(), section, name, "memory_percent", time.memory_percent());
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "section,name,figure,value\n";
};

void add_responses(const v1::Kpi& kpi, CsvLines& lines) {
  if (!kpi.has_response_time()) return;
  const v1::KpiResponses& times = kpi.response_time();
  lines.add("time", "response", "count", static_cast<double>(times.count()));
  lines.add("time", "response", "mean_seconds", times.mean_seconds());
  lines.add_if(times.has_p50_seconds(), "time", "response", "p50_seconds", times.p50_seconds());
  lines.add_if(times.has_p95_seconds(), "time", "response", "p95_seconds", times.p95_seconds());
}

void add_site(const v1::Kpi& kpi, CsvLines& lines) {
  const auto add = [&](std::string_view figure, std::uint64_t value) {
    lines.add("site", "", figure, static_cast<double>(value));
  };
  const auto add_if = [&](bool is_known, std::string_view figure, double value) {
    lines.add_if(is_known, "site", "", figure, value);
  };
  add("jobs_ended", kpi.jobs_ended());
  add("jobs_completed", kpi.jobs_completed());
  add("jobs_failed", kpi.jobs_failed());
  add_if(kpi.has_completed_per_hour(), "completed_per_hour", kpi.completed_per_hour());
  add_if(kpi.has_completed_per_day(), "completed_per_day", kpi.completed_per_day());
  add_if(kpi.has_failure_percent(), "failure_percent", kpi.failure_percent());
  add("hardware_failures", kpi.hardware_failures());
  add("interrupted_jobs", kpi.interrupted_jobs());
  add("recovered_jobs", kpi.recovered_jobs());
  add_if(kpi.has_recovery_percent(), "recovery_percent", kpi.recovery_percent());
  lines.add_gpus("site", "", kpi.gpus());
  add_if(kpi.has_available_gpu_hours(), "available_gpu_hours", kpi.available_gpu_hours());
  add_if(kpi.has_allocation_percent(), "allocation_percent", kpi.allocation_percent());
  add_if(kpi.has_compute_efficiency_percent(), "compute_efficiency_percent",
         kpi.compute_efficiency_percent());
}

}  // namespace

std::string kpi_page(const v1::Kpi& kpi, const TableStyle& style) {
  std::string page =
      fmt::format("Key figures from {} to {}", shown_time(kpi.since()), shown_time(kpi.until()));
  if (kpi.has_team()) page += " of team " + harmless(team_word(kpi.team()));
  page += "\n";
  if (kpi.has_complete_since()) {
    page += fmt::format("Records begin at {}.\n", shown_time(kpi.complete_since()));
  }
  page += times_table(kpi, style);
  page += "\n" + lines_of({{"Jobs:", jobs_text(kpi)},
                           {"Throughput:", throughput_text(kpi)},
                           {"Hardware failures:", fmt::to_string(kpi.hardware_failures())},
                           {"Recovery:", recovery_text(kpi)}},
                          style.width);
  page += causes_table(kpi, style);
  page +=
      "\n" + lines_of({{"Allocation ratio:", allocation_text(kpi)},
                       {"Utilization:", utilization_line(kpi.gpus())},
                       {"Memory:", memory_text(kpi.gpus())},
                       {"Compute efficiency:", percent_text(kpi.has_compute_efficiency_percent(),
                                                            kpi.compute_efficiency_percent())}},
                      style.width);
  page += kinds_table(kpi, style) + teams_table(kpi, style);
  page += "\n" + lines_of({{"Idle:", idle_text(kpi.idle())}}, style.width);
  return page + idle_table(kpi.idle(), style);
}

std::string kpi_csv(const v1::Kpi& kpi) {
  CsvLines lines;
  lines.add_times(kpi.has_completion_time(), "completion", kpi.completion_time());
  lines.add_times(kpi.has_queue_wait(), "queue_wait", kpi.queue_wait());
  lines.add_times(kpi.has_allocation_time(), "allocation", kpi.allocation_time());
  add_responses(kpi, lines);
  add_site(kpi, lines);
  for (const v1::KpiCause& cause : kpi.causes()) {
    const std::string name = as_word(cause.cause());
    lines.add("cause", name, "jobs", static_cast<double>(cause.jobs()));
    lines.add("cause", name, "attempts", static_cast<double>(cause.attempts()));
  }
  for (const v1::KpiKind& kind : kpi.kinds()) lines.add_gpus("kind", kind_word(kind), kind.gpus());
  for (const v1::KpiTeam& team : kpi.teams()) {
    lines.add("team", team.team(), "jobs_ended", static_cast<double>(team.jobs_ended()));
    lines.add("team", team.team(), "jobs_failed", static_cast<double>(team.jobs_failed()));
    lines.add_gpus("team", team.team(), team.gpus());
    lines.add_if(team.has_allocation_percent(), "team", team.team(), "allocation_percent",
                 team.allocation_percent());
  }
  for (const v1::KpiIdleJob& job : kpi.idle().jobs()) {
    lines.add_gpus("idle", fmt::format("{} {}", job.id(), job.user()), job.use());
  }
  return lines.text();
}

}  // namespace gpu_platform::cli
