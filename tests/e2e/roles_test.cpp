// Roles as people have them: an operator, a viewer and a coordinator, each a process of a user of
// its own, and what the daemon lets each of them do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <fstream>

#include "harness.h"
#include "several_users.h"

namespace gpu_platform::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Ann is a user of the team vision, Bob has no team; further accounts that every Debian has.
constexpr const char* kOperator = "bin";
constexpr const char* kCoordinator = "sys";
constexpr const char* kViewer = "sync";

constexpr const char* kSite = R"(access:
  roles: {operator: [bin], viewer: [sync]}
teams:
  - name: vision
    users: [daemon]
    coordinators: [sys]
)";

class Roles : public SeveralUsers {
 protected:
  Roles() : SeveralUsers({.config = kSite}) {}

  int exit_by(const char* user, std::vector<std::string> arguments) const {
    return by(user, std::move(arguments)).exit_code;
  }
  json json_by(const char* user, std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    return json::parse(by(user, std::move(arguments)).out, nullptr, false);
  }
  std::string submit(const char* user) const {
    const Finished done = by(user, {"submit", "--gpus", "1", "--", "/bin/sh", "-c",
                                    "echo a-secret-line; exec sleep 1000"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const std::string id = done.out.substr(0, done.out.find('\n'));
    EXPECT_TRUE(daemon_.reaches(id, "RUNNING"));
    return id;
  }
};

constexpr int kNotFound = 3;
constexpr int kRefused = 4;
constexpr int kExecRefused = 251;

TEST_F(Roles, AnOperatorRunsTheClusterAndEntersNoJob) {
  const std::string job = submit(kBob);
  EXPECT_EQ(json_by(kOperator, {"whoami"})["role"], "OPERATOR");
  EXPECT_THAT(by(kOperator, {"jobs", "list", "--all"}).out, HasSubstr(kBob));
  EXPECT_EQ(exit_by(kOperator, {"jobs", "requeue", "--hold", job}), 0);
  ASSERT_TRUE(daemon_.reaches(job, "HELD"));
  EXPECT_EQ(exit_by(kBob, {"jobs", "release", job}), kRefused) << "an operator holds it";
  EXPECT_EQ(exit_by(kOperator, {"jobs", "release", job}), 0);
  ASSERT_TRUE(daemon_.reaches(job, "RUNNING"));
  EXPECT_EQ(exit_by(kOperator, {"jobs", "update", job, "--priority", "critical"}), 0);
  EXPECT_EQ(exit_by(kOperator, {"drain", "--gpu", "dgx-h100-1:3"}), 0);
  EXPECT_EQ(exit_by(kOperator, {"online", "--gpu", "dgx-h100-1:3"}), 0);
  EXPECT_EQ(exit_by(kOperator, {"reservations", "create", "course", "--begin", "tomorrow",
                                "--duration", "1h", "--gpus", "1", "--user", kBob}),
            0);
  const Finished entered = by(kOperator, {"jobs", "exec", job, "--", "/bin/true"});
  EXPECT_EQ(entered.exit_code, kExecRefused) << entered.err;
  EXPECT_THAT(entered.err, HasSubstr("belongs to another user"));
  EXPECT_EQ(exit_by(kOperator, {"jobs", "logs", job}), kRefused);
  EXPECT_EQ(exit_by(kOperator, {"submit", "--user", kBob, "--gpus", "0", "--", "/bin/true"}),
            kRefused);
  EXPECT_EQ(exit_by(kOperator, {"jobs", "cancel", job}), 0);
  ASSERT_TRUE(daemon_.reaches(job, "CANCELLED"));
}

TEST_F(Roles, AllJobsAreTheCallersOwnAndThoseOfAllUsersAreNamedSo) {
  const std::string bobs = submit(kBob);
  const std::string anns = submit(kAnn);  // in the team vision
  for (const char* const caller : {kOperator, kCoordinator, "root"}) {
    const Finished own = by(caller, {"jobs", "kill", "--all", "--yes"});
    EXPECT_EQ(own.exit_code, 0) << own.err;
    EXPECT_THAT(own.err, HasSubstr("no such jobs")) << caller;
  }
  EXPECT_EQ(exit_by(kAnn, {"jobs", "hold", "--all-users", "--yes"}), kRefused);
  EXPECT_EQ(exit_by(kOperator, {"jobs", "kill", "--all-users"}), 2) << "there is no one to ask";
  EXPECT_EQ(daemon_.job(bobs)["state"], "RUNNING");
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "kill", "--all-users", "--yes"}), 0);
  ASSERT_TRUE(daemon_.reaches(anns, "CANCELLED"));
  EXPECT_EQ(daemon_.job(bobs)["state"], "RUNNING") << "of no team of the coordinator";
  EXPECT_EQ(exit_by(kOperator, {"jobs", "kill", "--all-users", "--yes"}), 0);
  EXPECT_TRUE(daemon_.reaches(bobs, "CANCELLED"));
}

