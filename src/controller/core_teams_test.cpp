#include <algorithm>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

// These tests check teams that are managed at run time: who may change what, what the configuration
// keeps for itself, and what follows for jobs.

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using model::JobState;
using model::QuotaKey;
using model::RemoveTeam;
using model::SetTeam;
using testing::kAdministrator;
using testing::kNoon;
using testing::kOtherUser;
using testing::kOwner;

class CoreTeams : public ::testing::Test {
 protected:
  CoreTeams() {
    apply({});
    execution::NodeObserved seen;
    seen.info = testing::node_info("n1", 8);
    core_.observe(seen, now_);
    core_.take_batch();
  }
  ~CoreTeams() override { EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>()); }

  void apply(std::vector<model::Team> teams) {
    model::Policy policy;
    model::Organisation organisation;
    organisation.teams = std::move(teams);
    organisation.file = "/etc/site.yaml";
    policy.organisation = std::move(organisation);
    core_.apply_policy(policy, "test", now_);
  }
  static SetTeam change(std::string name, std::map<QuotaKey, std::optional<std::uint32_t>> quota) {
    SetTeam change;
    change.name = std::move(name);
    change.quota = std::move(quota);
    return change;
  }
  static SetTeam members(std::string name, std::vector<SetTeam::NewMember> add,
                         std::vector<std::string> remove = {}) {
    SetTeam change;
    change.name = std::move(name);
    change.add_members = std::move(add);
    change.remove_members = std::move(remove);
    return change;
  }
  static model::AnswerInvitation accepted(std::string team) { return {std::move(team), true}; }
  static model::AnswerInvitation declined(std::string team) { return {std::move(team), false}; }
  // The users that are members of the team, as it is set at run time, and those that are invited.
  std::string members_of(const std::string& name) const {
    const model::RunTimeTeam& set = core_.state().teams->run_time.find(name)->second;
    std::string text;
    for (const auto& each : set.members) text += each.user + " ";
    for (const auto& each : set.invited) text += fmt::format("({} by {}) ", each.user, each.by);
    return text;
  }
  // The caller, as the door hands it to the core with a call that coordinators may use.
  static model::Caller coordinator_of(std::string team) {
    model::Caller caller = kOtherUser;
    caller.reach = model::Reach::kTeams;
    caller.teams = std::make_shared<const model::Teams>(model::Teams{{}, {std::move(team)}});
    return caller;
  }

  base::Result<model::CommandReply> tell(const model::Caller& by, auto body,
                                         store::Headroom headroom = store::Headroom::kAmple) {
    return core_.command({by, std::move(body)}, now_, headroom);
  }
  void set(SetTeam change, const model::Caller& by = kAdministrator) {
    const auto reply = tell(by, std::move(change));
    EXPECT_TRUE(reply) << reply.error().message;
  }
  base::Error refusal(const model::Caller& by, auto body,
                      store::Headroom headroom = store::Headroom::kAmple) {
    const std::uint64_t before = core_.state().seq.value;
    const auto reply = tell(by, std::move(body), headroom);
    EXPECT_EQ(core_.state().seq.value, before) << "a refusal changes nothing";
    return reply ? base::Error{ErrorCode::kInternal, "accepted", {}} : reply.error();
  }
  // "PERMISSION_DENIED shares"
  std::string refused(const model::Caller& by, auto body,
                      store::Headroom headroom = store::Headroom::kAmple) {
    const base::Error error = refusal(by, std::move(body), headroom);
    return std::string(to_string(error.code)) + " " + error.field;
  }

  const model::Team* team(std::string_view name) const {
    return find_team(*core_.state().policy->organisation, name);
  }
  std::uint64_t submit(std::uint32_t gpus, std::string team) {
    model::JobSpec spec = testing::spec(gpus);
    spec.team = std::move(team);
    const auto reply = core_.command(testing::submission(std::move(spec)), now_, {});
    EXPECT_TRUE(reply) << reply.error().message;
    core_.advance(now_);
    return reply ? reply->job.value : 0;
  }
  JobState state_of(std::uint64_t job) const {
    return find_job(core_.state(), model::JobId(job))->state;
  }
  void expect_same_after_restart() {
    const auto again = decode_state(encode_state(core_.state()));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(state_hash(*again), state_hash(core_.state()));
    EXPECT_EQ(*again->policy, *core_.state().policy);
    EXPECT_EQ(again->teams, core_.state().teams);
  }

  Core core_;
  base::Instant now_ = kNoon;
};

