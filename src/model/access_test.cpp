#include "model/access_rules.h"
#include "model/job_spec.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

JobSpec job_of(std::uint32_t uid, std::string team = {}) {
  JobSpec spec;
  spec.user = "user" + std::to_string(uid);
  spec.uid = uid;
  spec.team = std::move(team);
  return spec;
}

// research has vision, which has video; sound stands beside them.
Organisation organisation() {
  Organisation out;
  out.teams = {{.name = "research", .members = {{"rita"}}},
               {.name = "vision", .parent = "research", .members = {{"ann"}, {"bob"}}},
               {.name = "video", .parent = "vision", .members = {{"vic"}}},
               {.name = "sound", .members = {{"sam"}}}};
  return out;
}

AccessSettings settings() {
  AccessSettings out;
  out.roles = {{"vera", Role::kViewer}, {"otto", Role::kOperator}, {"eve", Role::kAdmin}};
  out.coordinators = {{"vision", {"ann"}}};
  return out;
}

AccessRules rules(AccessSettings from = settings()) {
  return {std::move(from), organisation(), 900};
}

Caller settled(const AccessRules& rules, Caller caller) {
  rules.settle(caller);
  return caller;
}

View view(AccessSettings from, Caller caller) {
  return {std::make_shared<const AccessRules>(rules(std::move(from))), std::move(caller)};
}

TEST(Rights, TableIsInTheOrderOfItsEnumeration) {
  std::size_t i = 0;
  for (const RightRow& row : rights()) EXPECT_EQ(static_cast<std::size_t>(row.right), i++);
  EXPECT_EQ(least_role(Right::kChargeAnyTeam), Role::kAdmin);
}

TEST(Reach, OfACallSaysWhoseJobsItTouches) {
  Caller ann{"ann", 1};
  EXPECT_TRUE(may_touch(ann, job_of(1)));
  EXPECT_FALSE(may_touch(ann, job_of(2, "vision")));
  ann.teams = std::make_shared<const Teams>(Teams{{}, {"video", "vision"}});
  EXPECT_FALSE(may_touch(ann, job_of(2, "vision"))) << "the row does not say coordinators";
  ann.reach = Reach::kTeams;
  EXPECT_TRUE(may_touch(ann, job_of(2, "vision")));
  EXPECT_FALSE(may_touch(ann, job_of(2, "sound")));
  EXPECT_FALSE(may_touch(ann, job_of(2)));
  EXPECT_FALSE(may_touch_site(ann));
  ann.reach = Reach::kAll;
  EXPECT_TRUE(may_touch(ann, job_of(2, "sound")));
  EXPECT_TRUE(may_touch_site(ann));
}

TEST(Reach, AnOwnerManagesItsJobOnlyAsACoordinator) {
  Caller ann{"ann", 1};
  EXPECT_FALSE(manages(ann, job_of(1, "vision")));
  ann.teams = std::make_shared<const Teams>(Teams{{}, {"vision"}});
  ann.reach = Reach::kTeams;
  EXPECT_TRUE(manages(ann, job_of(1, "vision")));
}

TEST(AccessRules, GiveEachUserItsRole) {
  const AccessRules all = rules();
  EXPECT_EQ(settled(all, {"vera", 1}).role, Role::kViewer);
  EXPECT_EQ(settled(all, {"ann", 2}).role, Role::kUser);
  EXPECT_EQ(settled(all, {"otto", 3}).role, Role::kOperator);
  EXPECT_EQ(settled(all, {"eve", 4}).role, Role::kAdmin);
}

TEST(AccessRules, RootAndTheDaemonsOwnUserAreAdministrators) {
  const AccessRules all = rules();
  EXPECT_EQ(settled(all, {"root", 0}).role, Role::kAdmin);
  EXPECT_EQ(settled(all, {"service", 900}).role, Role::kAdmin);
  EXPECT_TRUE(all.may_act_as_users(settled(all, {"root", 0})));
}

