#include "api/event_hub.h"
#include "model/job_spec.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace gpu_platform::api {

namespace {

struct Touched {
  model::JobId job;
  v1::JobChangeKind kind = v1::JOB_CHANGE_KIND_UNSPECIFIED;
};

// Which job an event changes; an invalid id where it is about something else.
struct WhatHappened {
  Touched operator()(const model::JobSubmitted& e) const {
    return {e.job, v1::JOB_CHANGE_KIND_SUBMITTED};
  }
  Touched operator()(const model::JobEligible& e) const {
    return {e.job, v1::JOB_CHANGE_KIND_ELIGIBLE};
  }
  Touched operator()(const model::StartRequested& e) const {
    return {e.attempt.job, v1::JOB_CHANGE_KIND_STARTING};
  }
  Touched operator()(const model::AttemptStarted& e) const {
    return {e.attempt.job, v1::JOB_CHANGE_KIND_STARTED};
  }
  Touched operator()(const model::StopRequested& e) const {
    return {e.attempt.job, v1::JOB_CHANGE_KIND_STOPPING};
  }
  Touched operator()(const model::AttemptEnded& e) const {
    return {e.attempt.job, v1::JOB_CHANGE_KIND_ATTEMPT_ENDED};
  }
  Touched operator()(const model::AttemptReleased& e) const {
    return {e.attempt.job, v1::JOB_CHANGE_KIND_RELEASED};
  }
  Touched operator()(const model::JobRequeued& e) const {
    return {e.job, v1::JOB_CHANGE_KIND_REQUEUED};
  }
  Touched operator()(const model::JobHoldChanged& e) const {
    return {e.job,
            e.hold == model::Hold::kNone ? v1::JOB_CHANGE_KIND_LET_GO : v1::JOB_CHANGE_KIND_HELD};
  }
  Touched operator()(const model::JobChanged& e) const {
    return {e.job, v1::JOB_CHANGE_KIND_UPDATED};
  }
  Touched operator()(const model::JobEnded& e) const { return {e.job, v1::JOB_CHANGE_KIND_ENDED}; }
  Touched operator()(const auto&) const { return {}; }
};

std::uint32_t owner_of(model::JobId id, const controller::Snapshot& snapshot,
                       const controller::DepartedJobs& departed) {
  const model::Job* job = snapshot.jobs.find(id.value);
  if (job == nullptr) job = departed.find(id);
  return job == nullptr ? 0 : job->spec->uid;
}

}  // namespace

EventHub::EventHub(model::EventSeq seq, std::size_t capacity)
    : capacity_(capacity), forgotten_(seq), last_(seq) {}

void EventHub::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                         std::span<const model::EventRecord> events,
                         const controller::DepartedJobs& departed) {
  std::vector<model::JobId> touched_jobs;
  const std::lock_guard lock(mutex_);
  const bool has_readers = !by_job_.empty() || !readers_of(Topic::kJobs).empty();
  bool is_any_touched = false;
  for (const model::EventRecord& record : events) {
    last_ = record.seq;
    const Touched touched = std::visit(WhatHappened(), record.event);
    if (!touched.job.valid()) continue;
    is_any_touched = true;
    remember({record.seq, record.at, touched.job, owner_of(touched.job, *snapshot, departed),
              touched.kind});
    if (has_readers) touched_jobs.push_back(touched.job);
  }
  wake(Topic::kAnything);
  if (has_changed_nodes(*snapshot)) wake(Topic::kNodes);
  if (!is_any_touched || !has_readers) return;
  wake(Topic::kJobs);
  std::ranges::sort(touched_jobs);
  const auto repeats = std::ranges::unique(touched_jobs);
  touched_jobs.erase(repeats.begin(), repeats.end());
  for (const model::JobId job : touched_jobs) {
    const auto [begin, end] = by_job_.equal_range(job);
    for (auto it = begin; it != end; ++it) it->second->wake_();
  }
}

void EventHub::wake(Topic topic) {
  for (const Subscription* subscription : readers_of(topic)) subscription->wake_();
}

// A node that was written counts as changed.
bool EventHub::has_changed_nodes(const controller::Snapshot& snapshot) {
  if (readers_of(Topic::kNodes).empty()) {
    nodes_ = {};
    return false;
  }
  bool has_changed = false;
  base::PersistentMap<model::Node>::for_each_difference(nodes_, snapshot.nodes,
                                                        [&](auto&&...) { has_changed = true; });
  nodes_ = snapshot.nodes;
  return has_changed;
}

EventHub::Subscription::Subscription(EventHub& hub, Topic topic, model::JobId job,
                                     std::function<void()> wake)
    : hub_(hub), topic_(topic), job_(job), wake_(std::move(wake)) {}

EventHub::Subscription::~Subscription() {
  const std::lock_guard lock(hub_.mutex_);
  if (!job_.valid()) {
    std::erase(hub_.readers_of(topic_), this);
    return;
  }
  const auto [begin, end] = hub_.by_job_.equal_range(job_);
  for (auto it = begin; it != end; ++it) {
    if (it->second != this) continue;
    hub_.by_job_.erase(it);
    return;
  }
}

std::unique_ptr<EventHub::Subscription> EventHub::subscribe(model::JobId job,
                                                            std::function<void()> wake) {
  if (!job.valid()) return subscribe_to(Topic::kJobs, std::move(wake));
  std::unique_ptr<Subscription> subscription(
      new Subscription(*this, Topic::kJobs, job, std::move(wake)));
  const std::lock_guard lock(mutex_);
  by_job_.emplace(job, subscription.get());
  return subscription;
}

std::unique_ptr<EventHub::Subscription> EventHub::subscribe_to(Topic topic,
                                                               std::function<void()> wake) {
  std::unique_ptr<Subscription> subscription(
      new Subscription(*this, topic, model::JobId(), std::move(wake)));
  const std::lock_guard lock(mutex_);
  readers_of(topic).push_back(subscription.get());
  return subscription;
}

EventHub::Changes EventHub::after(model::EventSeq seq, model::JobId job, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  Changes changes;
  changes.missed = seq < forgotten_ || seq > last_;
  changes.upto = last_;
  if (changes.missed) return changes;
  std::size_t low = 0;
  std::size_t high = ring_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (at(middle).seq <= seq) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (std::size_t i = low; i < ring_.size(); ++i) {
    const ChangeRecord& record = at(i);
    if (job.valid() && record.job != job) continue;
    if (changes.records.size() == most) {
      changes.upto = changes.records.back().seq;
      return changes;
    }
    changes.records.push_back(record);
  }
  return changes;
}

model::EventSeq EventHub::last_seq() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void EventHub::remember(const ChangeRecord& record) {
  if (ring_.size() < capacity_) {
    ring_.push_back(record);
    return;
  }
  forgotten_ = ring_[oldest_].seq;
  ring_[oldest_] = record;
  oldest_ = (oldest_ + 1) % capacity_;
}

const ChangeRecord& EventHub::at(std::size_t position) const {
  return ring_[(oldest_ + position) % ring_.size()];
}

}  // namespace gpu_platform::api
