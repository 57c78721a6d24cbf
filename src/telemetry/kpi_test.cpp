#include "telemetry/kpi.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/prng.h"

namespace gpu_platform::telemetry {
namespace {

using model::EndReason;
using model::JobState;

constexpr std::int64_t kHour = 3600;

base::Instant at(std::int64_t seconds) {
  return base::Instant() + base::seconds(1'000'000 + seconds);
}

KpiQuestion window(std::int64_t from, std::int64_t to) {
  return {.from = at(from), .to = at(to)};
}

// A run of 30 minutes and more of two GPUs; times in seconds.
model::Attempt attempt_of(std::int64_t requested, std::int64_t started, std::int64_t ended,
                          base::GpuShare share = base::kWholeGpu) {
  model::Attempt attempt;
  attempt.number = 1;
  attempt.requested_at = at(requested);
  attempt.started_at = at(started);
  attempt.ended_at = at(ended);
  attempt.released_at = at(ended);
  attempt.exit.code = 0;
  model::NodeAllocation node;
  node.node = model::NodeId(1);
  node.grants.push_back({.gpu_index = 0, .share = share});
  if (share == base::kWholeGpu) node.grants.push_back({.gpu_index = 1, .share = share});
  attempt.allocation.nodes.push_back(node);
  return attempt;
}

struct Of {
  std::string team = "vision";
  model::JobKind kind = model::JobKind::kTraining;
};

// A job that ended with its last attempt.
model::Job job_of(std::uint64_t id, std::int64_t submitted, std::vector<model::Attempt> attempts,
                  const Of& of = {}) {
  model::Job job;
  job.id = model::JobId(id);
  model::JobSpec spec;
  spec.user = "ada";
  spec.team = of.team;
  spec.kind = of.kind;
  job.spec = std::make_shared<const model::JobSpec>(spec);
  job.submitted_at = at(submitted);
  job.eligible_at = at(submitted);
  job.state = JobState::kCompleted;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    attempts[i].number = static_cast<std::uint32_t>(i + 1);
  }
  if (!attempts.empty()) job.ended_at = attempts.back().ended_at;
  job.attempts = std::move(attempts);
  return job;
}

model::Job ended_by(model::Job job, JobState state, EndReason reason) {
  job.state = state;
  job.reason = reason;
  if (!job.attempts.empty()) job.attempts.back().reason = reason;
  return job;
}

// Two GPUs with this utilization in each reading, of the share of the readings that were expected.
UseSummary use_of(const model::Attempt& attempt, std::int64_t percent, int readings, int expected) {
  UseSummary use;
  use.from = attempt.started_at;
  use.to = attempt.ended_at;
  use.interval = base::Duration(use.duration().value() / expected);
  use.is_over = true;
  for (std::uint32_t i = 0; i < 2; ++i) {
    GpuUse& gpu = use.gpus.emplace_back();
    gpu.index = i;
    gpu.memory = base::Bytes(1000);
    gpu.samples = static_cast<std::uint64_t>(readings);
    for (int k = 0; k < readings; ++k) {
      gpu.levels[use_level("utilization_percent")].add(percent);
      gpu.levels[use_level("memory_used_bytes")].add(250);
    }
  }
  return use;
}

KpiFigures figures_of(const KpiQuestion& question, const std::vector<model::Job>& jobs,
                      const KpiRuns::UseOf& uses = {}) {
  KpiRuns runs;
  for (const model::Job& job : jobs) runs.add(job, uses);
  KpiSums sums(question);
  sums.add(runs);
  return sums.figures();
}

std::uint64_t jobs_by(const KpiFigures& figures, KpiCause cause) {
  return figures.jobs[static_cast<std::size_t>(cause)];
}
std::uint64_t attempts_by(const KpiFigures& figures, KpiCause cause) {
  return figures.attempts[static_cast<std::size_t>(cause)];
}

TEST(Kpi, TellsTimesOfAJobFromSubmissionToEnd) {
  const auto figures = figures_of(window(0, 100), {job_of(1, 10, {attempt_of(20, 24, 90)})});
  ASSERT_EQ(figures.wait.count(), 1U);
  EXPECT_DOUBLE_EQ(figures.wait.mean_seconds(), 10);
  ASSERT_EQ(figures.allocation.count(), 1U);
  EXPECT_DOUBLE_EQ(figures.allocation.mean_seconds(), 4);
  ASSERT_EQ(figures.completion.count(), 1U);
  EXPECT_DOUBLE_EQ(figures.completion.mean_seconds(), 80);
  EXPECT_DOUBLE_EQ(figures.completion.percentile_seconds(0.95), 80)
      << "the only value is every percentile";
}

TEST(Kpi, TheSecondWaitOfARequeuedJobDoesNotReplaceItsFirst) {
  model::Job job = job_of(1, 10, {attempt_of(30, 32, 50)});
  job.state = JobState::kQueued;
  job.eligible_at = at(50);
  job.ended_at = {};
  const auto figures = figures_of(window(0, 100), {job});
  ASSERT_EQ(figures.wait.count(), 1U);
  EXPECT_DOUBLE_EQ(figures.wait.mean_seconds(), 20);
}

TEST(Kpi, CountsEachThingInTheWindowInWhichItHappened) {
  const model::Job job = job_of(1, 0, {attempt_of(100, 110, 300)});
  const auto first = figures_of(window(0, 105), {job});
  EXPECT_EQ(first.wait.count(), 1U);
  EXPECT_EQ(first.allocation.count(), 0U);
  EXPECT_EQ(first.all.ended, 0U);
  const auto second = figures_of(window(105, 300), {job});
  EXPECT_EQ(second.wait.count(), 0U);
  EXPECT_EQ(second.allocation.count(), 1U);
  EXPECT_EQ(second.all.ended, 0U) << "the end of the window does not belong to it";
  const auto third = figures_of(window(300, 400), {job});
  EXPECT_EQ(third.all.completed, 1U);
  EXPECT_EQ(third.all.gpus.held, 0);
}

TEST(Kpi, AWindowCutsTheGpuTimeOfAJob) {
  const model::Job job = job_of(1, 0, {attempt_of(0, 0, 4 * kHour)});
  EXPECT_DOUBLE_EQ(figures_of(window(-kHour, 9 * kHour), {job}).all.gpus.hours(), 8);
  EXPECT_DOUBLE_EQ(figures_of(window(kHour, 9 * kHour), {job}).all.gpus.hours(), 6);
  EXPECT_DOUBLE_EQ(figures_of(window(kHour, 2 * kHour), {job}).all.gpus.hours(), 2);
}

TEST(Kpi, AnAttemptThatRunsHoldsItsGpusToTheEndOfTheWindow) {
  model::Job job = job_of(1, 0, {attempt_of(0, 0, 0)});
  job.state = JobState::kRunning;
  job.ended_at = {};
  job.attempts.back().ended_at = {};
  job.attempts.back().released_at = {};
  const auto figures = figures_of(window(kHour, 3 * kHour), {job});
  EXPECT_DOUBLE_EQ(figures.all.gpus.hours(), 4);
  EXPECT_EQ(figures.all.ended, 0U);
}

// 2 GPUs × 1 h at 90 %, all read; 2 GPUs × 3 h at 30 %, of which a third was read.
TEST(Kpi, WeighsUtilizationByTheGpuTimeThatWasRead) {
  const model::Job busy = job_of(1, 0, {attempt_of(0, 0, kHour)});
  const model::Job calm =
      job_of(2, 0, {attempt_of(0, 0, 3 * kHour)}, {"nlp", model::JobKind::kInference});
  const auto uses = [&](model::AttemptId id) -> std::optional<UseSummary> {
    return id.job == busy.id ? use_of(busy.attempts[0], 90, 6, 6)
                             : use_of(calm.attempts[0], 30, 2, 6);
  };
  const auto figures = figures_of(window(0, 9 * kHour), {busy, calm}, uses);
  EXPECT_DOUBLE_EQ(figures.all.gpus.hours(), 8);
  EXPECT_NEAR(figures.all.gpus.measured_percent().value(), 50, 1e-3) << "4 of 8 GPU-hours";
  EXPECT_NEAR(figures.all.gpus.utilization_percent().value(), 60, 1e-3);
  EXPECT_NEAR(figures.all.gpus.memory_percent().value(), 25, 1e-3);
  const auto& kinds = figures.kinds;
  EXPECT_NEAR(
      kinds[static_cast<std::size_t>(model::JobKind::kTraining)].utilization_percent().value(), 90,
      1e-3);
  EXPECT_NEAR(
      kinds[static_cast<std::size_t>(model::JobKind::kInference)].utilization_percent().value(), 30,
      1e-3);
  EXPECT_FALSE(kinds[static_cast<std::size_t>(model::JobKind::kInteractive)].utilization_percent());
}

TEST(Kpi, WhatWasNotReadIsAbsentAndNotZero) {
  const auto figures = figures_of(window(0, kHour), {job_of(1, 0, {attempt_of(0, 0, kHour)})});
  EXPECT_EQ(figures.all.gpus.measured_percent(), 0.0);
  EXPECT_FALSE(figures.all.gpus.utilization_percent());
  EXPECT_FALSE(figures.all.gpus.memory_percent());
  EXPECT_FALSE(figures_of(window(0, kHour), {}).all.gpus.measured_percent());
}

TEST(Kpi, APartOfAGpuCountsAsAPartAndIsMeasuredByIt) {
  const base::GpuShare half(base::kWholeGpu.value() / 2);
  const model::Job job = job_of(1, 0, {attempt_of(0, 0, 2 * kHour, half)});
  const auto uses = [&](model::AttemptId) -> std::optional<UseSummary> {
    UseSummary use = use_of(job.attempts[0], 40, 6, 6);
    use.gpus.pop_back();
    return use;
  };
  const auto figures = figures_of(window(0, 2 * kHour), {job}, uses);
  EXPECT_DOUBLE_EQ(figures.all.gpus.hours(), 1);
  EXPECT_NEAR(figures.all.gpus.utilization_percent().value(), 80, 1e-3)
      << "40 % of the GPU, which is 80 % of its half";
}

TEST(Kpi, TellsEndsApartByTheirCause) {
  const auto ended = [](std::uint64_t id, JobState state, EndReason reason) {
    return ended_by(job_of(id, 0, {attempt_of(0, 0, 60)}), state, reason);
  };
  const auto figures =
      figures_of(window(0, 100), {job_of(1, 0, {attempt_of(0, 0, 60)}),
                                  ended(2, JobState::kFailed, EndReason::kOutOfMemory),
                                  ended(3, JobState::kFailed, EndReason::kGpuFault),
                                  ended(4, JobState::kTimedOut, EndReason::kTimeLimit),
                                  ended(5, JobState::kCancelled, EndReason::kCancelledBy),
                                  ended(6, JobState::kFailed, EndReason::kNodeLost),
                                  ended(7, JobState::kFailed, EndReason::kPrologFailed)});
  EXPECT_EQ(figures.all.ended, 7U);
  EXPECT_EQ(figures.all.completed, 1U);
  EXPECT_EQ(figures.all.cancelled, 1U);
  EXPECT_EQ(figures.all.failed(), 5U);
  for (const KpiCause cause : {KpiCause::kApplication, KpiCause::kHardware, KpiCause::kTimeout,
                               KpiCause::kCancelled, KpiCause::kNodeLoss, KpiCause::kPlatform}) {
    EXPECT_EQ(jobs_by(figures, cause), 1U) << to_string(cause);
    EXPECT_EQ(attempts_by(figures, cause), 1U) << to_string(cause);
  }
  EXPECT_EQ(jobs_by(figures, KpiCause::kPreempted), 0U);
}

TEST(Kpi, AJobThatNeverStartedHasAnEndAndNoGpuTime) {
  model::Job job = ended_by(job_of(1, 0, {}), JobState::kCancelled, EndReason::kCancelledBy);
  job.ended_at = at(50);
  const auto figures = figures_of(window(0, 100), {job});
  EXPECT_EQ(figures.all.cancelled, 1U);
  EXPECT_EQ(figures.wait.count(), 0U);
  EXPECT_EQ(attempts_by(figures, KpiCause::kCancelled), 0U);
}

// Preempted once and completed; preempted once and failed; preempted once and cancelled.
TEST(Kpi, RecoveryIsTheShareOfInterruptedJobsThatCompleted) {
  const auto twice = [](std::uint64_t id) {
    model::Attempt first = attempt_of(0, 0, 30);
    first.reason = EndReason::kPreempted;
    return job_of(id, 0, {first, attempt_of(40, 40, 80)});
  };
  const auto figures =
      figures_of(window(0, 100), {twice(1), ended_by(twice(2), JobState::kFailed, EndReason::kHung),
                                  ended_by(twice(3), JobState::kCancelled, EndReason::kKilledBy),
                                  job_of(4, 0, {attempt_of(0, 0, 50)})});
  EXPECT_EQ(figures.interrupted, 2U);
  EXPECT_EQ(figures.recovered, 1U);
  EXPECT_EQ(attempts_by(figures, KpiCause::kPreempted), 3U);
  EXPECT_EQ(figures.wait.count(), 4U) << "of first attempts alone";
  EXPECT_EQ(figures.allocation.count(), 7U);
}

TEST(Kpi, NamesIdleAttemptsTheLongestFirst) {
  const model::Job idle = job_of(1, 0, {attempt_of(0, 0, kHour)});
  const model::Job longer = job_of(2, 0, {attempt_of(0, 0, 2 * kHour)});
  const model::Job busy = job_of(3, 0, {attempt_of(0, 0, 9 * kHour)});
  const model::Job brief = job_of(4, 0, {attempt_of(0, 0, 60)});
  const model::Job unknown = job_of(5, 0, {attempt_of(0, 0, 9 * kHour)});
  const std::map<model::JobId, UseSummary> uses = {
      {idle.id, use_of(idle.attempts[0], 2, 6, 6)},
      {longer.id, use_of(longer.attempts[0], 4, 6, 6)},
      {busy.id, use_of(busy.attempts[0], 5, 6, 6)},
      {brief.id, use_of(brief.attempts[0], 0, 6, 6)},
      {unknown.id, use_of(unknown.attempts[0], 0, 2, 6)},
  };
  const auto of = [&](model::AttemptId id) { return std::optional(uses.at(id.job)); };
  KpiQuestion question = window(0, 9 * kHour);
  const std::vector<model::Job> jobs = {idle, longer, busy, brief, unknown};
  const auto figures = figures_of(question, jobs, of);
  ASSERT_EQ(figures.idle.size(), 2U);
  EXPECT_EQ(figures.idle[0].job, longer.id);
  EXPECT_EQ(figures.idle[1].job, idle.id);
  EXPECT_EQ(figures.idle[1].user, "ada");
  EXPECT_EQ(figures.idle[1].since, at(0));
  EXPECT_DOUBLE_EQ(figures.idle[1].time.hours(), 2);
  EXPECT_DOUBLE_EQ(figures.idle_time.hours(), 6);
  question.max_idle = 1;
  const auto shorter = figures_of(question, jobs, of);
  ASSERT_EQ(shorter.idle.size(), 1U);
  EXPECT_EQ(shorter.idle[0].job, longer.id);
  EXPECT_EQ(shorter.idle_count, 2U) << "those that are not named count, too";
}

TEST(Kpi, OfATeamHasItsJobsAloneAndTheSitesGpuTime) {
  KpiQuestion question = window(0, kHour);
  question.team = "nlp";
  const auto figures = figures_of(question, {job_of(1, 0, {attempt_of(0, 0, 1800)}, {"nlp"}),
                                             job_of(2, 0, {attempt_of(0, 0, 1800)}, {"vision"})});
  EXPECT_EQ(figures.all.ended, 1U);
  EXPECT_EQ(figures.teams.size(), 1U);
  EXPECT_DOUBLE_EQ(figures.all.gpus.hours(), 1);
  EXPECT_DOUBLE_EQ(figures.site.hours(), 2);
}

TEST(Kpi, SkipsJobsThatAreCountedOtherwise) {
  KpiRuns runs;
  runs.add(job_of(1, 0, {attempt_of(0, 0, 60)}), {});
  runs.add(job_of(2, 0, {attempt_of(0, 0, 60)}), {});
  KpiSums sums(window(0, 100));
  sums.add(runs, {model::JobId(1)});
  EXPECT_EQ(sums.figures().all.ended, 1U);
}

TEST(KpiProperty, TeamsAndNeighbouringWindowsAddUpToTheWhole) {
  base::Prng random(20'261'128);
  for (int round = 0; round < 50; ++round) {
    std::vector<model::Job> jobs;
    for (std::uint64_t id = 1; id <= 40; ++id) {
      const auto begin = static_cast<std::int64_t>(random.below(5000));
      const auto end = begin + 1 + static_cast<std::int64_t>(random.below(5000));
      jobs.push_back(job_of(id, begin, {attempt_of(begin, begin, end)},
                            {fmt::format("team-{}", random.below(4))}));
    }
    const auto whole = figures_of(window(0, 10'000), jobs);
    __int128 held = 0;
    std::uint64_t ended = 0;
    for (const auto& [name, team] : whole.teams) {
      held += team.gpus.held;
      ended += team.ended;
    }
    EXPECT_TRUE(held == whole.all.gpus.held);
    EXPECT_TRUE(held == whole.site.held);
    EXPECT_EQ(ended, whole.all.ended);
    const auto middle = static_cast<std::int64_t>(random.below(10'000));
    const auto before = figures_of(window(0, middle), jobs);
    const auto after = figures_of(window(middle, 10'000), jobs);
    EXPECT_TRUE(before.all.gpus.held + after.all.gpus.held == whole.all.gpus.held);
    EXPECT_EQ(before.all.ended + after.all.ended, whole.all.ended);
    EXPECT_EQ(before.wait.count() + after.wait.count(), whole.wait.count());
  }
}

TEST(KpiRuns, ForgetsJobs) {
  KpiRuns runs;
  for (const std::uint64_t id : {3, 1, 2}) runs.add(job_of(id, 0, {attempt_of(0, 0, 60)}), {});
  const std::vector<model::JobId> gone = {model::JobId(3), model::JobId(9), model::JobId(1)};
  runs.forget(gone);
  ASSERT_EQ(runs.runs().size(), 1U);
  EXPECT_EQ(runs.runs()[0].job, model::JobId(2));
  EXPECT_FALSE(runs.complete_since().is_set());
}

TEST(KpiRuns, KeepsTheNewestJobsWholeAndSaysFromWhenOnItHasAll) {
  KpiRuns runs;
  runs.add(job_of(3, 0, {attempt_of(0, 0, 70), attempt_of(80, 80, 90)}), {});
  runs.add(job_of(1, 0, {attempt_of(0, 0, 60)}), {});
  runs.add(job_of(2, 0, {attempt_of(0, 0, 50), attempt_of(51, 51, 55)}), {});
  runs.keep_newest(3);
  ASSERT_EQ(runs.runs().size(), 2U) << "of job 2 all or nothing is kept";
  EXPECT_EQ(runs.runs()[0].job, model::JobId(3));
  EXPECT_EQ(runs.complete_since(), at(60)) << "the latest end of a job that is gone";
}

TEST(KpiRuns, AddsTheRunsOfAnotherWithItsNames) {
  KpiRuns runs;
  runs.add(job_of(1, 0, {}, {"nlp"}), {});
  KpiRuns more;
  more.add(job_of(2, 0, {}, {"vision"}), {});
  runs.add(more);
  ASSERT_EQ(runs.runs().size(), 2U);
  EXPECT_EQ(runs.names()[runs.runs()[0].team], "nlp");
  EXPECT_EQ(runs.names()[runs.runs()[1].team], "vision");
  EXPECT_EQ(runs.names()[runs.runs()[1].user], "ada");
}

TEST(Kpi, AGpuIsThereInSpansThatHaveAReading) {
  Series series;
  series.step = base::seconds(900);
  for (const std::int64_t begin : {-600, 300, 3000}) {
    series.points.push_back({.from = at(begin), .count = 1});
  }
  EXPECT_DOUBLE_EQ(present_hours(series, at(0), at(3600)), (300 + 900 + 600) / 3600.0);
}

}  // namespace
}  // namespace gpu_platform::telemetry