TEST(AccessRules, NobodyFromAnotherMachineIsRoot) {
  const AccessRules all = rules();
  const Caller caller = settled(all, {.user = "root", .uid = 0, .door = Door::kListener});
  EXPECT_EQ(caller.role, Role::kUser);
  EXPECT_FALSE(all.may_act_as_users(caller));
}

TEST(AccessRules, TheDefaultRoleMayBeAViewers) {
  AccessSettings from = settings();
  from.default_role = Role::kViewer;
  EXPECT_EQ(settled(rules(from), {"ann", 2}).role, Role::kViewer);
  EXPECT_EQ(settled(rules(from), {"otto", 3}).role, Role::kOperator);
}

TEST(AccessRules, ACredentialAllowsNoMoreThanItsRole) {
  const AccessRules all = rules();
  EXPECT_EQ(settled(all, {.user = "eve", .uid = 4, .max_role = Role::kUser}).role, Role::kUser);
  EXPECT_EQ(settled(all, {.user = "vera", .uid = 1, .max_role = Role::kAdmin}).role, Role::kViewer);
}

TEST(AccessRules, ACoordinatorHasTheTeamsBelow) {
  const Caller ann = settled(rules(), {"ann", 2});
  ASSERT_NE(ann.teams, nullptr);
  EXPECT_EQ(ann.teams->member_of, std::vector<std::string>{"vision"});
  EXPECT_EQ(ann.teams->coordinates, (std::vector<std::string>{"video", "vision"}));
  const Caller bob = settled(rules(), {"bob", 3});
  EXPECT_EQ(bob.teams->coordinates, std::vector<std::string>());
  EXPECT_EQ(settled(rules(), {"zoe", 5}).teams, nullptr);
}

TEST(AccessRules, AdminsActAsUsersWhereTheSiteSaysSo) {
  EXPECT_FALSE(rules().may_act_as_users(settled(rules(), {"eve", 4})));
  AccessSettings from = settings();
  from.admins_act_as_users = true;
  const AccessRules all = rules(from);
  EXPECT_TRUE(all.may_act_as_users(settled(all, {"eve", 4})));
  EXPECT_FALSE(all.may_act_as_users(settled(all, {"otto", 3})));
}

TEST(View, IsOfTheOwnersThingsByDefault) {
  const View bob = view(settings(), {"bob", 3});
  EXPECT_TRUE(bob.sees(Sight::kJobs, job_of(3)));
  EXPECT_TRUE(bob.sees(Sight::kOutput, job_of(3)));
  EXPECT_FALSE(bob.sees(Sight::kJobs, job_of(2, "vision")));
  EXPECT_FALSE(bob.sees_jobs_of_others());
  EXPECT_FALSE(bob.sees_command_of(2));
  EXPECT_TRUE(bob.sees_usage_of("ann", "vision")) << "usage is shown to all";
}

TEST(View, OfATeamHasTheJobsChargedToIt) {
  AccessSettings from = settings();
  from.visibility[0] = Audience::kTeam;
  from.visibility[3] = Audience::kTeam;
  const View bob = view(from, {"bob", 3});
  EXPECT_TRUE(bob.sees(Sight::kJobs, job_of(2, "vision")));
  EXPECT_FALSE(bob.sees(Sight::kCommands, job_of(2, "vision")));
  EXPECT_FALSE(bob.sees(Sight::kJobs, job_of(2, "video")));
  EXPECT_FALSE(bob.sees(Sight::kJobs, job_of(2)));
  EXPECT_TRUE(bob.sees_jobs_of_others());
  EXPECT_TRUE(bob.sees_usage_of("ann", "vision"));
  EXPECT_FALSE(bob.sees_usage_of("sam", "sound"));
  EXPECT_TRUE(bob.sees_usage_of("bob", "sound"));
}

