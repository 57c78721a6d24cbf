#include "api/statistics_calls.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/metrics/scrape.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

void to_proto(const base::Histogram& histogram, v1::Distribution& out) {
  out.set_count(histogram.count());
  out.set_last(histogram.last());
  out.set_mean(histogram.mean());
  out.set_max(histogram.max());
}

void to_proto(const CallMeter::Row& row, v1::CallStatistics& out) {
  out.set_call(row.call);
  out.set_count(row.seconds.count());
  std::uint64_t failed = 0;
  for (const auto& [status, count] : row.answers) failed += status >= 400 ? count : 0;
  out.set_failed(failed);
  out.set_total_seconds(row.seconds.sum());
}

using AddPart = void (*)(const Scrape&, MetricPage&);

// In the order of the page.
constexpr AddPart kPageParts[] = {add_states,       add_gpu_states, add_gpu_parts, add_gpu_jobs,
                                  add_queue,        add_teams,      add_money,     add_verdicts,
                                  add_scheduler,    add_calls,      add_stores,    add_gpu_readings,
                                  add_host_readings};

}  // namespace

v1::Statistics StatisticsCalls::statistics() const {
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::Statistics out;
  if (context_.core.statistics) {
    const controller::Statistics counted = context_.core.statistics();
    api::to_proto(counted.since, *out.mutable_since());
    to_proto(counted.inputs, *out.mutable_inputs());
    to_proto(counted.decide_seconds, *out.mutable_decide_seconds());
    to_proto(counted.commit_seconds, *out.mutable_commit_seconds());
    to_proto(counted.cycle_seconds, *out.mutable_cycle_seconds());
    to_proto(counted.considered, *out.mutable_considered_jobs());
    to_proto(counted.wait_seconds, *out.mutable_wait_seconds());
    out.set_jobs_submitted(counted.jobs_submitted);
    out.set_attempts_started(counted.attempts_started);
    out.set_backfilled(counted.backfilled);
    out.set_jobs_completed(counted.jobs_completed);
    out.set_jobs_failed(counted.jobs_failed);
    out.set_jobs_cancelled(counted.jobs_cancelled);
    out.set_jobs_timed_out(counted.jobs_timed_out);
    out.set_jobs_requeued(counted.jobs_requeued);
    out.set_preemptions(
        std::accumulate(counted.preemptions.begin(), counted.preemptions.end(), std::uint64_t{0}));
  }
  api::to_proto(os::wall_now(), *out.mutable_at());
  out.set_waiting_jobs(snapshot->counts.pending + snapshot->counts.queued);
  out.set_running_jobs(snapshot->counts.active);
  const auto records_since = context_.core.archive.begins_at();
  if (records_since && records_since->is_set()) {
    api::to_proto(*records_since, *out.mutable_records_since());
  }
  std::vector<CallMeter::Row> rows = context_.meter.read();
  std::ranges::stable_sort(rows, std::greater(),
                           [](const auto& row) { return row.seconds.count(); });
  for (const CallMeter::Row& row : rows) to_proto(row, *out.add_calls());
  return out;
}

std::string StatisticsCalls::metrics(const model::Caller& caller) const {
  MetricPage page;
  page.gauge("gpu_platform_build_info", "The version of the daemon; always 1.")
      .add({{"version", context_.options.version}}, 1);
  const Scrape scrape{context_.core,
                      context_.reader,
                      context_.meter,
                      context_.costs,
                      context_.core.snapshots.snapshot(),
                      caller};
  for (const AddPart add : kPageParts) add(scrape, page);
  for (const MetricSource* const source : context_.core.metric_sources) source->add_to(page);
  return page.text();
}

}  // namespace gpu_platform::api
