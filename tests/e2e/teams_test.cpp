// Teams and quotas that are managed while the daemon runs, as people have them: an administrator, a
// coordinator and users, each a process of a user of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <fstream>

#include "harness.h"
#include "several_users.h"

namespace gpu_platform::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Teams : public SeveralUsers {
 protected:
  Teams()
      : SeveralUsers({.config = "teams:\n  - name: lab\n    max_gpus: 6\n"
                                "access:\n  roles: {operator: [bin], admin: [sync]}\n"}) {}

  // Accounts as kAnn is one.
  static constexpr const char* kCoordinator = "sys";
  static constexpr const char* kOperator = "bin";
  static constexpr const char* kAdmin = "sync";

  static constexpr int kUsage = 2;
  static constexpr int kNotFound = 3;
  static constexpr int kRefused = 4;

  void run(std::vector<std::string> arguments) const {
    const Finished done = daemon_.cli(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
  }
  std::string submit(const char* user, std::vector<std::string> options) const {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--", "/bin/sleep", "1000"});
    const Finished done = by(user, options);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }
  json wait_reason(const std::string& job) const { return daemon_.job(job)["wait_reason"]; }
  bool waits_for_quota(const std::string& job) const {
    return eventually([&] { return wait_reason(job)["code"] == "QUOTA"; });
  }
  json team(const std::string& name) const { return daemon_.json({"team", "show", name}); }
  // The origin of one of its values.
  static std::string origin_of(const json& team, const std::string& key) {
    for (const json& origin : team["origins"]) {
      if (origin["key"] == key) return origin["origin"];
    }
    return "";
  }
  void reload(const std::string& from, const std::string& to) const {
    const std::string path = daemon_.directory() + "/config.yaml";
    std::string text = read_file(path);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    std::ofstream(path) << text.replace(at, from.size(), to);
    kill(daemon_.pid(), SIGHUP);
  }

  int exit_by(const char* user, std::vector<std::string> arguments) const {
    return by(user, std::move(arguments)).exit_code;
  }
  void add_and_accept(const std::string& team_name, const char* user) const {
    EXPECT_EQ(exit_by(kCoordinator, {"team", "add-member", team_name, user}), 0);
    EXPECT_EQ(exit_by(user, {"team", "accept", team_name}), 0);
  }
};

TEST_F(Teams, AQuotaHoldsAJobBackUntilItIsRaisedAlsoAcrossAKill) {
  run({"team", "create", "vision", "--parent", "lab", "--member", std::string(kAnn) + ":2",
       "--max-gpus", "1"});
  const std::string first = submit(kAnn, {"--gpus", "1", "--team", "vision"});
  ASSERT_TRUE(daemon_.reaches(first, "RUNNING"));
  EXPECT_EQ(daemon_.job(first)["spec"]["team"], "vision");
  const std::string second = submit(kAnn, {"--gpus", "1", "--team", "vision"});
  ASSERT_TRUE(waits_for_quota(second)) << wait_reason(second);
  EXPECT_THAT(wait_reason(second).dump(), HasSubstr("vision"));
  const Finished outsider = by(kBob, {"submit", "--team", "vision", "--", "/bin/true"});
  EXPECT_EQ(outsider.exit_code, kRefused) << outsider.err;

  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  const json after = team("vision");
  EXPECT_EQ(after["max_gpus"], 1) << after;
  EXPECT_EQ(after["parent"], "lab");
  EXPECT_EQ(after["origin"], "RUN_TIME");
  EXPECT_EQ(after["set_by"], "root");
  EXPECT_EQ(after["members"],
            json::parse(R"([{"user":"daemon","shares":2,"default_team":false}])"));
  ASSERT_TRUE(waits_for_quota(second));

  run({"quota", "set", "vision", "--max-gpus", "2"});
  EXPECT_TRUE(daemon_.reaches(second, "RUNNING")) << wait_reason(second);
  EXPECT_THAT(daemon_.cli({"shares"}).out, HasSubstr("vision/"));
  EXPECT_THAT(daemon_.cli({"quota", "show"}).out, HasSubstr("vision"));

  const Finished busy = daemon_.cli({"team", "delete", "vision"});
  EXPECT_EQ(busy.exit_code, kRefused);
  EXPECT_THAT(busy.err, HasSubstr("2 of its jobs run or wait"));
  run({"jobs", "cancel", first, second});
  EXPECT_TRUE(eventually([&] { return daemon_.cli({"team", "delete", "vision"}).exit_code == 0; }));
  EXPECT_EQ(daemon_.cli({"team", "show", "vision"}).exit_code, kNotFound);
}

TEST_F(Teams, TheConfigurationWinsWhereItSpeaksAndSaysSo) {
  const Finished refused = daemon_.cli({"quota", "set", "lab", "--max-gpus", "8"});
  EXPECT_EQ(refused.exit_code, kRefused);
  EXPECT_THAT(refused.err, HasSubstr("max_gpus"));
  EXPECT_THAT(refused.err, HasSubstr(daemon_.directory() + "/config.yaml"));
  EXPECT_THAT(refused.err, HasSubstr("reload"));
  EXPECT_EQ(daemon_.cli({"team", "delete", "lab"}).exit_code, kRefused);

  run({"quota", "set", "lab", "--max-running-jobs", "3", "--guaranteed-gpus", "2"});
  json lab = team("lab");
  EXPECT_EQ(lab["max_gpus"], 6);
  EXPECT_EQ(origin_of(lab, "max_gpus"), "CONFIGURATION");
  EXPECT_EQ(lab["max_running_jobs"], 3);
  EXPECT_EQ(origin_of(lab, "max_running_jobs"), "RUN_TIME");
  EXPECT_THAT(daemon_.cli({"team", "show", "lab"}).out, HasSubstr("3 (run time)"));

  reload("max_gpus: 6", "max_gpus: 6\n    max_running_jobs: 7");
  ASSERT_TRUE(eventually([&] { return team("lab")["max_running_jobs"] == 7; })) << daemon_.log();
  lab = team("lab");
  EXPECT_EQ(origin_of(lab, "max_running_jobs"), "CONFIGURATION");
  EXPECT_EQ(lab["hidden"], json::parse(R"([{"key":"max_running_jobs","value":"3"}])"));
  EXPECT_THAT(daemon_.cli({"team", "show", "lab"}).out, HasSubstr("max_running_jobs 3, set at"));
  EXPECT_THAT(daemon_.log(), HasSubstr("key=max_running_jobs value=\"3\" has no effect"));

  reload("\n    max_running_jobs: 7", "");
  ASSERT_TRUE(eventually([&] { return team("lab")["max_running_jobs"] == 3; })) << daemon_.log();
}

TEST_F(Teams, ACoordinatorManagesMembersAndLowersLimitsAndAUserNothing) {
  run({"team", "create", "vision", "--coordinator", kCoordinator, "--max-gpus", "4"});
  EXPECT_EQ(json::parse(by(kCoordinator, {"whoami", "--json"}).out)["coordinates"],
            json::array({"vision"}));
  EXPECT_EQ(by(kAnn, {"submit", "--team", "vision", "--", "/bin/true"}).exit_code, kRefused);
  add_and_accept("vision", kAnn);
  const std::string job = submit(kAnn, {"--gpus", "1", "--team", "vision"});
  ASSERT_TRUE(daemon_.reaches(job, "RUNNING"));
  EXPECT_EQ(by(kCoordinator, {"jobs", "cancel", job}).exit_code, 0);

  EXPECT_EQ(by(kCoordinator, {"quota", "set", "vision", "--max-gpus", "1"}).exit_code, 0);
  EXPECT_THAT(daemon_.cli({"team", "show", "vision"}).out,
              HasSubstr("lowered from 4 by a coordinator"));
  const Finished more = by(kCoordinator, {"quota", "set", "vision", "--max-gpus", "5"});
  EXPECT_EQ(more.exit_code, kRefused);
  EXPECT_THAT(more.err, HasSubstr("exceeds 4"));
  EXPECT_EQ(by(kCoordinator, {"quota", "set", "vision", "--max-gpus", "none"}).exit_code, 0);
  EXPECT_EQ(team("vision")["max_gpus"], 4);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"team", "set", "vision", "--shares", "9"},
        {"team", "set", "vision", "--guaranteed-gpus", "1"},
        {"team", "set", "vision", "--coordinator", kAnn},
        {"team", "create", "mine"},
        {"team", "delete", "vision"},
        {"team", "add-member", "lab", kCoordinator}}) {
    EXPECT_EQ(by(kCoordinator, words).exit_code, kRefused) << words[1] << " " << words[2];
  }
  EXPECT_EQ(by(kCoordinator, {"team", "remove-member", "vision", kAnn}).exit_code, 0);
  EXPECT_EQ(by(kAnn, {"submit", "--team", "vision", "--", "/bin/true"}).exit_code, kRefused);

  EXPECT_EQ(by(kAnn, {"team", "create", "mine"}).exit_code, kRefused);
  EXPECT_EQ(by(kAnn, {"team", "add-member", "vision", kAnn}).exit_code, kRefused);
  EXPECT_EQ(by(kAnn, {"quota", "set", "vision", "--max-gpus", "none"}).exit_code, kRefused);
  EXPECT_EQ(by(kAnn, {"team", "list"}).exit_code, 0);

  run({"team", "set", "vision", "--remove-coordinator", kCoordinator});
  EXPECT_EQ(by(kCoordinator, {"team", "add-member", "vision", kAnn}).exit_code, kRefused);
  const json trail = daemon_.json({"audit", "list", "--action", "set-team"})["entries"];
  ASSERT_GT(trail.size(), 8U);
  EXPECT_EQ(trail[0]["target"], "vision");
  EXPECT_EQ(trail[0]["code"], "PERMISSION_DENIED") << "refusals are in the trail, too";
}