TEST_F(CoreTeams, ARaisedQuotaStartsWaitingJobs) {
  set(members("vision", {{"ann", 1}}));
  set(change("vision", {{QuotaKey::kMaxGpus, 2}}));
  const std::uint64_t first = submit(2, "vision");
  const std::uint64_t second = submit(2, "vision");
  EXPECT_EQ(state_of(first), JobState::kStarting);
  EXPECT_EQ(state_of(second), JobState::kQueued);
  set(change("vision", {{QuotaKey::kMaxGpus, 4}}));
  core_.advance(now_);
  EXPECT_EQ(state_of(second), JobState::kStarting);
  expect_same_after_restart();
}

TEST_F(CoreTeams, AreTheSameWhenHistoryIsReplayed) {
  apply({{.name = "speech", .quota = {.max_gpus = 3}}});
  set(members("vision", {{"ann", 2}}));
  set(change("speech", {{QuotaKey::kMaxRunningJobs, 1}}));
  set(members("speech", {{"bob", 1}}), coordinator_of("speech"));
  set(members("audio", {}));
  EXPECT_TRUE(tell(kAdministrator, RemoveTeam{"audio"}));
  Core replayed;
  const Batch batch = core_.take_batch();
  // The first batch was taken by the fixture: it made the node.
  Core before;
  before.apply_policy({}, "test", now_);
  execution::NodeObserved seen;
  seen.info = testing::node_info("n1", 8);
  before.observe(seen, now_);
  for (const auto& record : before.take_batch().events) replayed.replay(record);
  for (const auto& record : batch.events) replayed.replay(record);
  EXPECT_EQ(state_hash(replayed.state()), state_hash(core_.state()));
  EXPECT_EQ(*replayed.state().policy, *core_.state().policy);
  expect_same_after_restart();
}

