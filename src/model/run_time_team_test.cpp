#include "model/run_time_team.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

RunTimeTeam set_team(std::string name, Quota quota = {}) {
  RunTimeTeam team;
  team.name = std::move(name);
  team.quota = std::move(quota);
  return team;
}

TeamSources sources_of(std::vector<Team> configured, std::vector<RunTimeTeam> set) {
  TeamSources sources;
  sources.configured.teams = std::move(configured);
  for (RunTimeTeam& team : set) sources.run_time.emplace(team.name, team);
  return sources;
}

// "key=text" of each.
std::vector<std::string> hidden_of(const TeamSources& sources, std::string_view team) {
  std::vector<std::string> found;
  for (const HiddenValue& each : hidden_values(sources, sources.run_time.find(team)->second)) {
    found.push_back(each.key + "=" + each.text);
  }
  return found;
}

TEST(RunTimeTeam, IsBehindTheTeamsOfTheConfiguration) {
  RunTimeTeam speech = set_team("speech", {.max_gpus = 4});
  speech.parent = "lab";
  speech.shares = 3;
  speech.members = {{"bob", 2}};
  const Organisation result =
      organisation_in_force(sources_of({{"vision"}, {"lab"}}, {speech, set_team("audio")}));
  ASSERT_EQ(result.teams.size(), 4U);
  EXPECT_EQ(result.teams[0].name, "vision");
  EXPECT_EQ(result.teams[2].name, "audio");
  EXPECT_EQ(result.teams[3], (Team{"speech", "lab", 3, {{"bob", 2, true}}, {.max_gpus = 4}}));
}

TEST(RunTimeTeam, FillsInWhatTheConfigurationDoesNotSet) {
  const Team configured{"vision", "", 2, {{"ann", 1}}, {.max_gpus = 8}};
  RunTimeTeam set = set_team("vision", {.max_gpus = 2, .max_running_jobs = 3});
  set.shares = 9;
  set.members = {{"bob", 1}};
  set.coordinators = {"cyd"};
  const TeamSources sources = sources_of({configured}, {set});
  const Organisation result = organisation_in_force(sources);
  EXPECT_EQ(result.teams.front(),
            (Team{"vision", "", 2, {{"ann", 1}}, {.max_gpus = 8, .max_running_jobs = 3}}));
  EXPECT_EQ(
      hidden_of(sources, "vision"),
      (std::vector<std::string>{"shares=9", "members=bob", "coordinators=cyd", "max_gpus=2"}));
  EXPECT_TRUE(run_time_coordinators(sources).empty());

  const Organisation without_members = organisation_in_force(sources_of({{"vision"}}, {set}));
  EXPECT_EQ(without_members.teams.front().members, (std::vector<Member>{{"bob", 1, true}}));
}

TEST(RunTimeTeam, TheLowerOfBothLimitsIsInForce) {
  RunTimeTeam team = set_team("vision", {.max_gpus = 8, .gpu_hours = 10});
  team.lowered = {.max_gpus = 2, .max_running_jobs = 5, .gpu_hours = 90};
  const Organisation result = organisation_in_force(sources_of({}, {team}));
  EXPECT_EQ(result.teams.front().quota,
            (Quota{.max_gpus = 2, .max_running_jobs = 5, .gpu_hours = 10}));
}

TEST(RunTimeTeam, LimitsThatContradictTheConfigurationAreLeftOutTogether) {
  const RunTimeTeam team = set_team("vision", {.guaranteed_gpus = 4, .lend_limit = 2});
  const TeamSources sources = sources_of({{.name = "vision", .quota = {.max_gpus = 2}}}, {team});
  EXPECT_EQ(organisation_in_force(sources).teams.front().quota, (Quota{.max_gpus = 2}));
  EXPECT_EQ(hidden_of(sources, "vision"),
            (std::vector<std::string>{"guaranteed_gpus=4", "lend_limit=2"}));
  const TeamSources without = sources_of({{"vision"}}, {team});
  EXPECT_EQ(organisation_in_force(without).teams.front().quota,
            (Quota{.guaranteed_gpus = 4, .lend_limit = 2}));
  EXPECT_TRUE(hidden_of(without, "vision").empty());
}

TEST(RunTimeTeam, ATeamBelowItselfOrWithoutItsParentIsBelowTheOrganisation) {
  RunTimeTeam a = set_team("a");
  a.parent = "b";
  RunTimeTeam b = set_team("b");
  b.parent = "a";
  RunTimeTeam c = set_team("c");
  c.parent = "gone";
  RunTimeTeam d = set_team("d");
  d.parent = "d";
  const Organisation result = organisation_in_force(sources_of({}, {a, b, c, d}));
  EXPECT_EQ(find_team(result, "a")->parent, "b");
  EXPECT_EQ(find_team(result, "b")->parent, "");
  EXPECT_EQ(find_team(result, "c")->parent, "");
  EXPECT_EQ(find_team(result, "d")->parent, "");
}

TEST(RunTimeTeam, TheProblemOfLimitsNamesTheKey) {
  struct Case {
    Quota quota;
    std::string_view key;
  };
  const Case cases[] = {
      {{.borrow_limit = 1}, "borrow_limit"},
      {{.lend_limit = 1}, "lend_limit"},
      {{.over_quota_weight = 1}, "over_quota_weight"},
      {{.max_gpus = 2, .guaranteed_gpus = 3}, "guaranteed_gpus"},
      {{.guaranteed_gpus = 3, .lend_limit = 4}, "lend_limit"},
      {{.guaranteed_gpus = 3, .over_quota_weight = 1'000'001}, "over_quota_weight"},
      {{.guaranteed_gpus = 1, .gpu_types = {{"H100", {}, 2}}}, "guaranteed_gpus"},
      {{.guaranteed_gpus = 3, .lend_limit = 2, .gpu_types = {{"H100", {}, 2}}}, "lend_limit"},
      {{.max_gpus = 1, .gpu_types = {{"H100", {}, 2}}}, "max_gpus"},
  };
  for (const Case& each : cases) {
    const auto problem = problem_of(each.quota);
    ASSERT_TRUE(problem) << each.key;
    EXPECT_EQ(to_string(problem->key), each.key);
    EXPECT_TRUE(problem->text.contains(each.key)) << problem->text;
  }
  EXPECT_FALSE(problem_of({}));
  EXPECT_FALSE(problem_of({.max_gpus = 4,
                           .guaranteed_gpus = 4,
                           .borrow_limit = 9,
                           .lend_limit = 4,
                           .over_quota_weight = 0}));
}

TEST(RunTimeTeam, KeysHaveTheNamesOfTheConfigurationInTheirOrder) {
  for (std::size_t i = 0; i < kQuotaKeys; ++i) {
    EXPECT_EQ(kQuotaFields[i].key, static_cast<QuotaKey>(i));
    EXPECT_EQ(to_string(static_cast<QuotaKey>(i)), kQuotaFields[i].name);
  }
}

TEST(RunTimeTeam, NamesOfMembersHaveNoBlanksAndSeparators) {
  EXPECT_TRUE(is_member_name("ann.lee@example"));
  for (const std::string_view bad : {"", "ann lee", "ann:2", "ann,bob", "ann\n"}) {
    EXPECT_FALSE(is_member_name(bad)) << bad;
  }
  EXPECT_FALSE(is_member_name(std::string(256, 'a')));
}

}  // namespace
}  // namespace gpu_platform::model
