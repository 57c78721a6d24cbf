#include <array>

#include <fmt/format.h>

#include "api/metrics/scrape.h"
#include "controller/statistics.h"

// What the daemon counts of its own work.

namespace gpu_platform::api {

namespace {

void add_histogram(MetricPage& page, std::string_view name, std::string_view help,
                   const base::Histogram& values) {
  page.histogram(name, help).add(MetricLabels(), values);
}

void add_steps(const controller::Statistics& statistics, MetricPage& page) {
  add_histogram(page, "gpu_platform_step_inputs",
                "Commands and news that one step took in together.", statistics.inputs);
  add_histogram(page, "gpu_platform_decide_seconds",
                "Time to decide one step, its scheduling cycle included.",
                statistics.decide_seconds);
  add_histogram(page, "gpu_platform_commit_seconds", "Time to make one step durable.",
                statistics.commit_seconds);
  add_histogram(page, "gpu_platform_cycle_seconds",
                "Time of a scheduling cycle that found something changed.",
                statistics.cycle_seconds);
  add_histogram(page, "gpu_platform_cycle_considered_jobs", "Waiting jobs that a cycle looked at.",
                statistics.considered);
  MetricFamily& stages = page.counter("gpu_platform_stage_seconds_total",
                                      "Time spent in each stage of the scheduling cycle.");
  for (const scheduling::Stage stage : scheduling::kStages) {
    stages.add({{"stage", to_string(stage)}},
               statistics.stage_seconds[static_cast<std::size_t>(stage)]);
  }
}

void add_job_counts(const controller::Statistics& statistics, MetricPage& page) {
  page.counter("gpu_platform_jobs_submitted_total",
               "Jobs submitted; the members of an array count one by one.")
      .add(static_cast<double>(statistics.jobs_submitted));
  MetricFamily& started =
      page.counter("gpu_platform_attempts_started_total", "Attempts whose start was requested.");
  started.add({{"how", "in_order"}},
              static_cast<double>(statistics.attempts_started - statistics.backfilled));
  started.add({{"how", "backfill"}}, static_cast<double>(statistics.backfilled));
  MetricFamily& ended = page.counter("gpu_platform_jobs_ended_total", "Jobs that ended, by state.");
  ended.add({{"state", "completed"}}, static_cast<double>(statistics.jobs_completed));
  ended.add({{"state", "failed"}}, static_cast<double>(statistics.jobs_failed));
  ended.add({{"state", "cancelled"}}, static_cast<double>(statistics.jobs_cancelled));
  ended.add({{"state", "timed_out"}}, static_cast<double>(statistics.jobs_timed_out));
  page.counter("gpu_platform_jobs_requeued_total", "Times that a job went back into the queue.")
      .add(static_cast<double>(statistics.jobs_requeued));
  MetricFamily& preemptions = page.counter("gpu_platform_preemptions_total",
                                           "Decisions to stop jobs for another job, by rule.");
  constexpr std::array kRules = {"class", "reclaim", "overdue"};
  static_assert(kRules.size() == model::kPreemptionRules);
  for (std::size_t rule = 0; rule < kRules.size(); ++rule) {
    preemptions.add({{"rule", kRules[rule]}}, static_cast<double>(statistics.preemptions[rule]));
  }
  add_histogram(page, "gpu_platform_job_wait_seconds",
                "Time from when a job could start to its start.", statistics.wait_seconds);
}

}  // namespace

void add_scheduler(const Scrape& scrape, MetricPage& page) {
  if (!scrape.core.statistics) return;
  const controller::Statistics statistics = scrape.core.statistics();
  add_steps(statistics, page);
  add_job_counts(statistics, page);
}

void add_calls(const Scrape& scrape, MetricPage& page) {
  const std::vector<CallMeter::Row> calls = scrape.meter.read();
  MetricFamily& answers = page.counter("gpu_platform_api_answers_total",
                                       "Answers of the interface, by call and HTTP status.");
  for (const CallMeter::Row& row : calls) {
    for (const auto& [status, count] : row.answers) {
      answers.add({{"call", row.call}, {"status", fmt::to_string(status)}},
                  static_cast<double>(count));
    }
  }
  MetricFamily& seconds =
      page.histogram("gpu_platform_api_answer_seconds", "Time until an answer began, by call.");
  for (const CallMeter::Row& row : calls) seconds.add({{"call", row.call}}, row.seconds);
}

void add_stores(const Scrape& scrape, MetricPage& page) {
  page.counter("gpu_platform_journal_events_total", "Events in the journal since its begin.")
      .add(static_cast<double>(scrape.snapshot->seq.value));
  if (scrape.core.history == nullptr) return;
  const telemetry::HistoryCoverage coverage = scrape.core.history->coverage();
  page.gauge("gpu_platform_history_bytes", "Size of the history of readings.")
      .add(static_cast<double>(coverage.bytes));
  page.gauge("gpu_platform_history_max_bytes", "Size that the history may have.")
      .add(static_cast<double>(coverage.max_bytes));
  page.counter("gpu_platform_history_dropped_frames_total",
               "Readings that the history could not keep.")
      .add(static_cast<double>(coverage.dropped));
  page.gauge("gpu_platform_history_up", "Whether readings are kept now (0 or 1).")
      .add(coverage.problem.empty() ? 1 : 0);
}

}  // namespace gpu_platform::api
