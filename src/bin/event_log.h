#pragma once

#include "controller/publication.h"
#include "logging/log.h"

namespace gpu_platform::bin {

// One log line per event: nodes and GPUs at level info, jobs and audited calls at debug. Values of
// a job's environment are not in events, so they cannot come here; commands are left out as well.
class EventLog : public controller::PublicationListener {
 public:
  // `log` outlives this.
  explicit EventLog(logging::Log& log) : log_(log) {}

  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

 private:
  logging::Log& log_;
};

}  // namespace gpu_platform::bin
