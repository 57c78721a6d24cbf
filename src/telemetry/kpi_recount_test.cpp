#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/prng.h"
#include "telemetry/kpi.h"

// The key figures of small worlds, counted again from their jobs, second by second and one by one.

namespace gpu_platform::telemetry {
namespace {

using model::EndReason;
using model::JobState;

constexpr std::int64_t kNsInSecond = 1'000'000'000;
constexpr std::uint64_t kExpectedReadings = 6;

base::Instant second(std::int64_t number) {
  return base::Instant() + base::seconds(1'000'000 + number);
}

struct WayToEnd {
  JobState state;
  EndReason reason;
  int exit_code;
  KpiCause cause;
};
constexpr std::array<WayToEnd, 8> kJobEnds = {{
    {JobState::kCompleted, EndReason::kNone, 0, KpiCause::kNone},
    {JobState::kCompleted, EndReason::kNone, 0, KpiCause::kNone},
    {JobState::kFailed, EndReason::kNone, 1, KpiCause::kApplication},
    {JobState::kFailed, EndReason::kGpuFault, 1, KpiCause::kHardware},
    {JobState::kFailed, EndReason::kNodeLost, 1, KpiCause::kNodeLoss},
    {JobState::kFailed, EndReason::kPrologFailed, 1, KpiCause::kPlatform},
    {JobState::kTimedOut, EndReason::kTimeLimit, 1, KpiCause::kTimeout},
    {JobState::kCancelled, EndReason::kCancelledBy, 1, KpiCause::kCancelled},
}};
// Of attempts after which the job was queued again.
constexpr std::array<WayToEnd, 5> kRetries = {{
    {JobState::kQueued, EndReason::kPreempted, 1, KpiCause::kPreempted},
    {JobState::kQueued, EndReason::kGpuFault, 1, KpiCause::kHardware},
    {JobState::kQueued, EndReason::kNodeLost, 1, KpiCause::kNodeLoss},
    {JobState::kQueued, EndReason::kRequeuedBy, 1, KpiCause::kCancelled},
    {JobState::kQueued, EndReason::kNone, 1, KpiCause::kApplication},
}};

// What the figures are to say of an attempt, beside its times.
struct AttemptTruth {
  std::int64_t half_gpus = 0;
  std::int64_t percent = 0;    // of its part of its GPUs
  std::uint64_t readings = 0;  // of kExpectedReadings
  KpiCause cause = KpiCause::kNone;
};
struct JobTruth {
  model::Job job;
  base::Instant waits_from;
  KpiCause cause = KpiCause::kNone;
  std::vector<AttemptTruth> attempts;
};

// Jobs whose every time is a whole second of about the first ten minutes.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    for (std::uint64_t id = 1; id <= 15; ++id) add_job(id);
  }

  const std::vector<JobTruth>& jobs() const { return jobs_; }
  std::int64_t below(std::uint64_t bound) {
    return static_cast<std::int64_t>(random_.below(bound));
  }

  KpiFigures figures(const KpiQuestion& question) const {
    const auto use_of = [this](model::AttemptId id) -> std::optional<UseSummary> {
      return use(jobs_[id.job.value - 1], id.attempt - 1);
    };
    KpiRuns runs;
    for (const JobTruth& truth : jobs_) runs.add(truth.job, use_of);
    KpiSums sums(question);
    sums.add(runs);
    return sums.figures();
  }

