// Teams and quotas that are managed while the daemon runs, as people have them: an administrator, a
// coordinator and users, each a process of a user of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Teams : public ::testing::Test {
 protected:
  // As kAnn.
  static constexpr const char* kCoordinator = "sys";

  static constexpr int kUsage = 2;
  static constexpr int kNotFound = 3;
  static constexpr int kRefused = 4;

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as several users";
    if (as(kAnn, {"/usr/bin/test", "-x", program("gpu-platform")}).exit_code != 0) {
      GTEST_SKIP() << "closed to other users";
    }
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
    chmod(daemon_.directory().c_str(), 0755);
  }

  static Finished as(const char* user, std::vector<std::string> command) {
    const passwd* account = getpwnam(user);
    std::vector<std::string> words = {
        "/usr/bin/setpriv", "--reuid",      user, "--regid", std::to_string(account->pw_gid),
        "--clear-groups",   "/usr/bin/env", "-C", "/"};
    words.insert(words.end(), command.begin(), command.end());
    return run_command(words);
  }
  // The command line as that user.
  Finished by(const char* user, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {program("gpu-platform"), "--server", "unix:" + daemon_.socket()});
    return as(user, std::move(arguments));
  }
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

  Daemon daemon_{{.config = "teams:\n  - name: lab\n    max_gpus: 6\n"}};
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
  EXPECT_EQ(after["members"], json::parse(R"([{"user":"daemon","shares":2}])"));
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
  EXPECT_EQ(by(kCoordinator, {"team", "add-member", "vision", kAnn}).exit_code, 0);
  const std::string job = submit(kAnn, {"--gpus", "1", "--team", "vision"});
  ASSERT_TRUE(daemon_.reaches(job, "RUNNING"));
  EXPECT_EQ(by(kCoordinator, {"jobs", "cancel", job}).exit_code, 0);

  EXPECT_EQ(by(kCoordinator, {"quota", "set", "vision", "--max-gpus", "1"}).exit_code, 0);
  EXPECT_THAT(daemon_.cli({"team", "show", "vision"}).out,
              HasSubstr("lowered from 4 by a coordinator"));
  const Finished more = by(kCoordinator, {"quota", "set", "vision", "--max-gpus", "5"});
  EXPECT_EQ(more.exit_code, kRefused);
  EXPECT_THAT(more.err, HasSubstr("above 4"));
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

TEST_F(Teams, MistakesAreNamed) {
  EXPECT_EQ(daemon_.cli({"team", "set", "lab"}).exit_code, kUsage);
  EXPECT_EQ(daemon_.cli({"team", "create", "a b"}).exit_code, kUsage);
  const Finished unknown = daemon_.cli({"quota", "set", "labb", "--max-gpus", "1"});
  EXPECT_EQ(unknown.exit_code, kNotFound);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'lab'?"));
  EXPECT_EQ(daemon_.cli({"team", "create", "lab"}).exit_code, kRefused);
  const Finished contradiction = daemon_.cli({"quota", "set", "lab", "--guaranteed-gpus", "7"});
  EXPECT_EQ(contradiction.exit_code, kRefused);
  EXPECT_THAT(contradiction.err, HasSubstr("at most max_gpus, which is 6"));
  EXPECT_THAT(daemon_.cli({"team", "list"}).out, Not(HasSubstr("labb")));
}

}  // namespace
}  // namespace gpu_platform::e2e
