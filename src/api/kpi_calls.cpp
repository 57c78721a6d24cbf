#include "api/kpi_calls.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/kpi_answer.h"
#include "base/utc.h"
#include "model/job_spec.h"
#include "os/clock.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {

namespace {

constexpr base::Duration kDefaultKpiWindow = base::hours(24 * 30);
constexpr base::Duration kMaxKpiWindow = base::hours(24 * 3653);
// Of readings, where they say for how long a GPU was there.
constexpr std::int64_t kSpans = 512;
constexpr base::Duration kLeastSpan = base::minutes(15);
// The readings may begin so much later than the records of jobs.
constexpr base::Duration kMaxLate = base::hours(1);
// Named in an answer; more are looked at, since the caller may not see all.
constexpr int kMaxIdle = 100;
constexpr std::size_t kMaxIdleLooks = 1000;

double seconds_of(base::Duration duration) {
  return static_cast<double>(duration.value()) / 1e9;
}

base::Result<telemetry::KpiQuestion> question_of(const v1::GetKpiRequest& request,
                                                 const telemetry::IdleRule& idle,
                                                 base::Instant now) {
  telemetry::KpiQuestion question;
  question.to = request.has_until() ? std::min(to_model(request.until()), now) : now;
  question.from =
      request.has_since() ? to_model(request.since()) : question.to + kDefaultKpiWindow * -1;
  if (question.from >= question.to) {
    return base::invalid("since", fmt::format("since: {} is not before the end of the window, {}",
                                              base::utc(question.from), base::utc(question.to)));
  }
  if (question.to - question.from > kMaxKpiWindow) {
    return base::invalid("since", "since: the window is longer than ten years");
  }
  if (request.has_team()) question.team = request.team();
  question.idle_below_percent = idle.below_percent;
  question.idle_after = idle.after;
  question.max_idle = kMaxIdleLooks;
  return question;
}

// Adds the jobs in the core; returns which they are.
std::set<model::JobId> add_jobs_in_core(const controller::Snapshot& snapshot,
                                        const telemetry::UseSource* uses,
                                        telemetry::KpiSums& sums) {
  telemetry::KpiRuns::UseOf use_of;
  if (uses != nullptr) {
    use_of = [uses](model::AttemptId attempt) { return uses->get(attempt); };
  }
  std::set<model::JobId> jobs;
  telemetry::KpiRuns runs;
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    jobs.insert(jobs.end(), job.id);
    runs.add(job, use_of);
  });
  sums.add(runs);
  return jobs;
}

// Whether readings are kept from the time on, as good as.
bool reaches_back(const telemetry::HistoryCoverage& coverage, base::Instant time) {
  const auto reaches = [&](const std::optional<base::Instant>& since) {
    return since && *since <= time + kMaxLate;
  };
  return reaches(coverage.quarters_since) || reaches(coverage.minutes_since) ||
         reaches(coverage.raw_since);
}

// The GPU-hours of the GPUs that are in the cluster, of the time of which there are records: what
// jobs held before is not known either. None: not known.
std::optional<double> available_hours(const telemetry::History* history,
                                      const controller::Snapshot& snapshot, base::Instant begin,
                                      base::Instant end) {
  if (history == nullptr || !reaches_back(history->coverage(), begin)) return std::nullopt;
  telemetry::HistoryQuery query{.from = begin, .to = end};
  query.metrics = {*telemetry::metric_named(telemetry::Of::kGpu, "memory_used_bytes")};
  const std::int64_t spans = (end - begin).value() / kSpans / kLeastSpan.value();
  query.step = kLeastSpan * (spans + 1);
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (!gpu.info.uuid.empty()) query.subjects.push_back({.uuid = gpu.info.uuid});
    }
  });
  const auto found = history->query(query);
  if (!found) return std::nullopt;
  double hours = 0;
  for (const telemetry::Series& series : *found) {
    hours += telemetry::present_hours(series, begin, end);
  }
  return hours > 0 ? std::optional(hours) : std::nullopt;
}

void put_idle(const telemetry::KpiFigures& figures, const telemetry::KpiQuestion& question,
              const CallContext& context, const model::Caller& caller, v1::KpiIdle& out) {
  out.set_below_percent(question.idle_below_percent);
  out.set_after_seconds(seconds_of(question.idle_after));
  out.set_attempts(figures.idle_count);
  out.set_gpu_hours(figures.idle_time.hours());
  for (const telemetry::KpiIdle& idle : figures.idle) {
    if (out.jobs_size() == kMaxIdle) return;
    const auto found = context.reader.find(caller, idle.job);
    if (!found) continue;
    v1::KpiIdleJob& job = *out.add_jobs();
    job.set_id(model::name_of(*found->job));
    job.set_name(found->job->spec->name);
    job.set_user(idle.user);
    job.set_team(idle.team);
    to_proto(idle.since, *job.mutable_since());
    job.set_gpus(static_cast<double>(idle.gpus.value()) /
                 static_cast<double>(base::kWholeGpu.value()));
    to_proto(idle.time, *job.mutable_use());
    job.set_running(idle.is_running);
  }
}

}  // namespace

base::Result<v1::Kpi> KpiCalls::get(const v1::GetKpiRequest& request, const Peer& peer) const {
  const CoreAccess& core = context_.core;
  TRY_ASSIGN(const telemetry::KpiQuestion question,
             question_of(request, core.idle, os::wall_now()));
  // A job may leave the core after the snapshot: it is not counted twice.
  const auto snapshot = core.snapshots.snapshot();
  telemetry::KpiSums sums(question);
  const std::set<model::JobId> in_core = add_jobs_in_core(*snapshot, core.uses, sums);
  TRY_ASSIGN(base::Instant complete_since, core.archive.begins_at());
  if (core.kpis != nullptr) {
    TRY_ASSIGN(const base::Instant kept_since, core.kpis->add_ended(sums, in_core));
    complete_since = std::max(complete_since, kept_since);
  }
  const telemetry::KpiFigures figures = sums.figures();
  const base::Instant begin = std::clamp(complete_since, question.from, question.to);
  auto available = available_hours(core.history, *snapshot, begin, question.to);
  // What jobs held was there, whether it was read or not.
  if (available) available = std::max(*available, figures.site.hours());

  v1::Kpi out;
  to_proto(question.from, *out.mutable_since());
  to_proto(question.to, *out.mutable_until());
  if (question.team) out.set_team(*question.team);
  if (complete_since > question.from) to_proto(complete_since, *out.mutable_complete_since());
  put_figures(figures, seconds_of(question.to - begin), available, out);
  put_responses(context_.meter.read(), core.statistics ? core.statistics().since : base::Instant(),
                out);
  put_idle(figures, question, context_, peer.caller, *out.mutable_idle());
  return out;
}

}  // namespace gpu_platform::api
