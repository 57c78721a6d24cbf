#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "controller/snapshot.h"
#include "model/job_spec.h"
#include "scheduling/node_shape.h"
#include "simulation/scenarios/runner.h"
#include "views/explanation.h"
#include "views/planned_starts.h"
#include "views/wait_explainer.h"

// The statements that begin with "expect".

namespace gpu_platform::simulation {

namespace {

base::Status differs(std::string_view what, std::string_view expected, std::string_view found) {
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format("expected {} {}, found {}", what, expected, found.empty() ? "none" : found));
}

// Compares where the option was given; letters' case does not count.
base::Status compare(const Statement& statement, std::string_view name, std::string_view found) {
  const std::string* expected = option(statement, name);
  if (expected == nullptr || base::to_lower(*expected) == base::to_lower(found)) return {};
  return differs(name, *expected, base::to_lower(found));
}

template <class Number>
std::string shown(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : std::string("none");
}

std::string gpus_of(const model::Attempt& attempt) {
  std::string text;
  for (const auto& part : attempt.allocation.nodes) {
    for (const auto& grant : part.grants) {
      text += fmt::format("{}{}", text.empty() ? "" : ",", grant.gpu_index);
    }
  }
  return text;
}

std::string seconds_of(base::Duration duration) {
  return fmt::format("{}", duration.value() / base::seconds(1).value());
}

std::string since_start(base::Instant at) {
  return at.is_set() ? seconds_of(at - kStart) : std::string("none");
}

std::string_view level_of(const model::Attempt& attempt) {
  constexpr std::string_view kNames[model::kPlacementLevels] = {"unknown", "numa_node", "socket",
                                                                "across_sockets"};
  return kNames[static_cast<std::size_t>(attempt.allocation.nodes.front().level)];
}

}  // namespace

base::Status ScenarioRunner::expect_start(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  for (const std::string& name : parts_of(statement.arguments[1])) TRY(find_node(name));
  if (job.attempts.empty())
    return differs("a start, job", "started", base::to_lower(to_string(job.state)));
  std::size_t number = job.attempts.size();
  TRY(set_count(statement, "attempt", 1, 1000, number));
  if (number != job.attempts.size()) {
    return differs("attempt", fmt::format("{}", number), fmt::format("{}", job.attempts.size()));
  }
  const model::Attempt& attempt = job.attempts.back();
  if (!model::is_active(job.state)) {
    return differs("state", "starting or running", base::to_lower(to_string(job.state)));
  }
  std::vector<std::string> names;
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    names.push_back(controller_->core().state().nodes.find(part.node.value)->name);
  }
  const std::string on = fmt::format("{}", fmt::join(names, ","));
  if (on != statement.arguments[1]) return differs("a start on", statement.arguments[1], on);
  TRY(compare(statement, "limit_s", seconds_of(attempt.time_limit)));
  TRY(compare(statement, "because", to_string(attempt.why)));
  TRY(compare(statement, "level", level_of(attempt)));
  TRY(compare(statement, "preempted_jobs", names_of(attempt.preempted_jobs)));
  TRY(compare(statement, "passed", names_of({attempt.passed})));
  TRY(compare(statement, "yields_s", since_start(attempt.yields_at)));
  return compare(statement, "gpus", gpus_of(attempt));
}

