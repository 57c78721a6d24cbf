#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "controller/publication.h"
#include "logging/log.h"
#include "model/access_rules.h"

namespace gpu_platform::bin {

// Keeps the rules of access in step with the teams: their members and coordinators may change while
// the daemon runs. It also logs which values of teams the configuration hides. New rules are handed
// on before the command that led to them is acknowledged. Safe from any thread.
class TeamFollower : public controller::PublicationListener {
 public:
  using Take = std::function<void(model::AccessRules)>;

  struct Site {
    model::AccessSettings settings;
    std::uint32_t own_uid = 0;
  };
  // `take` is called from any thread, one call at a time. `log` outlives this.
  TeamFollower(logging::Log& log, Site site, const controller::Snapshot& now, Take take);

  // The site's settings are others from here on.
  void change_settings(model::AccessSettings settings);

  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

 private:
  void follow(const controller::Snapshot& snapshot);
  void hand_on();
  void tell_hidden();

  logging::Log& log_;
  const Take take_;
  std::mutex mutex_;
  Site site_;
  base::Shared<model::TeamSources> teams_;
  base::Shared<model::Organisation> organisation_;               // in force
  std::map<std::string, std::vector<model::HiddenValue>> told_;  // by team
};

}  // namespace gpu_platform::bin
