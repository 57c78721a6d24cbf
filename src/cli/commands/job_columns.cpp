#include "cli/commands/job_columns.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/money_text.h"
#include "cli/text/request_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;
using Timestamp = google::protobuf::Timestamp;

std::string time_cell(const Timestamp& field) {
  const auto at = time_of(field);
  return at ? short_time(*at) : std::string();
}

double rank_of(const Timestamp& field) {
  const auto at = time_of(field);
  return at ? static_cast<double>(at->unix_ns()) : 0;
}

double rank_of(std::optional<base::Duration> duration) {
  return duration ? static_cast<double>(duration->value()) : -1;
}

double id_rank(const v1::Job& job, base::Instant) {
  return static_cast<double>(std::strtoull(job.id().c_str(), nullptr, 10));
}

std::string age_cell(const v1::Job& job, base::Instant now) {
  const auto at = time_of(job.submitted_at());
  return at ? age(now - *at) : std::string();
}

}  // namespace

std::string percent_cell(bool is_known, double percent) {
  return is_known ? fmt::format("{:.0f}%", percent) : std::string();
}

std::vector<JobColumn> job_columns() {
  std::vector<JobColumn> columns = {
      {.key = "id",
       .column = {"ID", Align::kRight},
       .cell = [](const v1::Job& job, base::Instant) { return shown_id(job); },
       .rank = id_rank},
      {.key = "name",
       .column = {.title = "NAME", .cut_to = 12},
       .cell = [](const v1::Job& job, base::Instant) { return job.spec().name(); }},
      {.key = "user",
       .column = {.title = "USER", .cut_to = 6},
       .cell = [](const v1::Job& job, base::Instant) { return job.spec().user(); }},
      {.key = "state",
       .column = {.title = "STATE", .is_state = true},
       .cell = [](const v1::Job& job, base::Instant) { return state_name(job); }},
      {.key = "gpus",
       .column = {"GPUS", Align::kRight},
       .cell = [](const v1::Job& job,
                  base::Instant) { return share_text(gpus_in_all(job.spec())); },
       .rank = [](const v1::Job& job, base::Instant) { return gpus_in_all(job.spec()); }},
      {.key = "priority",
       .column = {.title = "PRIORITY", .expendable = 7},
       .cell = [](const v1::Job& job, base::Instant) { return job.spec().priority(); },
       .rank = [](const v1::Job& job,
                  base::Instant) { return static_cast<double>(job.spec().priority_number()); }},
      {.key = "submitted",
       .column = {.title = "SUBMITTED", .expendable = 4},
       .cell = [](const v1::Job& job, base::Instant) { return time_cell(job.submitted_at()); },
       .rank = [](const v1::Job& job, base::Instant) { return rank_of(job.submitted_at()); }},
      {.key = "age",
       .column = {.title = "AGE", .align = Align::kRight, .instead_of = "SUBMITTED"},
       .cell = age_cell,
       .rank = [](const v1::Job& job, base::Instant) { return -rank_of(job.submitted_at()); }},
      {.key = "started",
       .column = {.title = "STARTED", .expendable = 5},
       .cell = [](const v1::Job& job, base::Instant) { return time_cell(job.started_at()); },
       .rank = [](const v1::Job& job, base::Instant) { return rank_of(job.started_at()); }},
      {.key = "ended",
       .column = {.title = "ENDED", .expendable = 6},
       .cell = [](const v1::Job& job, base::Instant) { return time_cell(job.ended_at()); },
       .rank = [](const v1::Job& job, base::Instant) { return rank_of(job.ended_at()); },
       .is_left_out_if_empty = true},
      {.key = "waited",
       .column = {.title = "WAITED", .align = Align::kRight, .expendable = 8},
       .cell = [](const v1::Job& job, base::Instant now) { return waited(job, now); },
       .rank = [](const v1::Job& job,
                  base::Instant now) { return rank_of(waiting_time(job, now)); }},
      {.key = "ran",
       .column = {"RAN", Align::kRight},
       .cell = [](const v1::Job& job, base::Instant now) { return ran(job, now); },
       .rank = [](const v1::Job& job,
                  base::Instant now) { return rank_of(running_time(job, now)); }}};
  columns.push_back({.key = std::string(kJobUseColumns[0]),
                     .column = {.title = "GPU UTIL", .align = Align::kRight, .expendable = 3},
                     .cell =
                         [](const v1::Job& job, base::Instant) {
                           return percent_cell(job.gpu_use().has_utilization_percent(),
                                               job.gpu_use().utilization_percent());
                         },
                     .rank = [](const v1::Job& job,
                                base::Instant) { return job.gpu_use().utilization_percent(); },
                     .is_wide = true,
                     .is_left_out_if_empty = true});
  columns.push_back(
      {.key = std::string(kJobUseColumns[1]),
       .column = {.title = "GPU MEM", .align = Align::kRight, .expendable = 3},
       .cell =
           [](const v1::Job& job, base::Instant) {
             return percent_cell(job.gpu_use().has_memory_percent(),
                                 job.gpu_use().memory_percent());
           },
       .rank = [](const v1::Job& job, base::Instant) { return job.gpu_use().memory_percent(); },
       .is_wide = true,
       .is_left_out_if_empty = true});
  columns.push_back({.key = std::string(kJobCostColumn),
                     .column = {.title = "COST", .align = Align::kRight},
                     .cell =
                         [](const v1::Job& job, base::Instant) {
                           return job.has_cost() ? single_amount(job.cost().cost()) : std::string();
                         },
                     .rank =
                         [](const v1::Job& job, base::Instant) {
                           return static_cast<double>(amount_of(job.cost().cost()).value());
                         },
                     .is_wide = true,
                     .is_left_out_if_empty = true});
  for (SpecColumn& spec : spec_columns()) {
    columns.push_back({.key = as_word(spec.title),
                       .column = {spec.title},
                       .cell = std::move(spec.cell),
                       .is_wide = true});
  }
  columns.push_back(
      {.key = "reason",
       .column = {.title = "PLACE OR REASON", .cut_to = 28, .wraps = true},
       .cell = [](const v1::Job& job, base::Instant) { return place_or_reason(job); }});
  return columns;
}

std::vector<JobColumn> job_columns(std::initializer_list<std::string_view> keys) {
  std::vector<JobColumn> all = job_columns();
  std::vector<JobColumn> columns;
  for (const std::string_view key : keys) {
    const auto found = std::ranges::find(all, key, &JobColumn::key);
    CHECK(found != all.end());
    columns.push_back(std::move(*found));
  }
  return columns;
}

}  // namespace gpu_platform::cli
