#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "controller/publication.h"
#include "model/job_spec.h"
#include "monitoring/attempt_gate.h"

namespace gpu_platform::monitoring {

// Has the GPUs of attempts that begin read at once, with their energy: it is the first value of the
// account that AttemptGate has closed at the end. Parts of GPUs have no energy of their own, and
// are read where the job is monitored, so that SamplingPace sees it without delay.
//
// All that it refers to outlives it; what read_now uses, until its stop().
class BeginReader final : public controller::PublicationListener {
 public:
  using ReadNow = AttemptGate::ReadNow;
  using IsMonitored = std::function<bool(const model::JobSpec& spec)>;

  BeginReader(ReadNow read_now, IsMonitored is_monitored)
      : read_now_(std::move(read_now)), is_monitored_(std::move(is_monitored)) {}

  // Asks for no more readings. To be called before what read_now uses is gone. Any thread.
  void stop();

  // One question to each node of what begins in a batch.
  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

 private:
  const ReadNow read_now_;
  const IsMonitored is_monitored_;
  std::mutex mutex_;
  bool is_stopped_ = false;  // guarded by mutex_
};

}  // namespace gpu_platform::monitoring
