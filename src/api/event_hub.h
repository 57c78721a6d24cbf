#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "controller/publication.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/ids.h"

namespace gpu_platform::api {

// One change of one job, as streams number it.
struct ChangeRecord {
  model::EventSeq seq;
  base::Instant at;
  model::JobId job;
  std::uint32_t uid = 0;  // the owner of the job
  v1::JobChangeKind kind = v1::JOB_CHANGE_KIND_UNSPECIFIED;
};

// The newest changes of jobs, in a ring of fixed size, and the readers that wait for more. Streams
// keep a cursor into the ring instead of a queue of their own: a slow reader costs nothing and
// learns that it has missed something when its cursor falls off the end.
//
// Thread: published() on the loop thread, everything else from any thread. If no reader waits,
// published() costs one look-up, O(log of the batch), and one write per event.
class EventHub final : public controller::PublicationListener {
 public:
  static constexpr std::size_t kCapacity = 65536;

  // Changes up to `seq` happened before this hub began.
  explicit EventHub(model::EventSeq seq, std::size_t capacity = kCapacity);

  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

  // Ends its subscription when it is destroyed. The hub outlives it.
  class Subscription {
   public:
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    friend class EventHub;
    Subscription(EventHub& hub, model::JobId job, std::function<void()> wake);
    EventHub& hub_;
    model::JobId job_;
    std::function<void()> wake_;
  };

  // Calls `wake` on the loop thread after every batch that changed `job` (invalid: any job). It
  // must return at once, must not call the hub, and is not called any more once the subscription is
  // gone.
  std::unique_ptr<Subscription> subscribe(model::JobId job, std::function<void()> wake);

  // The same after every batch.
  std::unique_ptr<Subscription> subscribe_to_all(std::function<void()> wake);

  struct Changes {
    bool missed = false;  // some after `seq` are not known here any more (or never were)
    std::vector<ChangeRecord> records;
    model::EventSeq upto;  // where to go on: everything up to here was looked at
  };
  // Returns up to `most` changes after `seq`, only those of `job` if that is valid.
  Changes after(model::EventSeq seq, model::JobId job, std::size_t most) const;

  // The newest event that was published.
  model::EventSeq last_seq() const;

 private:
  void remember(const ChangeRecord& record);
  const ChangeRecord& at(std::size_t position) const;  // 0 is the oldest

  mutable std::mutex mutex_;
  std::vector<ChangeRecord> ring_;
  std::size_t capacity_;
  std::size_t oldest_ = 0;
  model::EventSeq forgotten_;  // changes up to here are not in the ring
  model::EventSeq last_;
  std::multimap<model::JobId, Subscription*> by_job_;
  std::vector<Subscription*> of_all_;
  std::vector<Subscription*> of_everything_;
};

}  // namespace gpu_platform::api
