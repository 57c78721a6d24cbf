#include "scheduling/waiting_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gpu_platform::scheduling {

void WaitingQueue::put(WaitingJob job, const model::Policy& policy) {
  CHECK(job.id.valid() && job.spec != nullptr);
  reorder(policy);
  const Rank rank = rank_of(job.id, *job.spec, job.submitted_at, policy);
  erase(job.id);
  ranks_.emplace(job.id, rank);
  classes_.add(rank, *job.spec);
  by_rank_.emplace(rank, std::move(job));
  ++version_;
}

bool WaitingQueue::erase(model::JobId job) {
  const auto place = ranks_.find(job);
  if (place == ranks_.end()) return false;
  const auto job_place = by_rank_.find(place->second);
  classes_.remove(place->second, *job_place->second.spec);
  by_rank_.erase(job_place);
  ranks_.erase(place);
  ++version_;
  return true;
}

const Rank* WaitingQueue::find_rank(model::JobId job) const {
  const auto place = ranks_.find(job);
  return place == ranks_.end() ? nullptr : &place->second;
}

const WaitingJob* WaitingQueue::find(model::JobId job) const {
  const Rank* rank = find_rank(job);
  return rank == nullptr ? nullptr : &find(*rank);
}

void WaitingQueue::reorder(const model::Policy& policy) {
  if (is_ordered_by(policy)) return;
  std::ranges::copy(policy.priority_points, points_.begin());
  std::map<Rank, WaitingJob> former = std::exchange(by_rank_, {});
  if (former.empty()) return;
  classes_.clear();
  while (!former.empty()) {
    auto element = former.extract(former.begin());
    const WaitingJob& job = element.mapped();
    element.key() = rank_of(job.id, *job.spec, job.submitted_at, policy);
    ranks_[job.id] = element.key();
    classes_.add(element.key(), *job.spec);
    by_rank_.insert(std::move(element));
  }
  ++version_;
}

bool WaitingQueue::is_ordered_by(const model::Policy& policy) const {
  return std::ranges::equal(points_, policy.priority_points);
}

}  // namespace gpu_platform::scheduling
