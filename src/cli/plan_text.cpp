#include "cli/plan_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cli/job_text.h"
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

// "2026-07-01 14:05:12 +0000 (in 2h05m) on dgx-1:0-1, when jobs 7 and 9 have ended". `ahead`: the
// waiting jobs before it, as far as they are named.
std::string start_text(const Json& start, std::string_view when_key, base::Instant now,
                       bool is_promised, const std::vector<std::string>& ahead) {
  const auto at = time_at(start, when_key);
  if (!at) return {};
  std::string text = *at <= now ? std::string("any moment")
                                : fmt::format("{}{} (in {})", is_promised ? "" : "about ",
                                              local_time(*at), age(*at - now));
  const std::string place = place_of(start);
  if (!place.empty()) text += " on " + place;
  const auto jobs = texts_at(start, "after_jobs");
  return jobs.empty() ? text : text + after_text(jobs, ahead);
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

std::string would_start_with(const Json& object) {
  std::string lines;
  std::string_view key = "Starts now with";
  for (const Json& each : list_at(object, "counterfactuals")) {
    lines += line(key, text_at(each, "option"));
    key = "  or";
  }
  return lines;
}

std::string those_ahead(const Json& explanation) {
  const auto count = integer_at(explanation, "jobs_ahead").value_or(0);
  auto named = texts_at(explanation, "first_ahead");
  const auto more = count - static_cast<std::int64_t>(named.size());
  if (more > 0) named.push_back(fmt::format("{} more", more));
  return enumerated(named);
}

// In a gap, because it ends before or because it is expected to.
std::string why_it_passed(const Json& attempt) {
  const std::string passed = text_at(attempt, "passed");
  const std::string whom = passed.empty() ? "jobs ahead of it" : "job " + passed;
  const auto yields_at = time_at(attempt, "yields_at");
  if (!yields_at) return fmt::format("in a gap before {}, which it does not delay", whom);
  return fmt::format(
      "in a gap before {}, because it is predicted to be gone by then; else it is stopped at {}",
      whom, local_time(*yields_at));
}

std::string why_it_started(const Json& attempt) {
  const std::string why = text_at(attempt, "why");
  if (why == "BACKFILL") return why_it_passed(attempt);
  if (why == "PREEMPTED") {
    return fmt::format("in the place of {}, stopped for it",
                       enumerated(texts_at(attempt, "preempted_jobs")));
  }
  if (why == "RESERVED") return "in the place reserved for it";
  if (why == "IMMEDIATE") return "as the first in the queue that fitted";
  return {};
}

std::string running_lines(const Json& job, base::Instant now) {
  const Json& attempts = list_at(job, "attempts");
  if (attempts.empty()) return {};
  const Json& last = attempts.back();
  std::string lines = line("Place", place_of(last));
  lines += line("Doing", text_at(job, "detail"));
  lines += line("Waited", waited(job, now));
  lines += line("Waited for", enumerated(texts_at(object_at(job, "forecast"), "after_jobs")));
  lines += line("Started", why_it_started(last));
  return lines + line("Predicted", start_prediction_text(job));
}

}  // namespace

std::string explanation_page(const Json& explanation, base::Instant now) {
  const Json& job = object_at(explanation, "job");
  std::string page = fmt::format("job {} ({}) is {}\n", text_at(job, "id"),
                                 harmless(text_at(spec_of(job), "name")), text_at(job, "state"));
  const std::string reason = text_at(object_at(job, "wait_reason"), "text");
  const std::string tail =
      line("Predicted to run", predicted_run_text(object_at(explanation, "predicted_run"))) +
      line("Past predictions", scores_text(list_at(explanation, "scores")));
  if (reason.empty()) return page + running_lines(job, now) + tail;
  page += line("Waits", reason);
  const Json& attempts = list_at(job, "attempts");
  if (!attempts.empty()) page += line("Last attempt", result_of(attempts.back()));
  page += line("Ahead", those_ahead(explanation));
  const bool is_promised = flag_at(job, "start_guaranteed");
  const Json& planned = object_at(explanation, "planned_start");
  page += planned_lines(
      start_text(planned, "start", now, is_promised, texts_at(explanation, "first_ahead")),
      trust_text(object_at(planned, "trust"), time_at(planned, "start").value_or(now), now),
      is_promised);
  page +=
      line("Predicted start", predicted_start_text(object_at(explanation, "predicted_start"), now));
  if (flag_at(explanation, "too_many_ahead")) {
    page += line("Predicted start", "not computed: too many jobs are ahead");
  }
  return page + would_start_with(explanation) + tail;
}

std::string check_page(const Json& result, base::Instant now) {
  const auto members = integer_at(result, "members").value_or(0);
  const std::string array =
      members == 0 ? ""
                   : line("Array", fmt::format("{} jobs, of which this is the first", members));
  if (flag_at(result, "starts_now")) {
    const std::string place = place_of(result);
    return (place.empty() ? "starts now\n" : fmt::format("starts now on {}\n", harmless(place))) +
           array;
  }
  std::string page = flag_at(result, "never") ? "would never run\n" : "would wait\n";
  for (const std::string& reason : texts_at(result, "reasons")) page += line("Why", reason);
  page += array;
  page += planned_lines(start_text(result, "estimated_start", now, false, {}),
                        trust_text(object_at(result, "estimated_start_trust"),
                                   time_at(result, "estimated_start").value_or(now), now),
                        false);
  page += line("By stopping", stopped_text(texts_at(result, "stopped_jobs")));
  page += line("Predicted start", predicted_start_text(object_at(result, "predicted_start"), now));
  page += line("Predicted to run", predicted_run_text(object_at(result, "predicted_run")));
  return page + would_start_with(result);
}

}  // namespace gpu_platform::cli