TEST(View, OfAllHasEverything) {
  AccessSettings from = settings();
  for (Audience& audience : from.visibility) audience = Audience::kAll;
  const View zoe = view(from, {"zoe", 5});
  EXPECT_TRUE(zoe.sees(Sight::kOutput, job_of(2)));
  EXPECT_TRUE(zoe.sees(Sight::kJobs, job_of(2)));
  EXPECT_TRUE(zoe.sees_command_of(2));
}

TEST(View, OfACoordinatorHasTheJobsOfItsTeamsButTheirCommandsByPolicy) {
  const View ann = view(settings(), {"ann", 2});
  EXPECT_TRUE(ann.sees(Sight::kJobs, job_of(7, "video")));
  EXPECT_FALSE(ann.sees(Sight::kCommands, job_of(7, "video")));
  EXPECT_FALSE(ann.sees(Sight::kOutput, job_of(7, "video")));
  EXPECT_FALSE(ann.sees(Sight::kJobs, job_of(7, "sound")));
  AccessSettings from = settings();
  from.visibility[1] = Audience::kTeam;
  EXPECT_TRUE(view(from, {"ann", 2}).sees(Sight::kCommands, job_of(7, "video")));
}

// Jobs that are charged to vision, which ann coordinates.
TEST(Coordinators, HaveNoPowerOverUsersOfAHigherRoleAndSeeNothingOfThem) {
  AccessSettings from = settings();
  for (Audience& audience : from.visibility) audience = Audience::kTeam;
  Organisation without = organisation();
  without.teams[1].members = {{"bob"}};
  const AccessRules all(from, without, 900);
  struct Owner {
    std::string user;
    std::uint32_t uid;
    bool is_reached;
  };
  const std::vector<Owner> owners = {
      {"bob", 3, true},   {"vera", 1, true},       {"otto", 5, false}, {"eve", 4, false},
      {"root", 0, false}, {"service", 900, false}, {"bob", 900, false}};
  for (const Owner& owner : owners) {
    JobSpec job = job_of(owner.uid, "video");
    job.user = owner.user;
    Caller ann = settled(all, {"ann", 2});
    ann.reach = Reach::kTeams;
    EXPECT_EQ(manages(ann, job), owner.is_reached) << owner.user;
    EXPECT_EQ(may_touch(ann, job), owner.is_reached) << owner.user;
    const View view(std::make_shared<const AccessRules>(all), ann);
    for (const Sight sight : {Sight::kJobs, Sight::kCommands, Sight::kOutput}) {
      EXPECT_EQ(view.sees(sight, job), owner.is_reached) << owner.user;
    }
  }
}

TEST(Coordinators, OfARoleReachUsersOfTheSameRole) {
  AccessSettings from = settings();
  from.coordinators = {{"vision", {"otto"}}};
  JobSpec job = job_of(7, "vision");
  job.user = "olga";
  from.roles["olga"] = Role::kOperator;
  Caller otto = settled(rules(from), {.user = "otto", .uid = 3, .max_role = Role::kUser});
  EXPECT_EQ(otto.role, Role::kUser);
  otto.reach = Reach::kTeams;
  EXPECT_TRUE(manages(otto, job)) << "the role is the user's, not that of a token";
  job.user = "eve";
  EXPECT_FALSE(manages(otto, job));
}

TEST(View, OfAnOperatorHasAllJobsAndCommandsAndNoOutput) {
  const View otto = view(settings(), {"otto", 3});
  EXPECT_TRUE(otto.sees(Sight::kJobs, job_of(7)));
  EXPECT_TRUE(otto.sees(Sight::kCommands, job_of(7)));
  EXPECT_FALSE(otto.sees(Sight::kOutput, job_of(7)));
  EXPECT_TRUE(view(settings(), {"eve", 4}).sees(Sight::kOutput, job_of(7)));
}

TEST(View, HasTheRoleOfTheRulesWhateverTheCallerSays) {
  Caller bob{"bob", 3};
  bob.role = Role::kAdmin;
  EXPECT_FALSE(view(settings(), bob).sees(Sight::kJobs, job_of(7)));
}

}  // namespace
}  // namespace gpu_platform::model