TEST_F(Teams, ACoordinatorConscriptsNoUser) {
  run({"team", "create", "pirates", "--coordinator", kCoordinator});
  const std::string before = submit(kAnn, {"--gpus", "1"});
  const Finished added = by(kCoordinator, {"team", "add-member", "pirates", kAnn, kOperator, kBob});
  ASSERT_EQ(added.exit_code, 0) << added.err;
  EXPECT_THAT(added.out, HasSubstr("daemon (by sys)"));
  EXPECT_EQ(team("pirates")["members"], json::array());
  // The jobs of the invited are out of reach, old and new.
  const std::string after = submit(kAnn, {"--gpus", "1"});
  for (const std::string& job : {before, after}) {
    EXPECT_TRUE(daemon_.reaches(job, "RUNNING"));
    EXPECT_EQ(exit_by(kCoordinator, {"jobs", "describe", job}), kNotFound);
    EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", job}), kNotFound);
    EXPECT_EQ(daemon_.job(job)["spec"]["team"], nullptr) << daemon_.job(job);
  }
  EXPECT_EQ(exit_by(kAnn, {"submit", "--team", "pirates", "--", "/bin/true"}), kRefused);
  EXPECT_THAT(by(kAnn, {"team", "list"}).err, HasSubstr("you are invited to the team pirates"));
  EXPECT_THAT(by(kAnn, {"whoami"}).out, HasSubstr("Invited to:   pirates"));
  // Each answers for itself alone, and sees its own invitation.
  EXPECT_EQ(exit_by(kCoordinator, {"team", "accept", "pirates"}), kNotFound);
  EXPECT_EQ(json::parse(by(kBob, {"team", "show", "pirates", "--json"}).out)["invited"].size(), 1U);
  EXPECT_EQ(exit_by(kBob, {"team", "decline", "pirates"}), 0);
  EXPECT_EQ(exit_by(kBob, {"team", "accept", "pirates"}), kNotFound);
  EXPECT_EQ(exit_by(kCoordinator, {"team", "remove-member", "pirates", kOperator}), 0);
  EXPECT_EQ(exit_by(kOperator, {"team", "accept", "pirates"}), kNotFound) << "it was withdrawn";

  // Invitations outlive the daemon.
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(exit_by(kAnn, {"team", "accept", "pirates"}), 0);
  // A member's jobs are in reach where they name the team, and no others.
  const std::string unnamed = submit(kAnn, {"--gpus", "1"});
  const std::string named = submit(kAnn, {"--gpus", "1", "--team", "pirates"});
  EXPECT_TRUE(daemon_.reaches(named, "RUNNING"));
  for (const std::string& job : {before, after, unnamed}) {
    EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", job}), kNotFound);
    EXPECT_EQ(exit_by(kCoordinator, {"jobs", "hold", job}), kNotFound);
  }
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", named}), 0);
  const json trail = daemon_.json({"audit", "list", "--user", kAnn})["entries"];
  EXPECT_THAT(trail.dump(), HasSubstr("ACCEPT_INVITATION"));
}

