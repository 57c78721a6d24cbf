#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "controller/publication.h"
#include "controller/statistics.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::controller {

// Counts and times what the loop does. The loop thread tells it; read() is safe from any thread.
class Meter final : public PublicationListener, public scheduling::StageObserver {
 public:
  explicit Meter(base::Instant since);

  Statistics read() const;

  // ---- of the loop thread
  void begin_step(std::size_t inputs);
  void decided();
  // What it took counts if the step had something to commit, and so to publish.
  void committed();
  void published(const std::shared_ptr<const Snapshot>& snapshot,
                 std::span<const model::EventRecord> events, const DepartedJobs& departed) override;
  void begin(scheduling::Stage stage) override;
  void end(scheduling::Stage stage) override;
  void end_cycle(std::size_t considered) override;

 private:
  double seconds_since(std::int64_t begin_ns) const;
  void count(const model::EventRecord& record, const Snapshot& snapshot);

  mutable std::mutex mutex_;
  Statistics counted_;  // guarded by mutex_
  // The loop thread's.
  std::int64_t mark_ns_ = 0;  // when what is measured now began
  std::int64_t stage_began_ns_ = 0;
  double commit_seconds_ = 0;
  double cycle_seconds_ = 0;  // of the stages so far
};

}  // namespace gpu_platform::controller
