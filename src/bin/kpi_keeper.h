#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "controller/publication.h"
#include "model/ids.h"
#include "store/archive.h"
#include "telemetry/kpi.h"
#include "telemetry/use_source.h"

namespace gpu_platform::bin {

// Keeps what the key figures need of ended jobs: it reads the archive once, after the start, and
// then each job that leaves the core. About 100 bytes of memory for each attempt; beyond kMaxRuns
// the oldest jobs are forgotten.
//
// Safe from any thread. published() and forget() hold a short lock and wait for nothing else.
class KpiKeeper final : public controller::PublicationListener, public telemetry::KpiSource {
 public:
  static constexpr std::size_t kMaxRuns = 1'000'000;

  // Both outlive it.
  KpiKeeper(const store::Archive& archive, const telemetry::UseSource& uses,
            std::size_t max_runs = kMaxRuns);
  ~KpiKeeper() override;
  KpiKeeper(const KpiKeeper&) = delete;
  KpiKeeper& operator=(const KpiKeeper&) = delete;

  // Once, before anything is published: the snapshot's jobs are read when they leave the core.
  void start(const controller::Snapshot& snapshot);
  // The jobs have left the history.
  void forget(std::span<const model::JobId> jobs);

  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;
  base::Result<base::Instant> add_ended(telemetry::KpiSums& sums,
                                        const std::set<model::JobId>& skip) const override;

 private:
  void work();
  // Waits for something to do; false: the object ends.
  bool take_work(std::vector<model::JobId>& departed, std::vector<model::JobId>& forgotten);
  base::Result<telemetry::KpiRuns> read_archive() const;
  void read_jobs(std::span<const model::JobId> jobs, telemetry::KpiRuns& runs) const;
  // Returns after the time, or at once with true when the object ends.
  bool ends_within(std::chrono::seconds time);
  bool is_stopping() const;

  const store::Archive& archive_;
  const telemetry::UseSource& uses_;
  const std::size_t max_runs_;
  // At the start: the jobs in the core, ascending, and the id after those of the archive.
  std::vector<model::JobId> in_core_;
  model::JobId archive_end_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<model::JobId> departed_;   // since they were last read
  std::vector<model::JobId> forgotten_;  // the same
  bool is_stopping_ = false;

  mutable std::shared_mutex runs_mutex_;
  telemetry::KpiRuns runs_;
  bool is_complete_ = false;  // the archive has been read
  std::string problem_;       // why it has not

  std::thread thread_;  // none before start()
};

}  // namespace gpu_platform::bin
