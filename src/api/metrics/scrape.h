#pragma once

#include <memory>

#include "api/call_meter.h"
#include "api/core_access.h"
#include "api/cost_meter.h"
#include "api/job_reader.h"
#include "api/metrics/page.h"
#include "controller/snapshot.h"
#include "model/caller.h"

// What the door itself puts on the page of GET /metrics: a function for each concern.
// docs/metrics.md lists the names.

namespace gpu_platform::api {

// What one page is made from. All of it is as of one snapshot.
struct Scrape {
  const CoreAccess& core;
  const JobReader& reader;
  const CallMeter& meter;
  CostMeter& costs;
  std::shared_ptr<const controller::Snapshot> snapshot;
  const model::Caller& caller;  // that reads the page
};

// Jobs, nodes and GPUs by state; the parties that keep GPUs from work; engines.
void add_states(const Scrape& scrape, MetricPage& page);
// What each GPU is, its state, and how much of it is held. Of all GPUs, by type: how much is held,
// and how much is used.
void add_gpu_states(const Scrape& scrape, MetricPage& page);
// Parts of GPUs, by the way of sharing.
void add_gpu_parts(const Scrape& scrape, MetricPage& page);
// The GPUs of each running job that the caller may see, to join with the readings of GPUs.
void add_gpu_jobs(const Scrape& scrape, MetricPage& page);
// The readings of GPUs by the names that the site asks for, and XIDs.
void add_gpu_readings(const Scrape& scrape, MetricPage& page);
void add_host_readings(const Scrape& scrape, MetricPage& page);
// GPUs by what their evidence says about them.
void add_verdicts(const Scrape& scrape, MetricPage& page);
// Waiting jobs by reason.
void add_queue(const Scrape& scrape, MetricPage& page);
// What teams hold, and their limits.
void add_teams(const Scrape& scrape, MetricPage& page);
// What GPUs cost, to all readers; to those who may see the money of all: what became of the time of
// GPUs, what teams are billed, and budgets.
void add_money(const Scrape& scrape, MetricPage& page);
// The steps of the daemon and the cycles of the scheduler.
void add_scheduler(const Scrape& scrape, MetricPage& page);
// Answers of the interface.
void add_calls(const Scrape& scrape, MetricPage& page);
// The journal and the history of readings.
void add_stores(const Scrape& scrape, MetricPage& page);

}  // namespace gpu_platform::api
