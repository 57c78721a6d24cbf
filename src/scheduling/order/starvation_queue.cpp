#include "scheduling/order/starvation_queue.h"

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {

// No name begins with a zero.
std::string StarvationQueue::team_of(const model::JobSpec& spec) {
  return spec.team.empty() ? std::string(1, '\0') + spec.user : spec.team;
}

void StarvationQueue::hide(const Team& team) {
  if (!team.waiting.empty()) oldest_.erase(*team.waiting.begin());
}

void StarvationQueue::show(const Team& team) {
  if (team.waiting.empty() || team.waiting.begin()->job == team.passed) return;
  oldest_.insert(*team.waiting.begin());
}

void StarvationQueue::put(const model::JobSpec& spec, const Entry& entry) {
  Team& team = teams_[team_of(spec)];
  hide(team);
  CHECK(since_.emplace(entry.job, entry.since).second && team.waiting.insert(entry).second);
  show(team);
}

void StarvationQueue::erase(const model::JobSpec& spec, model::JobId job) {
  const auto place = teams_.find(team_of(spec));
  const auto since = since_.find(job);
  CHECK(place != teams_.end() && since != since_.end());
  const Entry entry{since->second, job};
  since_.erase(since);
  Team& team = place->second;
  hide(team);
  if (job == team.passed) team.passed = {};
  CHECK(team.waiting.erase(entry) == 1);
  show(team);
  if (team.waiting.empty()) teams_.erase(place);
}

void StarvationQueue::pass(const model::JobSpec& spec, model::JobId job) {
  Team& team = teams_.at(team_of(spec));
  hide(team);
  team.passed = job;
  show(team);
}

std::optional<StarvationQueue::Entry> StarvationQueue::next() const {
  if (oldest_.empty()) return std::nullopt;
  return *oldest_.begin();
}

}  // namespace gpu_platform::scheduling
