#include "scheduling/order/turns.h"

#include "base/check.h"

namespace gpu_platform::scheduling {

Turns::Key Turns::key_of(const model::JobSpec& spec) {
  return {spec.team, spec.team.empty() ? spec.user : std::string()};
}

void Turns::hide(const Team& team) {
  if (!team.waiting.empty()) oldest_.erase(*team.waiting.begin());
}

void Turns::show(const Team& team) {
  if (team.waiting.empty() || team.waiting.begin()->job == team.passed) return;
  oldest_.insert(*team.waiting.begin());
}

void Turns::put(const model::JobSpec& spec, const Turn& turn) {
  Team& team = teams_[key_of(spec)];
  hide(team);
  CHECK(since_.emplace(turn.job, turn.since).second && team.waiting.insert(turn).second);
  show(team);
}

void Turns::erase(const model::JobSpec& spec, model::JobId job) {
  const auto place = teams_.find(key_of(spec));
  const auto since = since_.find(job);
  CHECK(place != teams_.end() && since != since_.end());
  const Turn turn{since->second, job};
  since_.erase(since);
  Team& team = place->second;
  hide(team);
  if (job == team.passed) team.passed = {};
  CHECK(team.waiting.erase(turn) == 1);
  show(team);
  if (team.waiting.empty()) teams_.erase(place);
}

void Turns::pass(const model::JobSpec& spec, model::JobId job) {
  Team& team = teams_.at(key_of(spec));
  hide(team);
  team.passed = job;
  show(team);
}

std::optional<Turns::Turn> Turns::next() const {
  if (oldest_.empty()) return std::nullopt;
  return *oldest_.begin();
}

}  // namespace gpu_platform::scheduling
