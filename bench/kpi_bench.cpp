// This program measures what the key figures of a site with a million ended jobs cost: the pass
// over all of them for one report, and taking up a job that has ended.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/prng.h"
#include "telemetry/kpi.h"

namespace gpu_platform::telemetry {
namespace {

constexpr base::Instant kBegin{1'780'185'600'000'000'000};
constexpr std::int64_t kMonth = 30 * 24 * 3600;

// A job with one attempt on up to eight GPUs, of one of fifty teams, within a month.
model::Job drawn_job(std::uint64_t id, base::Prng& random) {
  model::Job job;
  job.id = model::JobId(id);
  model::JobSpec spec;
  spec.team = fmt::format("team-{}", random.below(50));
  spec.user = fmt::format("user-{}", random.below(500));
  spec.kind = static_cast<model::JobKind>(random.below(kKpiKinds));
  job.spec = std::make_shared<const model::JobSpec>(std::move(spec));
  job.state = model::JobState::kCompleted;
  const auto seconds = [&](std::uint64_t below) {
    return base::seconds(1 + static_cast<std::int64_t>(random.below(below)));
  };
  job.submitted_at = job.eligible_at = kBegin + seconds(kMonth);
  model::Attempt attempt;
  attempt.number = 1;
  attempt.requested_at = job.submitted_at + seconds(3600);
  attempt.started_at = attempt.requested_at + seconds(5);
  attempt.ended_at = attempt.released_at = job.ended_at = attempt.started_at + seconds(36'000);
  attempt.exit.code = 0;
  model::NodeAllocation part;
  part.node = model::NodeId(1);
  const auto gpus = static_cast<std::uint32_t>(1 + random.below(8));
  for (std::uint32_t i = 0; i < gpus; ++i) {
    part.grants.push_back({.gpu_index = i, .share = base::kWholeGpu});
  }
  attempt.allocation.nodes.push_back(part);
  job.attempts.push_back(attempt);
  return job;
}

UseSummary use_of(std::uint64_t gpus) {
  UseSummary use;
  use.from = kBegin;
  use.to = kBegin + base::seconds(5);
  use.interval = base::seconds(5);
  for (std::uint64_t i = 0; i < gpus; ++i) {
    GpuUse& gpu = use.gpus.emplace_back();
    gpu.memory = base::kGiB * 80;
    gpu.levels[use_level("utilization_percent")].add(60);
    gpu.levels[use_level("memory_used_bytes")].add((base::kGiB * 40).value());
  }
  return use;
}

const KpiRuns& million_runs() {
  static const KpiRuns runs = [] {
    const auto use = [](model::AttemptId) { return std::optional(use_of(1)); };
    base::Prng random(20'261'128);
    KpiRuns made;
    for (std::uint64_t id = 1; id <= 1'000'000; ++id) made.add(drawn_job(id, random), use);
    return made;
  }();
  return runs;
}

// Of the whole month, or of its last day.
void ReportOfAMillionJobs(benchmark::State& state) {
  const KpiRuns& runs = million_runs();
  const base::Instant to = kBegin + base::seconds(kMonth);
  for (auto _ : state) {
    KpiSums sums({.from = to + base::seconds(state.range(0)) * -1, .to = to});
    sums.add(runs);
    benchmark::DoNotOptimize(sums.figures());
  }
  state.counters["bytes"] = static_cast<double>(runs.runs().size() * sizeof(KpiRun));
}
BENCHMARK(ReportOfAMillionJobs)->Arg(kMonth)->Arg(24 * 3600)->Unit(benchmark::kMillisecond);

void TakeUpAJob(benchmark::State& state) {
  base::Prng random(1);
  const model::Job job = drawn_job(1, random);
  const UseSummary use = use_of(8);
  KpiRuns runs;
  for (auto _ : state) runs.add(job, [&](model::AttemptId) { return std::optional(use); });
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TakeUpAJob)->Iterations(100'000);

}  // namespace
}  // namespace gpu_platform::telemetry