 private:
  static UseSummary use(const JobTruth& truth, std::size_t attempt) {
    const AttemptTruth& what = truth.attempts[attempt];
    UseSummary use;
    use.from = second(0);
    use.to = second(60);
    use.interval = base::seconds(60 / kExpectedReadings);
    const bool is_part = what.half_gpus == 1;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(1, what.half_gpus / 2); ++i) {
      GpuUse& gpu = use.gpus.emplace_back();
      for (std::uint64_t k = 0; k < what.readings; ++k) {
        gpu.levels[use_level("utilization_percent")].add(what.percent / (is_part ? 2 : 1));
      }
    }
    return use;
  }

  void add_job(std::uint64_t id) {
    JobTruth truth;
    model::Job& job = truth.job;
    job.id = model::JobId(id);
    const std::int64_t submitted = below(300);
    const std::int64_t eligible = submitted + below(20);
    const auto attempts = static_cast<std::size_t>(below(4));
    model::JobSpec spec;
    spec.user = "ada";
    spec.team = fmt::format("team-{}", below(3));
    spec.kind = static_cast<model::JobKind>(below(kKpiKinds));
    if (below(2) == 0) spec.begin = second(eligible);
    job.submitted_at = second(submitted);
    truth.waits_from = attempts > 1 && !spec.begin.is_set() ? job.submitted_at : second(eligible);
    job.spec = std::make_shared<const model::JobSpec>(spec);
    // A job that is queued again begins to wait again.
    job.eligible_at = second(attempts > 1 ? eligible + 1000 : eligible);
    std::int64_t time = eligible;
    for (std::size_t i = 0; i < attempts; ++i) time = add_attempt(truth, time);
    settle(truth, time);
    jobs_.push_back(std::move(truth));
  }

  // Returns when it has released its GPUs.
  std::int64_t add_attempt(JobTruth& truth, std::int64_t earliest) {
    model::Attempt attempt;
    attempt.number = static_cast<std::uint32_t>(truth.attempts.size() + 1);
    const std::int64_t requested = earliest + below(60);
    const std::int64_t started = requested + below(5);
    const std::int64_t ended = started + 1 + below(120);
    const std::int64_t released = ended + below(10);
    attempt.requested_at = second(requested);
    attempt.started_at = second(started);
    attempt.ended_at = second(ended);
    attempt.released_at = second(released);
    AttemptTruth what;
    what.half_gpus = below(4) == 0 ? 1 : 2 * (1 + below(3));
    what.percent = 2 * (below(2) == 0 ? below(4) : below(51));
    what.readings = random_.below(kExpectedReadings + 1);
    const bool is_part = what.half_gpus == 1;
    model::NodeAllocation& node = attempt.allocation.nodes.emplace_back();
    node.node = model::NodeId(1);
    for (std::int64_t i = 0; i < std::max<std::int64_t>(1, what.half_gpus / 2); ++i) {
      node.grants.push_back(
          {.gpu_index = static_cast<std::uint32_t>(i),
           .share = is_part ? base::GpuShare(base::kWholeGpu.value() / 2) : base::kWholeGpu});
    }
    end(attempt, what, kRetries[random_.below(kRetries.size())]);
    truth.job.attempts.push_back(std::move(attempt));
    truth.attempts.push_back(what);
    return released;
  }

  static void end(model::Attempt& attempt, AttemptTruth& what, const WayToEnd& way) {
    attempt.reason = way.reason;
    attempt.exit.code = way.exit_code;
    what.cause = way.cause;
  }

  // The job waits, runs, or has ended, perhaps with its GPUs still held.
  void settle(JobTruth& truth, std::int64_t time) {
    model::Job& job = truth.job;
    const std::int64_t stage = below(5);
    if (stage == 0) {
      job.state = job.attempts.empty() ? JobState::kQueued : JobState::kRunning;
      if (job.attempts.empty()) return;
      model::Attempt& runs = job.attempts.back();
      runs.ended_at = runs.released_at = {};
      runs.reason = EndReason::kNone;
      runs.exit = {};
      truth.attempts.back().cause = KpiCause::kNone;
      return;
    }
    // Without an attempt, a job ends only because it is cancelled.
    const WayToEnd& way =
        job.attempts.empty() ? kJobEnds.back() : kJobEnds[random_.below(kJobEnds.size())];
    job.state = way.state;
    job.reason = way.reason;
    truth.cause = way.cause;
    if (job.attempts.empty()) {
      job.ended_at = second(time + below(100));
      return;
    }
    model::Attempt& last = job.attempts.back();
    end(last, truth.attempts.back(), way);
    job.ended_at = last.ended_at;
    if (stage == 1) last.released_at = {};
  }

  base::Prng random_;
  std::vector<JobTruth> jobs_;
};

// GPU-seconds of half GPUs, and what was read of them.
struct Recounted {
  std::int64_t held = 0;
  double measured = 0;
  double busy = 0;
};

