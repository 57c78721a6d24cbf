#include "cli/text/plan_text.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "cli/text/end_advice.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/prediction_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"
#include "cli/words/job_options.h"
#include "client/follow.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kKeyWidth = 17;

// The lines of a page.
class PlanPage {
 public:
  explicit PlanPage(const PageStyle& style) : style_(style) {}
  base::Instant now() const { return style_.now; }
  bool is_wide() const { return style_.is_wide; }
  void add(std::string_view key, const std::string& value) {
    text_ += key_line(key, value, kKeyWidth, style_.width);
  }
  void add_head(const std::string& line) { text_ += harmless(line) + "\n"; }
  std::string take() { return std::move(text_); }

 private:
  PageStyle style_;
  std::string text_;
};

using NameMap = google::protobuf::Map<std::string, std::string>;

// What people call the job: "15_5" for a member of an array.
std::string called(const std::string& id, const NameMap& names) {
  const auto found = names.find(id);
  return found == names.end() ? id : found->second;
}

std::vector<std::string> called(const TextList& ids, const NameMap& names) {
  std::vector<std::string> found;
  for (const std::string& id : ids) found.push_back(called(id, names));
  return found;
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

// Jobs of others that are not shown are counted.
std::string of_others(std::uint64_t hidden) {
  return hidden == 0 ? std::string() : counted(hidden, "job") + " of other users";
}

// "when job 1 has ended and job 2, which waits ahead, has run"
std::string after_text(const std::vector<std::string>& jobs, const std::vector<std::string>& ahead,
                       std::uint64_t hidden) {
  std::vector<std::string> running;
  std::vector<std::string> waiting;
  for (const std::string& job : jobs) {
    (std::ranges::find(ahead, job) == ahead.end() ? running : waiting).push_back(job);
  }
  std::vector<std::string> parts;
  if (!running.empty()) parts.push_back(jobs_text(running));
  if (hidden > 0) parts.push_back(of_others(hidden));
  std::string text = ", when ";
  if (!parts.empty()) {
    const bool is_one = running.size() + hidden == 1;
    text += fmt::format("{} {} ended", joined(parts, " and "), is_one ? "has" : "have");
  }
  if (waiting.empty()) return text;
  const bool is_one = waiting.size() == 1;
  return text + fmt::format("{}{}, which {} ahead, {} run", parts.empty() ? "" : " and ",
                            jobs_text(waiting), is_one ? "waits" : "wait", is_one ? "has" : "have");
}

// A start that is planned.
struct Start {
  std::optional<base::Instant> at;
  std::string place;
  std::vector<std::string> after_jobs;
  std::uint64_t hidden_after = 0;
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
  if (start.after_jobs.empty() && start.hidden_after == 0) return text;
  return text + after_text(start.after_jobs, ahead, start.hidden_after);
}

// The lines of the start by hard limits. One that is no promise says how far it can be trusted, and
// what may make it later.
void add_planned(PlanPage& page, const std::string& start, const std::string& trust,
                 bool is_promised) {
  if (start.empty()) return;
  page.add(is_promised ? "Starts by" : "Planned start", start);
  if (is_promised) return;
  page.add("Nine in ten", trust);
  page.add("May be later",
           "if a job gets a place before it, or one ahead of it starts early on GPUs that it "
           "needs");
}

std::string stopped_text(const std::vector<std::string>& jobs) {
  if (jobs.empty()) return {};
  return fmt::format("{} {}, queued again then", jobs.size() == 1 ? "job" : "jobs",
                     enumerated(jobs));
}

void add_changes(PlanPage& page,
                 const google::protobuf::RepeatedPtrField<v1::Counterfactual>& counterfactuals) {
  std::string_view key = "Starts now with";
  for (const v1::Counterfactual& each : counterfactuals) {
    page.add(key, each.option());
    key = "  or";
  }
}

std::string those_ahead(const v1::Explanation& explanation) {
  auto named = called(explanation.first_ahead(), explanation.names());
  const std::uint64_t hidden = explanation.hidden_ahead();
  const std::uint64_t shown = explanation.jobs_ahead() - std::min(hidden, explanation.jobs_ahead());
  if (shown > named.size()) named.push_back(fmt::format("{} more", shown - named.size()));
  std::string text = enumerated(named);
  if (hidden == 0) return text;
  return fmt::format("{}{}{}, which {} not shown to you", text, text.empty() ? "" : "; ",
                     of_others(hidden), hidden == 1 ? "is" : "are");
}

// In a gap, because it ends before or because it is expected to.
std::string why_it_passed(const v1::Attempt& attempt, const NameMap& names) {
  const std::string passed = called(attempt.passed(), names);
  const std::string others = passed.empty() ? "jobs ahead of it" : "job " + passed;
  const auto yields_at = time_of(attempt.yields_at());
  if (!yields_at) return fmt::format("in a gap before {}, which it does not delay", others);
  return fmt::format(
      "in a gap before {}, because it is predicted to be gone by then; else it is stopped at {}",
      others, local_time(*yields_at));
}

std::string why_it_started(const v1::Attempt& attempt, const NameMap& names) {
  switch (attempt.why()) {
    case v1::START_REASON_BACKFILL:
      return why_it_passed(attempt, names);
    case v1::START_REASON_PREEMPTED:
      return fmt::format("in the place of {}, stopped for it",
                         enumerated(called(attempt.preempted_jobs(), names)));
    case v1::START_REASON_RESERVED:
      return "in the place reserved for it";
    case v1::START_REASON_IMMEDIATE:
      return "as the first in the queue that fitted";
    default:
      return {};
  }
}

void add_end(PlanPage& page, const v1::Job& job) {
  if (const auto ended = time_of(job.ended_at())) {
    page.add("Ended", fmt::format("{} ({} ago)", local_time(*ended), age(page.now() - *ended)));
  }
  page.add("Why", result_of(job));
  page.add("Advice", advice_on_end(job));
  if (job.state() != v1::JOB_STATE_COMPLETED && job.attempt() > 0) {
    page.add("Output", "gpu-platform jobs logs " + shown_id(job));
  }
}

void add_run(PlanPage& page, const v1::Job& job, const NameMap& names) {
  if (job.attempts().empty()) return;
  const v1::Attempt& last = *job.attempts().rbegin();
  page.add("Place", place_of(last));
  page.add("Part", part_of(last));
  page.add("Doing", job.detail());
  page.add("Waited", waited(job, page.now()));
  page.add("Waited for", enumerated(called(job.forecast().after_jobs(), names)));
  page.add("Started", why_it_started(last, names));
  page.add("Predicted", start_prediction_text(job));
}

void add_wait(PlanPage& page, const v1::Explanation& explanation) {
  const v1::Job& job = explanation.job();
  const base::Instant now = page.now();
  page.add("Waits", with_local_times(job.wait_reason().text()));
  if (!job.attempts().empty()) page.add("Last attempt", result_of(*job.attempts().rbegin()));
  page.add("Ahead", those_ahead(explanation));
  const bool is_promised = job.start_guaranteed();
  const v1::PlannedStart& planned = explanation.planned_start();
  const Start start{time_of(planned.start()), place_of(planned.gpus(), planned.nodes()),
                    called(planned.after_jobs(), explanation.names()), planned.hidden_after()};
  const auto ahead = called(explanation.first_ahead(), explanation.names());
  add_planned(page, start_text(start, now, is_promised, ahead),
              trust_text(planned.trust(), start.at.value_or(now), now), is_promised);
  page.add("Predicted start", predicted_start_text(explanation.predicted_start(), now));
  if (explanation.too_many_ahead()) {
    page.add("Predicted start", "not computed: too many jobs are ahead");
  }
  add_changes(page, explanation.counterfactuals());
}

}  // namespace

