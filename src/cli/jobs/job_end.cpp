#include "cli/jobs/job_end.h"

#include <fmt/format.h>

#include "base/units.h"
#include "cli/client_names.h"
#include "cli/text/end_advice.h"
#include "cli/text/job_text.h"
#include "cli/text/money_text.h"
#include "cli/text/usage_text.h"

namespace gpu_platform::cli {

namespace {

// The use of resources is shown at the end of jobs that ran at least this long.
constexpr base::Duration kWorthTelling = base::minutes(1);
// The cost is shown of these, and of jobs that cost at least this.
constexpr base::MicroUsd kWorthPaying{10'000};

}  // namespace

std::string describe_end(const v1::Job& job) {
  std::string line =
      fmt::format("job {} {}", shown_id(job), name_at(job, v1::Job::kStateFieldNumber));
  if (job.has_exit_code()) {
    line += fmt::format(": exit code {}", job.exit_code());
  } else if (!job.signal().empty()) {
    line += fmt::format(": signal {}", job.signal());
  } else if (const std::string lost = name_at(job, v1::Job::kLostFieldNumber); !lost.empty()) {
    line += fmt::format(": lost, {}", lost);
  }
  if (const std::string reason = name_at(job, v1::Job::kReasonFieldNumber); !reason.empty()) {
    const std::string& by = job.ended_by();
    line += fmt::format(" ({}{}{})", reason, by.empty() ? "" : " ", by);
  }
  if (!job.detail().empty()) line += ": " + job.detail();
  return line;
}

int tell_end(Console& console, const Called<std::optional<client::EndedJob>>& ended) {
  if (!ended) return client::as_run(report(console, ended.error(), false));
  const v1::Job& job = (*ended)->job;
  if (!job.has_exit_code() || !name_at(job, v1::Job::kReasonFieldNumber).empty()) {
    console.note(describe_end(job));
    if (const std::string advice = advice_on_end(job); !advice.empty()) console.note(advice);
  }
  // A line tells of a job that people waited for, or paid for; a quick one is left alone.
  bool is_worth_telling = amount_of(job.cost().cost()) >= kWorthPaying;
  const auto started = time_of(job.started_at());
  const auto ended_at = time_of(job.ended_at());
  if (started && ended_at && *ended_at - *started >= kWorthTelling) {
    if (const std::string used = efficiency_of(job); !used.empty()) console.note("used " + used);
    is_worth_telling = true;
  }
  if (is_worth_telling) {
    if (const std::string cost = cost_of(job); !cost.empty()) console.note("cost " + cost);
  }
  return client::exit_code_of_job(job);
}

}  // namespace gpu_platform::cli
