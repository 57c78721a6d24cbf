#include "bin/team_follower.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bin/captured_log_fixture.h"

namespace gpu_platform::bin {
namespace {

class TeamFollowerTest : public ::testing::Test {
 protected:
  // The configuration has one team with a limit; the other value of it was set at run time.
  static controller::Snapshot with_team(std::uint32_t max_gpus) {
    model::TeamSources sources;
    sources.configured.teams = {{"vision", {}, 1, {}, {.max_gpus = 8}}};
    model::RunTimeTeam set;
    set.name = "vision";
    set.quota.max_gpus = max_gpus;
    sources.run_time.emplace(set.name, set);
    controller::Snapshot snapshot;
    snapshot.teams = base::Shared<model::TeamSources>(std::move(sources));
    snapshot.policy = std::make_shared<const model::Policy>();
    return snapshot;
  }
  void publish(TeamFollower& follower, const controller::Snapshot& snapshot) {
    follower.published(std::make_shared<const controller::Snapshot>(snapshot), {},
                       controller::DepartedJobs());
  }

  CapturedLog captured_;
  logging::Log log_;
  int taken_ = 0;
  TeamFollower::Take take_ = [this](model::AccessRules) { ++taken_; };
};

TEST_F(TeamFollowerTest, HandsNewRulesOnWhenTeamsChange) {
  const controller::Snapshot first = with_team(4);
  TeamFollower follower(log_, {}, first, take_);
  EXPECT_EQ(taken_, 1);
  publish(follower, first);
  EXPECT_EQ(taken_, 1) << "nothing has changed";
  publish(follower, with_team(2));
  EXPECT_EQ(taken_, 2);
}

TEST_F(TeamFollowerTest, HandsNewRulesOnWhenTheSiteChangesThem) {
  TeamFollower follower(log_, {}, with_team(4), take_);
  follower.change_settings({});
  EXPECT_EQ(taken_, 2);
}

TEST_F(TeamFollowerTest, TellsOnceWhatTheConfigurationHides) {
  const controller::Snapshot first = with_team(4);
  TeamFollower follower(log_, {}, first, take_);
  const std::vector<std::string> told = {
      "warning: team=\"vision\" key=max_gpus value=\"4\" has no effect: the configuration sets "
      "it"};
  EXPECT_EQ(captured_.lines(), told);
  publish(follower, with_team(4));
  EXPECT_EQ(captured_.lines(), told);
  publish(follower, with_team(2));
  EXPECT_EQ(captured_.lines().size(), 2U);
}

}  // namespace
}  // namespace gpu_platform::bin