TEST_F(CoreTeams, TheConfigurationKeepsWhatItSets) {
  apply({{"vision", "", 2, {{"ann", 1}}, {.max_gpus = 8}}});
  const base::Error error = refusal(kAdministrator, change("vision", {{QuotaKey::kMaxGpus, 9}}));
  EXPECT_EQ(error.code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(error.field, "max_gpus");
  EXPECT_EQ(error.message,
            "max_gpus: the configuration (/etc/site.yaml) sets it for team vision (max_gpus); "
            "change it there and reload the configuration");
  EXPECT_EQ(refused(kAdministrator, members("vision", {{"bob", 1}})),
            "FAILED_PRECONDITION add_members");
  EXPECT_EQ(refused(kAdministrator, members("vision", {}, {"ann"})),
            "FAILED_PRECONDITION remove_members");
  SetTeam shares = change("vision", {});
  shares.shares = 3;
  EXPECT_EQ(refused(kAdministrator, shares), "FAILED_PRECONDITION shares");
  SetTeam parent = change("vision", {});
  parent.parent = "";
  EXPECT_EQ(refused(kAdministrator, parent), "FAILED_PRECONDITION parent");
  SetTeam coordinators = change("vision", {});
  coordinators.add_coordinators = {"bob"};
  EXPECT_EQ(refused(kAdministrator, coordinators), "FAILED_PRECONDITION add_coordinators");
  EXPECT_EQ(refused(kAdministrator, RemoveTeam{"vision"}), "FAILED_PRECONDITION name");

  set(change("vision", {{QuotaKey::kGuaranteedGpus, 4}}));
  EXPECT_EQ(team("vision")->quota, (model::Quota{.max_gpus = 8, .guaranteed_gpus = 4}));
  EXPECT_EQ(refused(kAdministrator, change("vision", {{QuotaKey::kGuaranteedGpus, 9}})),
            "FAILED_PRECONDITION guaranteed_gpus");
}

TEST_F(CoreTeams, AReloadHidesWhatWasSetAndBringsItBack) {
  set(members("vision", {{"bob", 1}}));
  set(change("vision", {{QuotaKey::kMaxGpus, 2}, {QuotaKey::kMaxRunningJobs, 1}}));
  apply({{"vision", "", 1, {{"ann", 1}}, {.max_gpus = 8}}});
  EXPECT_EQ(team("vision")->quota, (model::Quota{.max_gpus = 8, .max_running_jobs = 1}));
  EXPECT_EQ(team("vision")->members, (std::vector<model::Member>{{"ann", 1}}));
  expect_same_after_restart();
  // What is hidden can be taken away all the same.
  set(change("vision", {{QuotaKey::kMaxRunningJobs, std::nullopt}}));
  apply({});
  EXPECT_EQ(team("vision")->quota, (model::Quota{.max_gpus = 2}));
  EXPECT_EQ(team("vision")->members, (std::vector<model::Member>{{"bob", 1, true}}));
}

TEST_F(CoreTeams, AReloadOfTheSameConfigurationIsNoEvent) {
  apply({{.name = "speech"}});
  set(change("speech", {{QuotaKey::kMaxGpus, 2}}));
  core_.take_batch();
  apply({{.name = "speech"}});
  EXPECT_TRUE(core_.take_batch().events.empty());
}

TEST_F(CoreTeams, NothingIsLeftOfAConfiguredTeamWhenItsLastValueIsTakenAway) {
  apply({{.name = "speech"}});
  set(change("speech", {{QuotaKey::kMaxGpus, 2}}));
  EXPECT_EQ(core_.state().teams->run_time.size(), 1U);
  set(change("speech", {{QuotaKey::kMaxGpus, std::nullopt}}));
  EXPECT_TRUE(core_.state().teams->run_time.empty());
  const auto again = tell(kAdministrator, change("speech", {{QuotaKey::kMaxGpus, std::nullopt}}));
  EXPECT_FALSE(again->changed);
}

TEST_F(CoreTeams, OnlyAdministratorsMakeAndRemoveThem) {
  EXPECT_EQ(refused(kOwner, members("vision", {{"ann", 1}})), "PERMISSION_DENIED name");
  EXPECT_EQ(refused(coordinator_of("vision"), members("vision", {{"ann", 1}})),
            "PERMISSION_DENIED name");
  set(members("vision", {{"ann", 1}}));
  EXPECT_EQ(refused(kOwner, members("vision", {{"bob", 1}})), "PERMISSION_DENIED name");
  EXPECT_EQ(refused(coordinator_of("vision"), RemoveTeam{"vision"}), "PERMISSION_DENIED name");
  EXPECT_EQ(refused(kOwner, RemoveTeam{"vision"}), "PERMISSION_DENIED name");
  EXPECT_TRUE(tell(kAdministrator, RemoveTeam{"vision"}));
  EXPECT_EQ(team("vision"), nullptr);
  EXPECT_EQ(refused(kAdministrator, RemoveTeam{"vision"}), "NOT_FOUND name");
}

TEST_F(CoreTeams, ACoordinatorChangesMembersAndLowersLimits) {
  set(change("vision", {{QuotaKey::kMaxGpus, 4}}));
  const model::Caller coordinator = coordinator_of("vision");
  set(members("vision", {{"ann", 1}, {"cyd", 3}}));
  set(members("vision", {{"ann", 2}}), coordinator);
  set(members("vision", {}, {"cyd"}), coordinator);
  EXPECT_EQ(team("vision")->members, (std::vector<model::Member>{{"ann", 2, true}}));
  set(change("vision", {{QuotaKey::kMaxGpus, 1}, {QuotaKey::kMaxQueuedJobs, 9}}), coordinator);
  EXPECT_EQ(team("vision")->quota, (model::Quota{.max_gpus = 1, .max_queued_jobs = 9}));
  EXPECT_EQ(refused(coordinator, change("vision", {{QuotaKey::kMaxGpus, 5}})),
            "PERMISSION_DENIED max_gpus");
  set(change("vision", {{QuotaKey::kMaxGpus, std::nullopt}}), coordinator);
  EXPECT_EQ(team("vision")->quota.max_gpus, 4U);
  set(change("vision", {{QuotaKey::kMaxQueuedJobs, 20}}));
  EXPECT_EQ(team("vision")->quota.max_queued_jobs, 20U) << "an administrator's word is the last";

  EXPECT_EQ(refused(coordinator, change("vision", {{QuotaKey::kGuaranteedGpus, 1}})),
            "PERMISSION_DENIED guaranteed_gpus");
  SetTeam shares = change("vision", {});
  shares.shares = 5;
  EXPECT_EQ(refused(coordinator, shares), "PERMISSION_DENIED shares");
  SetTeam parent = change("vision", {});
  parent.parent = "";
  EXPECT_EQ(refused(coordinator, parent), "PERMISSION_DENIED parent");
  SetTeam coordinators = change("vision", {});
  coordinators.add_coordinators = {"bob"};
  EXPECT_EQ(refused(coordinator, coordinators), "PERMISSION_DENIED add_coordinators");
  EXPECT_EQ(refused(coordinator, members("speech", {{"bob", 1}})), "PERMISSION_DENIED name");
}

TEST_F(CoreTeams, WhatACoordinatorAddsIsInvitedUntilItAccepts) {
  set(members("vision", {}));
  const model::Caller coordinator = coordinator_of("vision");
  set(members("vision", {{"ann", 2}, {"cyd", 1}}), coordinator);
  EXPECT_EQ(members_of("vision"), "(ann by bob) (cyd by bob) ");
  EXPECT_TRUE(team("vision")->members.empty());
  model::JobSpec spec = testing::spec(1);
  spec.team = "vision";
  EXPECT_EQ(core_.command(testing::submission(spec), now_, {}).error().field, "team");
  expect_same_after_restart();
  // An invitation is of the one that is invited, to that team.
  EXPECT_EQ(refused(coordinator, accepted("vision")), "NOT_FOUND name");
  EXPECT_EQ(refused(kAdministrator, accepted("vision")), "NOT_FOUND name");
  EXPECT_EQ(refused(kOwner, accepted("speech")), "NOT_FOUND name");

  EXPECT_TRUE(tell(kOwner, accepted("vision")));
  EXPECT_EQ(team("vision")->members, (std::vector<model::Member>{{"ann", 2, true}}));
  EXPECT_EQ(refused(kOwner, accepted("vision")), "NOT_FOUND name") << "once";
  EXPECT_EQ(state_of(submit(1, "vision")), JobState::kStarting);
  set(members("vision", {}, {"cyd"}), coordinator);
  EXPECT_EQ(members_of("vision"), "ann ") << "the coordinator withdrew the other one";
  expect_same_after_restart();
}

TEST_F(CoreTeams, AnInvitationIsDeclinedAndRunsOutWithItsTeam) {
  set(members("vision", {}));
  set(members("vision", {{"ann", 1}}), coordinator_of("vision"));
  EXPECT_TRUE(tell(kOwner, declined("vision")));
  EXPECT_EQ(members_of("vision"), "");
  EXPECT_EQ(refused(kOwner, declined("vision")), "NOT_FOUND name");
  set(members("vision", {{"ann", 1}}), coordinator_of("vision"));
  EXPECT_TRUE(tell(kAdministrator, RemoveTeam{"vision"}));
  set(members("vision", {}));
  EXPECT_EQ(refused(kOwner, accepted("vision")), "NOT_FOUND name");
}

TEST_F(CoreTeams, AnAdministratorAddsAtOnceAndSoDoesACoordinatorItself) {
  set(members("vision", {}));
  set(members("vision", {{"ann", 1}, {"bob", 3}}), coordinator_of("vision"));
  EXPECT_EQ(members_of("vision"), "bob (ann by bob) ");
  set(members("vision", {{"ann", 1}}));
  EXPECT_EQ(members_of("vision"), "bob ann ");
}

TEST_F(CoreTeams, AnInvitationToATeamWhoseMembersTheConfigurationNamesIsOnlyDeclined) {
  set(members("vision", {}));
  set(members("vision", {{"ann", 1}}), coordinator_of("vision"));
  apply({{"vision", "", 1, {{"cyd", 1}}}});
  EXPECT_EQ(refused(kOwner, accepted("vision")), "FAILED_PRECONDITION name");
  EXPECT_EQ(refused(coordinator_of("vision"), members("vision", {{"ann", 1}})),
            "FAILED_PRECONDITION add_members");
  EXPECT_TRUE(tell(kOwner, declined("vision")));
  EXPECT_TRUE(core_.state().teams->run_time.empty()) << "nothing is left of it";
}

TEST_F(CoreTeams, NoTeamOfRunTimeIsADefaultUnlessAnAdministratorSaysSo) {
  set(members("audio", {}));
  set(members("vision", {{"ann", 1}}));
  set(members("audio", {{"ann", 1}}), coordinator_of("audio"));
  EXPECT_TRUE(tell(kOwner, accepted("audio")));
  const auto team_of = [&](std::uint64_t job) {
    return find_job(core_.state(), model::JobId(job))->spec->team;
  };
  EXPECT_EQ(team_of(submit(1, "")), "");
  EXPECT_EQ(team_of(submit(1, "audio")), "audio");
  EXPECT_EQ(refused(coordinator_of("audio"), members("audio", {{"ann", 1, true}})),
            "PERMISSION_DENIED add_members");
  set(members("vision", {{"ann", 1, true}}));
  EXPECT_EQ(team_of(submit(1, "")), "vision");
  set(members("vision", {{"ann", 5}}), coordinator_of("vision"));
  EXPECT_EQ(team_of(submit(1, "")), "vision") << "a coordinator's change leaves it as it is";
  expect_same_after_restart();
  set(members("vision", {{"ann", 1, false}}));
  EXPECT_EQ(team_of(submit(1, "")), "");
  set(members("vision", {{"ann", 1, true}}));
  set(members("vision", {}, {"ann"}), coordinator_of("vision"));
  set(members("vision", {{"ann", 1}}), coordinator_of("vision"));
  EXPECT_TRUE(tell(kOwner, accepted("vision")));
  EXPECT_EQ(team_of(submit(1, "")), "") << "the word of an administrator went with the member";
}

TEST_F(CoreTeams, AFullDiskKeepsInvitationsAsTheyAre) {
  set(members("vision", {}));
  set(members("vision", {{"ann", 1}}), coordinator_of("vision"));
  EXPECT_EQ(refused(kOwner, accepted("vision"), store::Headroom::kReserved), "RESOURCE_EXHAUSTED ");
}

TEST_F(CoreTeams, ValuesAreChecked) {
  set(members("vision", {{"ann", 1}}));
  EXPECT_EQ(refused(kAdministrator, members("a b", {})), "INVALID_ARGUMENT name");
  EXPECT_EQ(refused(kAdministrator, members("9", {})), "INVALID_ARGUMENT name");
  EXPECT_EQ(refused(kAdministrator, members("vision", {{"a b", 1}})),
            "INVALID_ARGUMENT add_members");
  EXPECT_EQ(refused(kAdministrator, members("vision", {{"bob", 0}})),
            "INVALID_ARGUMENT add_members");
  EXPECT_EQ(refused(kAdministrator, members("vision", {}, {"bob"})), "NOT_FOUND remove_members");
  EXPECT_EQ(refused(kAdministrator, change("vision", {{QuotaKey::kLendLimit, 1}})),
            "FAILED_PRECONDITION lend_limit");
  SetTeam command = change("vision", {});
  command.presence = SetTeam::Presence::kNew;
  EXPECT_EQ(refused(kAdministrator, command), "ALREADY_EXISTS name");
  command.name = "visoin";
  command.presence = SetTeam::Presence::kPresent;
  const base::Error missing = refusal(kAdministrator, command);
  EXPECT_EQ(missing.code, ErrorCode::kNotFound);
  EXPECT_TRUE(missing.message.contains("did you mean 'vision'?")) << missing.message;
  command = change("vision", {});
  command.shares = 0;
  EXPECT_EQ(refused(kAdministrator, command), "INVALID_ARGUMENT shares");
  command = change("vision", {});
  command.add_coordinators = {"a:b"};
  EXPECT_EQ(refused(kAdministrator, command), "INVALID_ARGUMENT add_coordinators");
  command = change("vision", {});
  command.remove_coordinators = {"bob"};
  EXPECT_EQ(refused(kAdministrator, command), "NOT_FOUND remove_coordinators");
  EXPECT_EQ(refused(kAdministrator, change("vision", {{QuotaKey::kMaxGpus, 1}}),
                    store::Headroom::kReserved),
            "RESOURCE_EXHAUSTED ");
}

TEST_F(CoreTeams, ParentsAreThereAndNeverInACircle) {
  set(members("lab", {}));
  SetTeam below = change("vision", {});
  below.parent = "lab";
  set(below);
  EXPECT_EQ(team("vision")->parent, "lab");
  EXPECT_EQ(refused(kAdministrator, RemoveTeam{"lab"}), "FAILED_PRECONDITION name");
  SetTeam circle = change("lab", {});
  circle.parent = "vision";
  EXPECT_EQ(refused(kAdministrator, circle), "FAILED_PRECONDITION parent");
  circle.parent = "lab";
  EXPECT_EQ(refused(kAdministrator, circle), "INVALID_ARGUMENT parent");
  circle.parent = "nowhere";
  EXPECT_EQ(refused(kAdministrator, circle), "NOT_FOUND parent");
  below.parent = "";
  set(below);
  EXPECT_TRUE(tell(kAdministrator, RemoveTeam{"lab"}));
}

TEST_F(CoreTeams, ATeamWithJobsStays) {
  set(members("vision", {{"ann", 1}}));
  const std::uint64_t job = submit(1, "vision");
  const base::Error error = refusal(kAdministrator, RemoveTeam{"vision"});
  EXPECT_EQ(error.code, ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(error.message.contains("1 of its jobs run or wait")) << error.message;
  core_.observe(testing::ended(testing::attempt(job), 0, now_), now_);
  EXPECT_TRUE(tell(kAdministrator, RemoveTeam{"vision"}));
}

TEST_F(CoreTeams, EachChangeIsInTheAuditTrail) {
  core_.take_batch();
  set(members("vision", {{"ann", 1}}));
  EXPECT_TRUE(tell(kAdministrator, RemoveTeam{"vision"}));
  set(members("audio", {}));
  for (const bool accept : {false, true}) {
    set(members("audio", {{"ann", 1}}), coordinator_of("audio"));
    EXPECT_TRUE(tell(kOwner, model::AnswerInvitation{"audio", accept}));
  }
  std::vector<std::string> trail;
  for (const auto& record : core_.take_batch().events) {
    const auto entry = model::audit_entry(record);
    if (!entry) continue;
    trail.push_back(fmt::format("{} {} {}", entry->call.by.user, to_string(entry->call.action),
                                entry->call.target));
  }
  EXPECT_EQ(trail, (std::vector<std::string>{"root set_team vision", "root remove_team vision",
                                             "root set_team audio", "bob set_team audio",
                                             "ann decline_invitation audio", "bob set_team audio",
                                             "ann accept_invitation audio"}));
}

}  // namespace
}  // namespace gpu_platform::controller