std::string explanation_page(const v1::Explanation& explanation, const PageStyle& style) {
  const v1::Job& job = explanation.job();
  PlanPage page(style);
  page.add_head(
      fmt::format("job {} ({}) is {}", shown_id(job), job.spec().name(), state_name(job)));
  if (client::is_ended(job.state())) {
    add_end(page, job);
    add_run(page, job, explanation.names());
  } else if (job.wait_reason().text().empty()) {
    add_run(page, job, explanation.names());
  } else {
    add_wait(page, explanation);
  }
  page.add(
      "Predicted to run",
      predicted_run_text(explanation.has_predicted_run() ? &explanation.predicted_run() : nullptr));
  if (page.is_wide()) page.add("Accuracy", scores_text(explanation.scores()));
  return page.take();
}

std::string check_page(const v1::CheckResult& result, const PageStyle& style) {
  PlanPage page(style);
  const base::Instant now = style.now;
  const std::string place = place_of(result.gpus(), result.nodes());
  const auto add_notes = [&] {
    for (const std::string& note : result.notes()) page.add("Note", with_option_name(note));
  };
  const std::string array =
      result.members() == 0 ? ""
                            : fmt::format("{} jobs, of which this is the first", result.members());
  if (result.starts_now()) {
    page.add_head(place.empty() ? "starts now" : "starts now on " + place);
    page.add("Array", array);
    add_notes();
    return page.take();
  }
  page.add_head(result.never() ? "would never run" : "would wait");
  for (const std::string& reason : result.reasons()) {
    page.add("Why", with_local_times(with_option_name(reason)));
  }
  page.add("Array", array);
  add_notes();
  const Start start{time_of(result.estimated_start()), place,
                    called(result.after_jobs(), result.names()), result.hidden_after()};
  add_planned(page, start_text(start, now, false, {}),
              trust_text(result.estimated_start_trust(), start.at.value_or(now), now), false);
  page.add("By stopping", stopped_text(called(result.stopped_jobs(), result.names())));
  page.add("Predicted start", predicted_start_text(result.predicted_start(), now));
  page.add("Predicted to run",
           predicted_run_text(result.has_predicted_run() ? &result.predicted_run() : nullptr));
  add_changes(page, result.counterfactuals());
  return page.take();
}

}  // namespace gpu_platform::cli
