#include "bin/team_follower.h"

#include <utility>

#include "logging/line.h"

namespace gpu_platform::bin {

TeamFollower::TeamFollower(logging::Log& log, Site site, const controller::Snapshot& now, Take take)
    : log_(log), take_(std::move(take)), site_(std::move(site)) {
  follow(now);
}

void TeamFollower::change_settings(model::AccessSettings settings) {
  const std::lock_guard lock(mutex_);
  site_.settings = std::move(settings);
  hand_on();
}

void TeamFollower::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                             std::span<const model::EventRecord>, const controller::DepartedJobs&) {
  const std::lock_guard lock(mutex_);
  if (teams_ != snapshot->teams) follow(*snapshot);
}

void TeamFollower::follow(const controller::Snapshot& snapshot) {
  teams_ = snapshot.teams;
  organisation_ = snapshot.policy->organisation;
  hand_on();
  tell_hidden();
}

void TeamFollower::hand_on() {
  model::AccessSettings settings = site_.settings;
  for (const auto& [team, users] : model::run_time_coordinators(*teams_)) {
    settings.coordinators[team].insert(users.begin(), users.end());
  }
  take_({std::move(settings), *organisation_, site_.own_uid});
}

void TeamFollower::tell_hidden() {
  std::map<std::string, std::vector<model::HiddenValue>> hidden;
  for (const auto& [name, team] : teams_->run_time) {
    auto values = model::hidden_values(*teams_, team);
    if (!values.empty()) hidden.emplace(name, std::move(values));
  }
  for (const auto& [name, values] : hidden) {
    const auto before = told_.find(name);
    if (before != told_.end() && before->second == values) continue;
    for (const model::HiddenValue& value : values) {
      log_.warn(logging::of_platform("teams"),
                "team={} key={} value={} has no effect: the configuration sets it",
                logging::quoted(name), value.key, logging::quoted(value.text, 1024));
    }
  }
  told_ = std::move(hidden);
}

}  // namespace gpu_platform::bin
