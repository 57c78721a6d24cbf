#include "cli/plan_text.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "cli/job_text.h"
#include "cli/message_text.h"
#include "cli/prediction_text.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

std::string line(std::string_view key, const std::string& value) {
  return value.empty() ? std::string() : fmt::format("{:<17}{}\n", key, harmless(value));
}

std::string enumerated(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string jobs_text(const std::vector<std::string>& jobs) {
  return fmt::format("{} {}", jobs.size() == 1 ? "job" : "jobs", enumerated(jobs));
}

// "when job 1 has ended and job 2, which waits ahead, has run"
std::string after_text(const std::vector<std::string>& jobs,
                       const std::vector<std::string>& ahead) {
  std::vector<std::string> running;
  std::vector<std::string> waiting;
  for (const std::string& job : jobs) {
    (std::ranges::find(ahead, job) == ahead.end() ? running : waiting).push_back(job);
  }
  std::string text = ", when ";
  if (!running.empty()) {
    text += fmt::format("{} {} ended", jobs_text(running), running.size() == 1 ? "has" : "have");
  }
  if (waiting.empty()) return text;
  const bool is_one = waiting.size() == 1;
  return text + fmt::format("{}{}, which {} ahead, {} run", running.empty() ? "" : " and ",
                            jobs_text(waiting), is_one ? "waits" : "wait", is_one ? "has" : "have");
}

// A start that is planned.
struct Start {
  std::optional<base::Instant> at;
  std::string place;
  std::vector<std::string> after_jobs;
};

// "2026-07-01 14:05:12 +0000 (in 2h05m) on dgx-1:0-1, when jobs 7 and 9 have ended". `ahead`: the
// waiting jobs before it, as far as they are named.
std::string start_text(const Start& start, base::Instant now, bool is_promised,
                       const std::vector<std::string>& ahead) {
  if (!start.at) return {};
  std::string text = *start.at <= now ? std::string("any moment")
                                      : fmt::format("{}{} (in {})", is_promised ? "" : "about ",
                                                    local_time(*start.at), age(*start.at - now));
  if (!start.place.empty()) text += " on " + start.place;
  return start.after_jobs.empty() ? text : text + after_text(start.after_jobs, ahead);
}

// The lines of the start by hard limits. One that is no promise says how far it can be trusted, and
// what may make it later.
std::string planned_lines(const std::string& start, const std::string& trust, bool is_promised) {
  if (start.empty() || is_promised) return line("Starts by", start);
  return line("Planned start", start) + line("Nine in ten", trust) +
         line("May be later",
              "if a job comes to stand before it, or one ahead of it starts early on "
              "GPUs that it counts on");
}

std::string stopped_text(const std::vector<std::string>& jobs) {
  if (jobs.empty()) return {};
  return fmt::format("{} {}, queued again then", jobs.size() == 1 ? "job" : "jobs",
                     enumerated(jobs));
}

std::string would_start_with(
    const google::protobuf::RepeatedPtrField<v1::Counterfactual>& counterfactuals) {
  std::string lines;
  std::string_view key = "Starts now with";
  for (const v1::Counterfactual& each : counterfactuals) {
    lines += line(key, each.option());
    key = "  or";
  }
  return lines;
}

std::string those_ahead(const v1::Explanation& explanation) {
  auto named = texts_of(explanation.first_ahead());
  if (explanation.jobs_ahead() > named.size()) {
    named.push_back(fmt::format("{} more", explanation.jobs_ahead() - named.size()));
  }
  return enumerated(named);
}

// In a gap, because it ends before or because it is expected to.
std::string why_it_passed(const v1::Attempt& attempt) {
  const std::string& passed = attempt.passed();
  const std::string whom = passed.empty() ? "jobs ahead of it" : "job " + passed;
  const auto yields_at = time_of(attempt.yields_at());
  if (!yields_at) return fmt::format("in a gap before {}, which it does not delay", whom);
  return fmt::format(
      "in a gap before {}, because it is predicted to be gone by then; else it is stopped at {}",
      whom, local_time(*yields_at));
}

std::string why_it_started(const v1::Attempt& attempt) {
  switch (attempt.why()) {
    case v1::START_REASON_BACKFILL:
      return why_it_passed(attempt);
    case v1::START_REASON_PREEMPTED:
      return fmt::format("in the place of {}, stopped for it",
                         enumerated(texts_of(attempt.preempted_jobs())));
    case v1::START_REASON_RESERVED:
      return "in the place reserved for it";
    case v1::START_REASON_IMMEDIATE:
      return "as the first in the queue that fitted";
    default:
      return {};
  }
}

std::string running_lines(const v1::Job& job, base::Instant now) {
  if (job.attempts().empty()) return {};
  const v1::Attempt& last = *job.attempts().rbegin();
  std::string lines = line("Place", place_of(last));
  lines += line("Doing", job.detail());
  lines += line("Waited", waited(job, now));
  lines += line("Waited for", enumerated(texts_of(job.forecast().after_jobs())));
  lines += line("Started", why_it_started(last));
  return lines + line("Predicted", start_prediction_text(job));
}

}  // namespace