bool holds_gpus(const model::Attempt& attempt, base::Instant time) {
  return attempt.requested_at <= time &&
         (!attempt.released_at.is_set() || time < attempt.released_at);
}

class Recount {
 public:
  Recount(const World& world, const KpiQuestion& question) : world_(world), question_(question) {}

  bool is_asked(const JobTruth& truth) const {
    return !question_.team || truth.job.spec->team == *question_.team;
  }
  bool is_within(base::Instant time) const {
    return time.is_set() && time >= question_.from && time < question_.to;
  }
  // For which of the jobs: by a predicate.
  template <class Which>
  Recounted gpus(const Which& which) const {
    Recounted sum;
    for (const JobTruth& truth : world_.jobs()) {
      if (!which(truth)) continue;
      for (std::size_t i = 0; i < truth.attempts.size(); ++i) {
        const AttemptTruth& what = truth.attempts[i];
        const std::int64_t held = seconds_held(truth.job.attempts[i]) * what.half_gpus;
        const double share =
            static_cast<double>(what.readings) / static_cast<double>(kExpectedReadings);
        sum.held += held;
        sum.measured += static_cast<double>(held) * share;
        sum.busy += static_cast<double>(held) * share * static_cast<double>(what.percent);
      }
    }
    return sum;
  }
  std::uint64_t idle_attempts() const {
    std::uint64_t count = 0;
    for (const JobTruth& truth : world_.jobs()) {
      for (std::size_t i = 0; is_asked(truth) && i < truth.attempts.size(); ++i) {
        const AttemptTruth& what = truth.attempts[i];
        const base::Duration held = base::seconds(seconds_held(truth.job.attempts[i]));
        const bool is_idle = held >= question_.idle_after &&
                             what.readings * 2 >= kExpectedReadings &&
                             what.percent < question_.idle_below_percent;
        if (is_idle) ++count;
      }
    }
    return count;
  }

 private:
  std::int64_t seconds_held(const model::Attempt& attempt) const {
    std::int64_t seconds = 0;
    for (base::Instant at = question_.from; at < question_.to; at = at + base::seconds(1)) {
      if (holds_gpus(attempt, at)) ++seconds;
    }
    return seconds;
  }

  const World& world_;
  const KpiQuestion& question_;
};

void expect_gpu_time(const KpiGpuTime& told, const Recounted& recounted) {
  const std::int64_t half = base::kWholeGpu.value() / 2;
  EXPECT_TRUE(told.held == static_cast<__int128>(recounted.held) * half * kNsInSecond)
      << told.hours() << " hours, and not " << static_cast<double>(recounted.held) / 2 / 3600;
  ASSERT_EQ(told.utilization_percent().has_value(), recounted.measured > 0);
  if (recounted.measured == 0) return;
  EXPECT_NEAR(*told.utilization_percent(), recounted.busy / recounted.measured, 1e-3);
  EXPECT_NEAR(*told.measured_percent(),
              100 * recounted.measured / static_cast<double>(recounted.held), 1e-3);
}

void expect_times(const KpiTimes& told, std::vector<base::Duration> times) {
  ASSERT_EQ(told.count(), times.size());
  if (times.empty()) return;
  std::ranges::sort(times);
  double sum = 0;
  for (const base::Duration time : times) sum += static_cast<double>(time.value()) / kNsInSecond;
  EXPECT_NEAR(told.mean_seconds(), sum / static_cast<double>(times.size()), 1e-6);
  for (const double share : {0.5, 0.95}) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size())));
    const double exact = static_cast<double>(times[rank - 1].value()) / kNsInSecond;
    EXPECT_NEAR(told.percentile_seconds(share), exact, exact / 16) << share;
  }
}

