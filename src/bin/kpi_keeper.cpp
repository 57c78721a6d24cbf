#include "bin/kpi_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

namespace gpu_platform::bin {

namespace {

constexpr std::size_t kJobsAtOnce = 1000;
constexpr std::size_t kBytesAtOnce = 16 << 20;
// After the archive could not be read.
constexpr std::chrono::seconds kKpiPause{60};

}  // namespace

KpiKeeper::KpiKeeper(const store::Archive& archive, const telemetry::UseSource& uses,
                     std::size_t max_runs)
    : archive_(archive), uses_(uses), max_runs_(max_runs) {}

KpiKeeper::~KpiKeeper() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void KpiKeeper::start(const controller::Snapshot& snapshot) {
  snapshot.jobs.for_each([&](std::uint64_t id, const model::Job&) { in_core_.emplace_back(id); });
  // If it cannot be read, work() finds that out.
  const auto newest = archive_.list({.limit = 1});
  if (newest) archive_end_ = model::JobId(newest->empty() ? 1 : newest->front().id.value + 1);
  thread_ = std::thread([this] { work(); });
  pthread_setname_np(thread_.native_handle(), "kpi keeper");
}

void KpiKeeper::forget(std::span<const model::JobId> jobs) {
  {
    const std::lock_guard lock(mutex_);
    forgotten_.insert(forgotten_.end(), jobs.begin(), jobs.end());
  }
  wake_.notify_all();
}

// Their jobs are found in the archive by now, and need not be copied here.
void KpiKeeper::published(const std::shared_ptr<const controller::Snapshot>&,
                          std::span<const model::EventRecord>,
                          const controller::DepartedJobs& departed) {
  if (departed.all().empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (const model::Job* const job : departed.all()) departed_.push_back(job->id);
  }
  wake_.notify_all();
}

base::Result<base::Instant> KpiKeeper::add_ended(telemetry::KpiSums& sums,
                                                 const std::set<model::JobId>& skip) const {
  const std::shared_lock lock(runs_mutex_);
  if (!is_complete_) {
    const std::string why = problem_.empty()
                                ? "the ended jobs are still being read: try again in a moment"
                                : "the ended jobs cannot be read: " + problem_;
    return base::fail(base::ErrorCode::kUnavailable, why);
  }
  sums.add(runs_, skip);
  return runs_.complete_since();
}

bool KpiKeeper::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return is_stopping_;
}

bool KpiKeeper::ends_within(std::chrono::seconds time) {
  std::unique_lock lock(mutex_);
  return wake_.wait_for(lock, time, [this] { return is_stopping_; });
}

bool KpiKeeper::take_work(std::vector<model::JobId>& departed,
                          std::vector<model::JobId>& forgotten) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return is_stopping_ || !departed_.empty() || !forgotten_.empty(); });
  departed = std::exchange(departed_, {});
  forgotten = std::exchange(forgotten_, {});
  return !is_stopping_;
}

void KpiKeeper::work() {
  auto read = read_archive();
  while (!read) {
    spdlog::warn("key figures why=\"{}\"", read.error().message);
    {
      const std::unique_lock lock(runs_mutex_);
      problem_ = read.error().message;
    }
    if (ends_within(kKpiPause)) return;
    read = read_archive();
  }
  {
    const std::unique_lock lock(runs_mutex_);
    runs_ = *std::move(read);
    is_complete_ = true;
  }
  in_core_.clear();
  std::vector<model::JobId> departed;
  std::vector<model::JobId> forgotten;
  while (take_work(departed, forgotten)) {
    telemetry::KpiRuns more;
    read_jobs(departed, more);
    const std::unique_lock lock(runs_mutex_);
    runs_.add(more);
    if (!forgotten.empty()) runs_.forget(forgotten);
    // Not one by one: each costs a pass.
    if (runs_.runs().size() > max_runs_ + max_runs_ / 10) runs_.keep_newest(max_runs_);
  }
}

base::Result<telemetry::KpiRuns> KpiKeeper::read_archive() const {
  telemetry::KpiRuns runs;
  const auto use_of = [this](model::AttemptId attempt) { return uses_.get(attempt); };
  store::ArchiveQuery query{
      .before = archive_end_, .limit = kJobsAtOnce, .max_bytes = kBytesAtOnce};
  while (!is_stopping()) {
    TRY_ASSIGN(const std::vector<model::Job> jobs, archive_.list(query));
    if (jobs.empty()) break;
    for (const model::Job& job : jobs) {
      if (!std::ranges::binary_search(in_core_, job.id)) runs.add(job, use_of);
    }
    query.before = jobs.back().id;
    if (runs.runs().size() > max_runs_ + max_runs_ / 10) runs.keep_newest(max_runs_);
  }
  runs.keep_newest(max_runs_);
  return runs;
}

void KpiKeeper::read_jobs(std::span<const model::JobId> jobs, telemetry::KpiRuns& runs) const {
  const auto use_of = [this](model::AttemptId attempt) { return uses_.get(attempt); };
  for (const model::JobId id : jobs) {
    if (is_stopping()) return;
    const auto job = archive_.find(id);
    if (!job) {
      spdlog::warn("key figures job={} why=\"{}\"", id.value, job.error().message);
    } else if (*job) {
      runs.add(**job, use_of);
    }
  }
}

}  // namespace gpu_platform::bin