TEST_F(Teams, ACoordinatorHasNoPowerOverUsersOfAHigherRole) {
  run({"team", "create", "vision", "--coordinator", kCoordinator, "--member", kAdmin});
  add_and_accept("vision", kOperator);
  add_and_accept("vision", kAnn);
  for (const char* user : {kOperator, kAdmin}) {
    const std::string job = submit(user, {"--gpus", "1", "--team", "vision"});
    EXPECT_TRUE(daemon_.reaches(job, "RUNNING"));
    EXPECT_EQ(exit_by(kCoordinator, {"jobs", "describe", job}), kNotFound) << user;
    for (const char* verb : {"cancel", "kill", "hold", "requeue"}) {
      EXPECT_EQ(exit_by(kCoordinator, {"jobs", verb, job}), kNotFound) << user << " " << verb;
    }
    EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", "--user", user, "--yes"}), 0);
    EXPECT_EQ(daemon_.job(job)["state"], "RUNNING") << user;
  }
  const std::string job = submit(kAnn, {"--gpus", "1", "--team", "vision"});
  EXPECT_TRUE(daemon_.reaches(job, "RUNNING"));
  const json seen = json::parse(by(kCoordinator, {"jobs", "list", "--all", "--json"}).out)["jobs"];
  ASSERT_EQ(seen.size(), 1U) << seen;
  EXPECT_EQ(seen[0]["id"], job);
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", job}), 0);
}