std::string explanation_page(const v1::Explanation& explanation, base::Instant now) {
  const v1::Job& job = explanation.job();
  std::string page =
      fmt::format("job {} ({}) is {}\n", job.id(), harmless(job.spec().name()), state_name(job));
  const std::string tail =
      line("Predicted to run",
           predicted_run_text(explanation.has_predicted_run() ? &explanation.predicted_run()
                                                              : nullptr)) +
      line("Past predictions", scores_text(explanation.scores()));
  const std::string& reason = job.wait_reason().text();
  if (reason.empty()) return page + running_lines(job, now) + tail;
  page += line("Waits", reason);
  if (!job.attempts().empty()) page += line("Last attempt", result_of(*job.attempts().rbegin()));
  page += line("Ahead", those_ahead(explanation));
  const bool is_promised = job.start_guaranteed();
  const v1::PlannedStart& planned = explanation.planned_start();
  const Start start{time_of(planned.start()), place_of(planned.gpus(), planned.nodes()),
                    texts_of(planned.after_jobs())};
  page += planned_lines(start_text(start, now, is_promised, texts_of(explanation.first_ahead())),
                        trust_text(planned.trust(), start.at.value_or(now), now), is_promised);
  page += line("Predicted start", predicted_start_text(explanation.predicted_start(), now));
  if (explanation.too_many_ahead()) {
    page += line("Predicted start", "not computed: too many jobs are ahead");
  }
  return page + would_start_with(explanation.counterfactuals()) + tail;
}

std::string check_page(const v1::CheckResult& result, base::Instant now) {
  const std::string place = place_of(result.gpus(), result.nodes());
  const std::string array =
      result.members() == 0
          ? ""
          : line("Array", fmt::format("{} jobs, of which this is the first", result.members()));
  if (result.starts_now()) {
    return (place.empty() ? "starts now\n" : fmt::format("starts now on {}\n", harmless(place))) +
           array;
  }
  std::string page = result.never() ? "would never run\n" : "would wait\n";
  for (const std::string& reason : result.reasons()) page += line("Why", reason);
  page += array;
  const Start start{time_of(result.estimated_start()), place, texts_of(result.after_jobs())};
  page +=
      planned_lines(start_text(start, now, false, {}),
                    trust_text(result.estimated_start_trust(), start.at.value_or(now), now), false);
  page += line("By stopping", stopped_text(texts_of(result.stopped_jobs())));
  page += line("Predicted start", predicted_start_text(result.predicted_start(), now));
  page += line("Predicted to run",
               predicted_run_text(result.has_predicted_run() ? &result.predicted_run() : nullptr));
  return page + would_start_with(result.counterfactuals());
}

}  // namespace gpu_platform::cli