std::string ScenarioRunner::names_of(const std::vector<model::JobId>& ids) const {
  std::string text;
  for (const auto& [name, job] : jobs_) {
    if (std::ranges::find(ids, job.id) == ids.end()) continue;
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

base::Status ScenarioRunner::expect_wait(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  if (!model::is_waiting(job.state) && job.state != model::JobState::kHeld) {
    return differs("job", "waiting", base::to_lower(to_string(job.state)));
  }
  views::WaitExplainer explainer(controller_->snapshot());
  const model::WaitReason reason = explainer.explain(job);
  TRY(compare(statement, "because", to_string(reason.code)));
  TRY(compare(statement, "text", model::describe(reason)));
  const std::string* behind = option(statement, "behind");
  if (behind == nullptr) return {};
  TRY_ASSIGN(const model::Job first, find_job(*behind));
  if (reason.blocked_by != first.id) {
    return differs("to be behind", *behind, fmt::format("job {}", reason.blocked_by.value));
  }
  return {};
}

// Times are seconds since the start.
base::Status ScenarioRunner::expect_prediction(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  if (!job.prediction) return differs("a prediction of", statement.arguments[0], "");
  const model::StartPrediction& prediction = *job.prediction;
  TRY(compare(statement, "by_s", since_start(prediction.by_limits)));
  TRY(compare(statement, "p50_s", since_start(prediction.p50)));
  TRY(compare(statement, "p90_s", since_start(prediction.p90)));
  TRY(compare(statement, "after", names_of(prediction.after)));
  return compare(statement, "basis", to_string(prediction.basis));
}

// Compares with the answer that a client would get now.
base::Status ScenarioRunner::expect_predicted(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  if (job.state != model::JobState::kQueued) {
    return differs("job", "queued", base::to_lower(to_string(job.state)));
  }
  views::PlanningView view(controller_->snapshot());
  const views::Explanation found =
      views::explain_waiting(view, job.id, now_, views::Effort::kThorough);
  const bool wants_none =
      option(statement, "basis") != nullptr && *option(statement, "basis") == "hard_limits";
  if (!found.predicted) return wants_none ? base::Status() : differs("a start", "expected", "");
  TRY(compare(statement, "basis", to_string(found.predicted->basis)));
  TRY(compare(statement, "p50_s", since_start(found.predicted->start.p50)));
  TRY(compare(statement, "p90_s", since_start(found.predicted->start.p90)));
  return compare(statement, "runs", fmt::format("{}", found.predicted->runs));
}

// Compares with the start that a client is shown as "Starts by".
base::Status ScenarioRunner::expect_promise(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  const auto snapshot = controller_->snapshot();
  const views::PlannedStarts planned = views::last_planned_starts(*snapshot);
  const auto own = planned.find(job.id);
  const bool is_promised = own != planned.end() && views::guaranteed_start(*snapshot) == job.id;
  return compare(statement, "by_s", is_promised ? since_start(own->second) : "none");
}

base::Status ScenarioRunner::expect_score(const Statement& statement) {
  const scheduling::PredictionScores& scores = *controller_->core().state().scores;
  for (std::size_t i = 0; i < model::kPredictionBases; ++i) {
    const auto basis = static_cast<model::PredictionBasis>(i);
    if (to_string(basis) != statement.arguments[0]) continue;
    const auto score = scores.score(basis).value_or(scheduling::PredictionScore());
    TRY(compare(statement, "starts", fmt::format("{}", score.starts)));
    TRY(compare(statement, "by_then", fmt::format("{}", score.by_then)));
    TRY(compare(statement, "p50_s", seconds_of(score.p50)));
    return compare(statement, "signed_s", seconds_of(score.p50_signed));
  }
  return base::invalid({}, "no such basis: " + statement.arguments[0]);
}

base::Status ScenarioRunner::expect_state(const Statement& statement) {
  TRY_ASSIGN(const model::Job job, find_job(statement.arguments[0]));
  const std::string& state = statement.arguments[1];
  if (base::to_lower(state) != base::to_lower(to_string(job.state))) {
    return differs("state", state, base::to_lower(to_string(job.state)));
  }
  const model::Exit exit = job.attempts.empty() ? model::Exit{} : job.attempts.back().exit;
  TRY(compare(statement, "exit", shown(exit.code)));
  TRY(compare(statement, "signal", shown(exit.signal)));
  TRY(compare(statement, "lost", to_string(exit.lost)));
  const bool is_borrowed = !job.attempts.empty() && job.attempts.back().is_borrowed;
  TRY(compare(statement, "borrowed", is_borrowed ? "yes" : "no"));
  const model::EndReason reason =
      model::is_ended(job.state) || job.attempts.empty() ? job.reason : job.attempts.back().reason;
  TRY(compare(statement, "reason", to_string(reason)));
  TRY(compare(statement, "attempts", fmt::format("{}", job.attempts.size())));
  TRY(compare(statement, "by", job.by));
  TRY(compare(statement, "team", job.spec->team.empty() ? "none" : job.spec->team));
  TRY(compare(statement, "preemptions", fmt::format("{}", job.preemptions)));
  TRY(compare(statement, "losses", fmt::format("{}", job.losses)));
  if (const std::string* other = option(statement, "stopped_for")) {
    TRY_ASSIGN(const model::Job beneficiary, find_job(*other));
    const std::string by = job.attempts.empty() ? std::string() : job.attempts.back().by;
    const std::string expected = fmt::format("job {}", beneficiary.id.value);
    if (by != expected) return differs("stopped for", expected, by);
  }
  TRY(compare(statement, "detail", job.detail));
  std::uint32_t starts = 0;
  for (const auto& [attempt, count] : jobs_.at(job.spec->name).starts) {
    if (attempt.job == job.id) starts += count;
  }
  return compare(statement, "starts", fmt::format("{}", starts));
}

base::Status ScenarioRunner::expect_answer(const Statement& statement) {
  if (!answer_.is_given) return differs("answer", statement.arguments[0], "no command before");
  std::string found = "ok";
  std::string field;
  if (!answer_.reply) {
    found = to_string(answer_.reply.error().code);
    field = answer_.reply.error().field;
  } else if (!answer_.reply->changed) {
    found = "unchanged";
  }
  if (base::to_lower(found) != base::to_lower(statement.arguments[0])) {
    return differs("answer", statement.arguments[0],
                   answer_.reply ? found
                                 : fmt::format("{} ({})", base::to_lower(found),
                                               answer_.reply.error().message));
  }
  const std::string* text = option(statement, "text");
  const std::string message = answer_.reply ? std::string() : answer_.reply.error().message;
  if (text != nullptr && message.find(*text) == std::string::npos) {
    return differs("an answer with", *text, message);
  }
  return compare(statement, "field", field);
}

base::Status ScenarioRunner::expect_changed(const Statement& statement) {
  if (!answer_.is_given || !answer_.reply)
    return differs("changed", statement.arguments[0], "no answer");
  const auto& jobs = answer_.reply->jobs;
  const auto changed = std::ranges::count_if(jobs, &model::JobOutcome::changed);
  const auto refused = std::ranges::count_if(
      jobs, [](const model::JobOutcome& outcome) { return outcome.refusal.has_value(); });
  const std::string found = fmt::format("{}", changed);
  if (found != statement.arguments[0]) return differs("changed", statement.arguments[0], found);
  return compare(statement, "refused", fmt::format("{}", refused));
}

base::Status ScenarioRunner::expect_same(const Statement& statement) {
  TRY_ASSIGN(const model::Job a, find_job(statement.arguments[0]));
  TRY_ASSIGN(const model::Job b, find_job(statement.arguments[1]));
  if (a.id == b.id) return {};
  return differs("the same job twice", "to be so",
                 fmt::format("{} and {}", a.id.value, b.id.value));
}

base::Status ScenarioRunner::expect_free(const Statement& statement) {
  TRY_ASSIGN(const model::Node* node, find_node(statement.arguments[0]));
  const auto free = std::ranges::count_if(node->gpus, &model::is_free);
  TRY(compare(statement, "gpus", fmt::format("{}", free)));
  const scheduling::FreeState left = scheduling::free_state_of(*node);
  TRY(compare(statement, "cpus", fmt::format("{}", left.cpus)));
  const base::Bytes memory = left.memory;
  base::Bytes expected = memory;
  TRY(set_size(statement, "memory", expected));
  if (expected == memory) return {};
  return differs("memory", base::written(expected), base::written(memory));
}

base::Status ScenarioRunner::expect_node(const Statement& statement) {
  TRY_ASSIGN(const model::Node* node, find_node(statement.arguments[0]));
  const std::string state = base::to_lower(to_string(node->state));
  if (state != base::to_lower(statement.arguments[1])) {
    return differs("node state", statement.arguments[1], state);
  }
  const std::string* text = option(statement, "text");
  const std::string& cause = node->cause;
  if (text == nullptr || cause.find(*text) != std::string::npos) return {};
  return differs("cause", *text, cause);
}

base::Status ScenarioRunner::expect_gpu(const Statement& statement) {
  TRY_ASSIGN(const model::Node* node, find_node(statement.arguments[0]));
  const auto index = base::parse_count(statement.arguments[1], 0, node->gpus.size() - 1);
  if (!index) return base::invalid({}, index.error().message);
  const model::GpuState state = node->gpus[*index].state;
  if (base::to_lower(to_string(state)) == base::to_lower(statement.arguments[2])) return {};
  return differs("GPU state", statement.arguments[2], base::to_lower(to_string(state)));
}

}  // namespace gpu_platform::simulation
