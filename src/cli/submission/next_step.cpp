#include "cli/submission/next_step.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/text/job_text.h"
#include "cli/text/text.h"
#include "client/follow.h"

namespace gpu_platform::cli {

namespace {

constexpr int kTries = 5;
constexpr base::Duration kBetweenPlans = base::milliseconds(100);

std::string text_of_waiting(const v1::Explanation& explanation, base::Instant now) {
  const v1::Job& job = explanation.job();
  if (job.state() == v1::JOB_STATE_HELD) {
    return fmt::format("it is held; 'gpu-platform jobs release {}' releases it", job.id());
  }
  const std::string& reason = job.wait_reason().text();
  if (reason.empty()) return {};
  std::string text = "it waits: " + reason;
  // A shorter time costs a person less than fewer GPUs; else the daemon names the smallest change
  // first.
  const auto& changes = explanation.counterfactuals();
  if (!changes.empty()) {
    const auto shorter = std::ranges::find(changes, "time_limit", &v1::Counterfactual::change);
    const v1::Counterfactual& change = shorter == changes.end() ? changes[0] : *shorter;
    return fmt::format("{}; with {} it starts now", text, change.option());
  }
  const auto planned = time_of(explanation.planned_start().start());
  if (planned && *planned > now) text += fmt::format("; planned start in {}", age(*planned - now));
  return text;
}

}  // namespace

std::string next_step_text(const v1::Explanation& explanation, base::Instant now) {
  const v1::Job& job = explanation.job();
  if (client::is_ended(job.state())) return {};
  switch (job.state()) {
    case v1::JOB_STATE_HELD:
    case v1::JOB_STATE_PENDING:
    case v1::JOB_STATE_QUEUED:
      return text_of_waiting(explanation, now);
    default:
      break;
  }
  if (job.attempts().empty()) return {};
  const std::string place = place_of(*job.attempts().rbegin());
  return place.empty() ? std::string("it starts now") : "it starts on " + place;
}

bool is_told_next_step(const ProcessEnvironment& process_environment) {
  return ::isatty(process_environment.out_fd) == 1 && ::isatty(process_environment.err_fd) == 1;
}

std::string next_step_of(Console& console, Client& client, const std::string& id) {
  const ProcessEnvironment& process_environment = console.process_environment();
  const std::string target = fmt::format("/v1/jobs/{}/explanation", base::percent_encoded(id));
  for (int i = 0; i < kTries; ++i) {
    const auto explanation = client.ask<v1::Explanation>(target, "an explanation");
    if (!explanation) return {};
    std::string text = next_step_text(*explanation, process_environment.now());
    if (!text.empty() || client::is_ended(explanation->job().state())) return text;
    process_environment.pause(kBetweenPlans, -1);
  }
  return {};
}

}  // namespace gpu_platform::cli