void expect_times_of(const World& world, const Recount& recount, const KpiFigures& told) {
  std::vector<base::Duration> waits;
  std::vector<base::Duration> allocations;
  std::vector<base::Duration> completions;
  for (const JobTruth& truth : world.jobs()) {
    if (!recount.is_asked(truth)) continue;
    const model::Job& job = truth.job;
    if (!job.attempts.empty() && recount.is_within(job.attempts.front().requested_at)) {
      waits.push_back(job.attempts.front().requested_at - truth.waits_from);
    }
    for (const model::Attempt& attempt : job.attempts) {
      if (recount.is_within(attempt.started_at)) {
        allocations.push_back(attempt.started_at - attempt.requested_at);
      }
    }
    if (job.state == JobState::kCompleted && recount.is_within(job.ended_at)) {
      completions.push_back(job.ended_at - job.submitted_at);
    }
  }
  expect_times(told.wait, std::move(waits));
  expect_times(told.allocation, std::move(allocations));
  expect_times(told.completion, std::move(completions));
}

bool is_interruption(KpiCause cause) {
  return cause == KpiCause::kPreempted || cause == KpiCause::kHardware ||
         cause == KpiCause::kNodeLoss;
}

void expect_ends_of(const World& world, const Recount& recount, const KpiFigures& told) {
  std::array<std::uint64_t, kKpiCauses> jobs{};
  std::array<std::uint64_t, kKpiCauses> attempts{};
  std::map<std::string, std::uint64_t> by_team;
  std::uint64_t interrupted = 0;
  std::uint64_t recovered = 0;
  for (const JobTruth& truth : world.jobs()) {
    if (!recount.is_asked(truth)) continue;
    bool was_interrupted = false;
    for (std::size_t i = 0; i < truth.attempts.size(); ++i) {
      const KpiCause cause = truth.attempts[i].cause;
      was_interrupted = was_interrupted || is_interruption(cause);
      if (recount.is_within(truth.job.attempts[i].ended_at)) {
        ++attempts[static_cast<std::size_t>(cause)];
      }
    }
    if (!recount.is_within(truth.job.ended_at)) continue;
    ++jobs[static_cast<std::size_t>(truth.cause)];
    ++by_team[truth.job.spec->team];
    if (!was_interrupted || truth.cause == KpiCause::kCancelled) continue;
    ++interrupted;
    if (truth.cause == KpiCause::kNone) ++recovered;
  }
  EXPECT_EQ(told.jobs, jobs);
  EXPECT_EQ(told.attempts, attempts);
  EXPECT_EQ(told.interrupted, interrupted);
  EXPECT_EQ(told.recovered, recovered);
  EXPECT_EQ(told.all.completed, jobs[static_cast<std::size_t>(KpiCause::kNone)]);
  EXPECT_EQ(told.all.cancelled, jobs[static_cast<std::size_t>(KpiCause::kCancelled)]);
  std::uint64_t ended = 0;
  for (const auto& [name, count] : by_team) {
    ended += count;
    ASSERT_TRUE(told.teams.contains(name)) << name;
    EXPECT_EQ(told.teams.at(name).ended, count) << name;
  }
  EXPECT_EQ(told.all.ended, ended);
}

void expect_gpus_of(const Recount& recount, const KpiFigures& told) {
  expect_gpu_time(told.all.gpus,
                  recount.gpus([&](const JobTruth& truth) { return recount.is_asked(truth); }));
  expect_gpu_time(told.site, recount.gpus([](const JobTruth&) { return true; }));
  for (const auto& [name, group] : told.teams) {
    expect_gpu_time(group.gpus, recount.gpus([&, &team = name](const JobTruth& truth) {
      return truth.job.spec->team == team;
    }));
  }
  for (std::size_t kind = 0; kind < kKpiKinds; ++kind) {
    expect_gpu_time(told.kinds[kind], recount.gpus([&](const JobTruth& truth) {
      return recount.is_asked(truth) && static_cast<std::size_t>(truth.job.spec->kind) == kind;
    }));
  }
  EXPECT_EQ(told.idle_count, recount.idle_attempts());
}

TEST(KpiProperty, TheFiguresAreThoseOfACountByHand) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    const std::int64_t from = world.below(400);
    KpiQuestion question{.from = second(from), .to = second(from + 1 + world.below(400))};
    question.idle_after = base::seconds(40);
    if (world.below(3) == 0) question.team = "team-1";
    const KpiFigures told = world.figures(question);
    const Recount recount(world, question);
    expect_gpus_of(recount, told);
    expect_times_of(world, recount, told);
    expect_ends_of(world, recount, told);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gpu_platform::telemetry