TEST_F(Roles, AViewerLooksAndChangesNothing) {
  const std::string job = submit(kBob);
  EXPECT_EQ(json_by(kViewer, {"whoami"})["role"], "VIEWER");
  EXPECT_EQ(exit_by(kViewer, {"status"}), 0);
  EXPECT_EQ(exit_by(kViewer, {"queue"}), 0);
  EXPECT_EQ(json_by(kViewer, {"jobs", "list", "--all"})["jobs"].size(), 0U);
  const Finished submitted = by(kViewer, {"submit", "--gpus", "0", "--", "/bin/true"});
  EXPECT_EQ(submitted.exit_code, kRefused);
  EXPECT_THAT(submitted.err, HasSubstr("user sync has the role viewer"));
  EXPECT_EQ(exit_by(kViewer, {"jobs", "cancel", job}), kRefused);
  EXPECT_EQ(exit_by(kViewer, {"drain", "--gpu", "dgx-h100-1:3"}), kRefused);
  const json refused = daemon_.json({"audit", "list", "--user", kViewer})["entries"];
  ASSERT_FALSE(refused.empty()) << "refusals without rights are in the trail";
  EXPECT_EQ(refused[0]["code"], "PERMISSION_DENIED") << refused[0];
}

TEST_F(Roles, ACoordinatorChangesTheJobsOfItsTeamAndSeesNoMoreThanThePolicySays) {
  const std::string job = submit(kAnn);
  const std::string others = submit(kBob);
  EXPECT_EQ(json_by(kCoordinator, {"whoami"})["coordinates"], json::array({"vision"}));
  const json seen = json_by(kCoordinator, {"jobs", "describe", job});
  EXPECT_EQ(seen["spec"]["team"], "vision");
  EXPECT_TRUE(seen["spec"]["workdir"].is_null()) << seen;
  EXPECT_EQ(seen.dump().find("a-secret-line"), std::string::npos) << seen;
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "logs", job}), kRefused);
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "describe", others}), kNotFound);
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", others}), kNotFound);
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "requeue", "--hold", job}), 0);
  ASSERT_TRUE(daemon_.reaches(job, "HELD"));
  EXPECT_EQ(exit_by(kAnn, {"jobs", "release", job}), kRefused);
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "release", job}), 0);
  EXPECT_EQ(exit_by(kCoordinator, {"jobs", "cancel", job}), 0);
  ASSERT_TRUE(daemon_.reaches(job, "CANCELLED"));
}

TEST_F(Roles, AReloadAppointsAnOperatorAndIsInTheAuditTrail) {
  const std::string job = submit(kBob);
  EXPECT_EQ(exit_by(kAnn, {"jobs", "cancel", job}), kNotFound);
  const std::string path = daemon_.directory() + "/config.yaml";
  std::string text = read_file(path);
  const std::size_t at = text.find("[bin]");
  ASSERT_NE(at, std::string::npos) << text;
  std::ofstream(path) << text.replace(at, 5, "[bin, daemon]");
  kill(daemon_.pid(), SIGHUP);
  ASSERT_TRUE(eventually([&] { return json_by(kAnn, {"whoami"})["role"] == "OPERATOR"; }))
      << daemon_.log();
  EXPECT_EQ(exit_by(kAnn, {"jobs", "cancel", job}), 0);
  const auto is_in_trail = [&] {
    const json entries = daemon_.json({"audit", "list", "--action", "configure"})["entries"];
    return std::ranges::any_of(entries,
                               [](const json& entry) { return entry["target"] == "access"; });
  };
  EXPECT_TRUE(eventually(is_in_trail));
}

}  // namespace
}  // namespace gpu_platform::e2e
