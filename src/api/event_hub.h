#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/persistent_map.h"
#include "controller/publication.h"
#include "controller/snapshot.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/ids.h"
#include "model/node.h"

namespace gpu_platform::api {

// One change of one job, as streams number it.
struct ChangeRecord {
  model::EventSeq seq;
  base::Instant at;
  model::JobId job;
  std::uint32_t uid = 0;  // the owner of the job
  v1::JobChangeKind kind = v1::JOB_CHANGE_KIND_UNSPECIFIED;
};

// What a reader may wait for.
enum class Topic : std::uint8_t {
  kJobs,      // changes of jobs, those that the ring has
  kNodes,     // changes of nodes and GPUs
  kAnything,  // every batch
};

// The newest changes of jobs, in a ring of fixed size, and the readers that wait for more. Streams
// keep a cursor into the ring instead of a queue of their own: a slow reader costs nothing and
// learns that it has missed something when its cursor falls off the end. Who waits for nodes and
// GPUs is woken and compares snapshots.
//
// Thread: published() on the loop thread, everything else from any thread. If no reader waits,
// published() costs one look-up, O(log of the batch), and one write per event; if a reader waits
// for nodes, it also costs a look at those that the batch wrote.
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
    Subscription(EventHub& hub, Topic topic, model::JobId job, std::function<void()> wake);
    EventHub& hub_;
    Topic topic_;
    model::JobId job_;  // the only one that it is for; invalid: it is for the whole topic
    std::function<void()> wake_;
  };

  // Calls `wake` on the loop thread after every batch that changed `job` (invalid: any job), or
  // something of the topic. It
  // must return at once, must not call the hub, and is not called any more once the subscription is
  // gone.
  std::unique_ptr<Subscription> subscribe(model::JobId job, std::function<void()> wake);
  std::unique_ptr<Subscription> subscribe_to(Topic topic, std::function<void()> wake);

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
  std::vector<Subscription*>& readers_of(Topic topic) {
    return by_topic_[static_cast<std::size_t>(topic)];
  }
  void wake(Topic topic);
  bool has_changed_nodes(const controller::Snapshot& snapshot);

  mutable std::mutex mutex_;
  std::vector<ChangeRecord> ring_;
  std::size_t capacity_;
  std::size_t oldest_ = 0;
  model::EventSeq forgotten_;  // changes up to here are not in the ring
  model::EventSeq last_;
  std::multimap<model::JobId, Subscription*> by_job_;
  std::array<std::vector<Subscription*>, 3> by_topic_;
  base::PersistentMap<model::Node> nodes_;  // of the last batch, while a reader waits for them
};

}  // namespace gpu_platform::api
