#include "bin/idle_watch.h"

#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "model/job.h"
#include "model/job_spec.h"

namespace gpu_platform::bin {

namespace {

std::shared_ptr<const alerts::Subject> subject_of(const model::Job& job) {
  alerts::Subject subject;
  subject.key = std::to_string(job.id.value);
  subject.labels = {{"job", model::name_of(job)}, {"user", job.spec->user}};
  if (!job.spec->team.empty()) subject.labels["team"] = job.spec->team;
  return std::make_shared<const alerts::Subject>(std::move(subject));
}

const model::Attempt* running_attempt(const controller::Snapshot& snapshot, model::AttemptId id) {
  const model::Job* const job = snapshot.jobs.find(id.job.value);
  if (job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size()) return nullptr;
  const model::Attempt& attempt = job->attempts[id.attempt - 1];
  return attempt.state == model::AttemptState::kRunning ? &attempt : nullptr;
}

// A new daemon does not know yet whether an attempt is idle: what was said before stays until the
// window is full, or the attempt works.
std::optional<std::int64_t> value_of(const telemetry::Idleness& idleness,
                                     const telemetry::IdleRule& rule) {
  if (idleness.is_idle()) return 1;
  const bool is_sure = idleness.is_known() && idleness.mean_percent(rule).has_value();
  return is_sure || idleness.uses_now(rule) ? std::optional<std::int64_t>(0) : std::nullopt;
}

}  // namespace

void IdleWatch::take_use(const telemetry::Frame& frame) {
  static const auto kUtilization =
      telemetry::metric_named(telemetry::Of::kUse, telemetry::kUseUtilization);
  for (const telemetry::Value& value : frame.values) {
    if (value.metric != kUtilization) continue;
    uses_[{frame.subject.attempt, frame.subject.uuid}] = {static_cast<std::uint32_t>(value.value),
                                                          frame.at};
  }
}

std::optional<std::uint32_t> IdleWatch::use_of(const model::Gpu& gpu,
                                               const model::GpuHolder& holder,
                                               base::Instant now) const {
  const bool is_alone = gpu.holders.size() == 1 && holder.share == base::kWholeGpu;
  if (is_alone) {
    const auto reading = current(reading_of_(gpu.info.uuid), now, oldest_);
    return reading == nullptr ? std::nullopt : reading->utilization_percent;
  }
  const auto use = uses_.find({holder.attempt, gpu.info.uuid});
  const bool is_new = use != uses_.end() && now - use->second.at <= oldest_;
  return is_new ? std::optional(use->second.percent) : std::nullopt;
}

std::map<model::AttemptId, IdleWatch::Percents> IdleWatch::uses_of_all(
    const controller::Snapshot& snapshot, base::Instant now) {
  std::map<model::AttemptId, Percents> all;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      for (const model::GpuHolder& holder : gpu.holders) {
        all[holder.attempt].push_back(use_of(gpu, holder, now));
      }
    }
  });
  return all;
}

std::vector<alerts::Fact> IdleWatch::look(const controller::Snapshot& snapshot, const Rules& rules,
                                          alerts::Moment now, std::vector<Act>& acts) {
  ++round_;
  std::vector<alerts::Fact> facts;
  for (const auto& [id, percents] : uses_of_all(snapshot, now.at)) {
    const model::Attempt* const attempt = running_attempt(snapshot, id);
    if (attempt == nullptr) continue;
    Watched& watched = watched_[id];
    watched.round = round_;
    if (watched.subject == nullptr) watched.subject = subject_of(*snapshot.jobs.find(id.job.value));
    const base::Duration age = now.at - attempt->started_at;
    watched.idleness.take(now.steady, age, percents, rules.idle);
    alerts::Fact fact{.signal = alerts::Signal::kIdleAllocation, .subject = watched.subject};
    fact.value = value_of(watched.idleness, rules.idle);
    if (watched.idleness.is_idle()) {
      fact.detail = fmt::format(
          "{} {}, {} % in {}", percents.size(), percents.size() == 1 ? "GPU" : "GPUs",
          watched.idleness.mean_percent(rules.idle).value_or(0), base::written(rules.idle.after));
    }
    facts.push_back(std::move(fact));
    act(watched, id, rules, now.steady, acts);
  }
  std::erase_if(watched_, [&](const auto& entry) { return entry.second.round != round_; });
  std::erase_if(uses_, [&](const auto& entry) { return !watched_.contains(entry.first.first); });
  return facts;
}

void IdleWatch::act(Watched& watched, model::AttemptId attempt, const Rules& rules,
                    base::Instant steady, std::vector<Act>& acts) {
  // What is not known stops the time, but does not take a warning back.
  if (!watched.idleness.is_known()) return;
  if (!watched.idleness.is_idle()) {
    watched.warned.reset();
    return;
  }
  if (rules.action == config::IdleAction::kTell) return;
  const bool stops = rules.action == config::IdleAction::kStop;
  Act next{attempt, false, watched.idleness.idle_for(steady), {}};
  if (!watched.warned) {
    watched.warned = steady;
    if (stops) next.stops_in = rules.warn_before;
    acts.push_back(next);
  } else if (stops && steady - *watched.warned >= rules.warn_before) {
    next.is_stop = true;
    acts.push_back(next);
  }
}

}  // namespace gpu_platform::bin