TEST_F(Teams, UsersThatAreNamedHaveAccounts) {
  run({"team", "create", "vision", "--coordinator", kCoordinator});
  for (const auto& [user, words] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {kCoordinator, {"team", "add-member", "vision", "no-such-user"}},
           {"root", {"team", "add-member", "vision", "no-such-user"}},
           {"root", {"team", "create", "audio", "--member", "no-such-user"}}}) {
    const Finished refused = by(user, words);
    EXPECT_EQ(refused.exit_code, kNotFound) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("there is no user 'no-such-user'"));
  }
  const Finished refused = by("root", {"team", "set", "vision", "--coordinator", "no-such-user"});
  EXPECT_THAT(refused.err, HasSubstr("--coordinator: there is no user 'no-such-user'"));
  EXPECT_EQ(team("vision")["invited"], json::array());
}

TEST_F(Teams, AnAdministratorMayMakeItTheDefaultOfAMember) {
  run({"team", "create", "vision", "--coordinator", kCoordinator, "--member", kAnn});
  EXPECT_EQ(daemon_.job(submit(kAnn, {"--gpus", "0"}))["spec"]["team"], nullptr);
  EXPECT_EQ(exit_by(kCoordinator, {"team", "add-member", "vision", kAnn, "--default"}), kRefused);
  EXPECT_EQ(exit_by(kAdmin, {"team", "add-member", "vision", kAnn, "--default"}), 0);
  EXPECT_EQ(daemon_.job(submit(kAnn, {"--gpus", "0"}))["spec"]["team"], "vision");
}

TEST_F(Teams, MistakesAreNamed) {
  EXPECT_EQ(daemon_.cli({"team", "set", "lab"}).exit_code, kUsage);
  EXPECT_EQ(daemon_.cli({"team", "create", "a b"}).exit_code, kUsage);
  const Finished unknown = daemon_.cli({"quota", "set", "labb", "--max-gpus", "1"});
  EXPECT_EQ(unknown.exit_code, kNotFound);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'lab'?"));
  EXPECT_EQ(daemon_.cli({"team", "create", "lab"}).exit_code, kRefused);
  const Finished contradiction = daemon_.cli({"quota", "set", "lab", "--guaranteed-gpus", "7"});
  EXPECT_EQ(contradiction.exit_code, kRefused);
  EXPECT_THAT(contradiction.err, HasSubstr("exceeds max_gpus (6)"));
  EXPECT_THAT(daemon_.cli({"team", "list"}).out, Not(HasSubstr("labb")));
}

}  // namespace
}  // namespace gpu_platform::e2e
