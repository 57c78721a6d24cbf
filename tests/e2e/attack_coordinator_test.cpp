// A coordinator of a team who wants more: the jobs of other teams, of operators and of admins, the
// jobs of its own team from inside, and other rows of the table of teams. Each call is one of a
// process of the coordinator's user, in words that the command line would not send, too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "harness.h"
#include "launcher_attack_fixture.h"

namespace gpu_platform::e2e {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Accounts that every Debian has.
constexpr const char* kVisionCoordinator = "sys";
constexpr const char* kSiteOperator = "bin";
constexpr const char* kSiteAdmin = "man";

const std::string kTeamsAndRoles = std::string(R"(access:
  roles: {operator: [bin], admin: [man]}
policies:
  highest_user_priority: high
teams:
  - name: vision
    users: [daemon]
    coordinators: [sys]
    max_gpus: 4
  - name: deep
    parent: vision
    users: [games]
  - name: speech
    users: [)") + kBob + "]\n";

struct Call {
  std::string method;
  std::string path;  // ID stands for a job's
  std::string body;
};

// All calls that concern one job.
const std::vector<Call>& calls_on_jobs() {
  static const std::vector<Call> calls = {
      {"GET", "/v1/jobs/ID", ""},
      {"GET", "/v1/jobs/ID/output", ""},
      {"GET", "/v1/jobs/ID/output?follow=true", ""},
      {"GET", "/v1/jobs/ID/explanation", ""},
      {"GET", "/v1/jobs/ID/events", ""},
      {"GET", "/v1/jobs/ID/wait?timeout_seconds=1", ""},
      {"GET", "/v1/jobs/ID/exec?command=/bin/true", ""},
      {"GET", "/v1/jobs/ID/attach", ""},
      {"GET", "/v1/jobs/ID/ports/22", ""},
      {"POST", "/v1/jobs/ID/cancel", "{}"},
      {"POST", "/v1/jobs/ID/kill", "{}"},
      {"POST", "/v1/jobs/ID/hold", "{}"},
      {"POST", "/v1/jobs/ID/release", "{}"},
      {"POST", "/v1/jobs/ID/requeue", "{}"},
      {"POST", "/v1/jobs/ID/requeue", R"({"hold": true})"},
      {"POST", "/v1/jobs/ID/top", "{}"},
      {"POST", "/v1/jobs/ID/signal", R"({"signal": "KILL"})"},
      {"POST", "/v1/jobs/ID/signal", R"({"signal": "USR1"})"},
      {"POST", "/v1/jobs/ID/steps", R"({"name": "x"})"},
      {"POST", "/v1/jobs/ID/update", R"({"spec": {"name": "mine"}})"},
      {"POST", "/v1/jobs/ID/update", R"({"spec": {"time_limit_seconds": 1}})"},
  };
  return calls;
}

class AttackByACoordinator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as several users";
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
    chmod(daemon_.directory().c_str(), 0755);
  }

  struct Answer {
    int status = 0;
    std::string body;  // as it came, with the head
  };
  // A request of a process of that user.
  Answer call_as(const std::string& user, const Call& call) const {
    const std::string heads = call.path.find("/exec?") != std::string::npos ||
                                      call.path.ends_with("/attach") ||
                                      call.path.find("/ports/") != std::string::npos
                                  ? "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                    "Sec-WebSocket-Version: 13\r\n"
                                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                  : "Connection: close\r\n";
    const std::string request =
        call.method + " " + call.path +
        " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + heads +
        "Content-Length: " + std::to_string(call.body.size()) + "\r\n\r\n" + call.body;
    const std::string answer =
        in_process_of(getpwnam(user.c_str())->pw_uid, [&] { return exchange(request); });
    return {answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9)) : 0, answer};
  }
  Answer call(const Call& asked) const { return call_as(kVisionCoordinator, asked); }
  Answer call_on(const std::string& job, Call asked) const {
    if (const std::size_t at = asked.path.find("ID"); at != std::string::npos) {
      asked.path.replace(at, 2, job);
    }
    return call(asked);
  }
  Answer set_team(const std::string& team, const std::string& change) const {
    return call({"POST", "/v1/teams/" + team + "/update", change});
  }

  std::string submit(const std::string& user, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = {"--user", user, "--gpus", "0"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", "echo a-secret-line; exec sleep 1000"});
    const std::string id = daemon_.submit(words);
    EXPECT_TRUE(daemon_.reaches(id, "RUNNING"));
    return id;
  }
  json team(const std::string& name) const { return daemon_.json({"team", "show", name}); }

  Daemon daemon_{{.config = kTeamsAndRoles}};

 private:
  std::string exchange(const std::string& request) const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{3, 0};  // of a stream, the first part is enough
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    daemon_.socket().copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "closed";
    (void)!write(fd, request.data(), request.size());
    std::string answer;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(fd, buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
      if (is_whole(answer)) break;
    }
    close(fd);
    return answer;
  }
  // A connection that was to become another one stays open after a refusal.
  static bool is_whole(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    const std::size_t length = answer.find("Content-Length: ");
    return end != std::string::npos && length < end &&
           answer.size() >= end + 4 + std::stoul(answer.substr(length + 16));
  }
};

TEST_F(AttackByACoordinator, JobsOfOtherTeamsOperatorsAndAdminsAreNotThere) {
  const std::string jobs[] = {submit(kBob, {"--team", "speech"}), submit(kSiteOperator),
                              submit(kSiteAdmin), submit("root")};
  const std::string missing = "999999";
  for (const Call& asked : calls_on_jobs()) {
    const int of_missing = call_on(missing, asked).status;
    for (const std::string& job : jobs) {
      const Answer answer = call_on(job, asked);
      EXPECT_EQ(answer.status, of_missing) << asked.method << " " << asked.path << answer.body;
      EXPECT_GE(answer.status, 400) << asked.path;
      EXPECT_THAT(answer.body, Not(HasSubstr("a-secret-line"))) << asked.path;
    }
  }
  for (const std::string& job : jobs) EXPECT_EQ(daemon_.job(job)["state"], "RUNNING") << job;
}

TEST_F(AttackByACoordinator, NoListNamesThemAndNoFilterReachesThem) {
  const std::string own = submit(kAnn, {"--team", "vision"});
  const std::string bobs = submit(kBob, {"--team", "speech"});
  const std::string admins = submit(kSiteAdmin);
  for (const std::string& path : std::vector<std::string>{
           "/v1/jobs?all=true", "/v1/jobs?all=true&team=speech",
           std::string("/v1/jobs?all=true&user=") + kBob, "/v1/jobs?user=man",
           "/v1/jobs?user=man&team=vision", "/v1/jobs?all=true&label=a=b", "/v1/queue?all=true"}) {
    const Answer listed = call({"GET", path, ""});
    for (const std::string& job : {bobs, admins}) {
      EXPECT_THAT(listed.body, Not(HasSubstr("\"id\":\"" + job + "\""))) << path;
    }
  }
  for (const char* const action : {"CANCEL", "KILL", "HOLD", "REQUEUE"}) {
    for (const std::string& filter :
         {std::string(R"("all_users": true, "name": "no-such-name")"),
          std::string(R"("user": ")") + kBob + "\"", std::string(R"("user": "man")"),
          std::string(R"("user": "root")"), "\"ids\": [\"" + bobs + "\", \"" + admins + "\"]",
          "\"ids\": [\"00" + bobs + "\"], \"all_users\": true"}) {
      const Answer acted = call({"POST", "/v1/jobs/bulk",
                                 std::string("{\"action\": \"") + action + "\", " + filter + "}"});
      for (const std::string& job : {bobs, admins}) {
        EXPECT_THAT(acted.body, Not(HasSubstr("\"id\":\"" + job + "\""))) << action << filter;
      }
    }
  }
  for (const std::string& job : {own, bobs, admins}) {
    EXPECT_EQ(daemon_.job(job)["state"], "RUNNING") << job;
  }
}

// It changes the jobs of its team, and neither enters nor reads them.
TEST_F(AttackByACoordinator, TheJobsOfItsTeamAreChangedAndNotEntered) {
  const std::string job = submit(kAnn, {"--team", "vision", "--time", "10m"});
  const std::string bobs = submit(kBob, {"--team", "speech"});
  for (const Call& asked : std::vector<Call>{
           {"GET", "/v1/jobs/ID/output", ""},
           {"GET", "/v1/jobs/ID/output?follow=true", ""},
           {"GET", "/v1/jobs/ID/exec?command=/bin/true", ""},
           {"GET", "/v1/jobs/ID/attach", ""},
           {"GET", "/v1/jobs/ID/ports/22", ""},
           {"POST", "/v1/jobs/ID/steps", R"({"name": "x"})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"time_limit_seconds": 864000}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"priority": "CRITICAL"}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"priority_number": 0}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"command": ["/bin/true"]}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"workdir": "/root"}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"environment": ["A=B"]}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"output": "/tmp/x"}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"team": "speech"}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"image": "localhost/x"}})"},
           {"POST", "/v1/jobs/ID/update", R"({"spec": {"epilog": ["/bin/true"]}})"}}) {
    const Answer answer = call_on(job, asked);
    EXPECT_THAT(answer.status, AnyOf(400, 403, 409)) << asked.path << asked.body << answer.body;
    EXPECT_THAT(answer.body, Not(HasSubstr("a-secret-line"))) << asked.path;
  }
  const std::string seen = call_on(job, {"GET", "/v1/jobs/ID", ""}).body;
  EXPECT_THAT(seen, HasSubstr("\"state\":\"RUNNING\""));
  EXPECT_THAT(seen, Not(HasSubstr("a-secret-line")));
  for (const char* const user : {kAnn, kBob, kSiteAdmin, "root"}) {
    const std::string body =
        std::string(R"({"user": ")") + user + R"(", "command": ["/bin/true"], "workdir": "/"})";
    EXPECT_THAT(call({"POST", "/v1/jobs", body}).status, AnyOf(400, 403)) << user;
    EXPECT_THAT(
        call({"POST", "/v1/tokens",
              std::string(R"({"name": "x", "user": ")") + user + "\", \"never_expires\": true}"})
            .status,
        AnyOf(400, 403))
        << user;
  }
  // A job that waits for another one tells nothing about it.
  const std::string waits = daemon_.submit(
      {"--user", kAnn, "--team", "vision", "--gpus", "0", "--hold", "--", "/bin/true"});
  const auto depend_on = [&](const std::string& other) {
    return call_on(waits, {"POST", "/v1/jobs/ID/update",
                           R"({"spec": {"dependency": "after:)" + other + "\"}}"})
        .status;
  };
  EXPECT_EQ(depend_on(bobs), depend_on("999999"));
}

TEST_F(AttackByACoordinator, OfItsTeamItChangesMembersAndLowersLimitsAndNothingElse) {
  ASSERT_EQ(daemon_
                .cli({"team", "create", "audio", "--coordinator", kVisionCoordinator, "--max-gpus",
                      "4", "--parent", "vision"})
                .exit_code,
            0);
  const json before = team("audio");
  for (const char* const change :
       {R"({"parent": ""})",
        R"({"parent": "speech"})",
        R"({"shares": 1000000})",
        R"({"add_coordinators": ["daemon"]})",
        R"({"remove_coordinators": ["sys"]})",
        R"({"guaranteed_gpus": 8})",
        R"({"borrow_limit": 8})",
        R"({"lend_limit": 0})",
        R"({"over_quota_weight": 1000000})",
        R"({"max_gpus": 5})",
        R"({"max_gpus": 4294967295})",
        R"({"gpu_hours": 100, "max_gpus": 5})",
        R"({"max_gpus": 3, "shares": 2})",
        R"({"clear": ["max_gpus"]})",
        R"({"clear": ["guaranteed_gpus"]})",
        R"({"max_gpus": 2, "clear": ["max_gpus"], "shares": 3})",
        R"({"max_gpus": -1})",
        R"({"max_gpus": 4294967296})",
        R"({"max_gpus": 1e2})",
        R"({"max_gpus": "2"})",
        R"({"clear": ["members"]})",
        R"({"clear": ["max_gpus\n"]})",
        R"({"add_members": [{"user": ""}]})",
        R"({"add_members": [{"user": "a\nb"}]})",
        R"({"add_members": [{"user": "a b"}]})",
        R"({"add_members": [{"user": "daemon", "shares": 0}]})",
        R"({"add_members": [{"user": "daemon", "shares": 4294967295}]})",
        R"({"remove_members": ["games"]})",
        R"({"add_members": [{"user": "daemon"}], "add_coordinators": ["sys"]})"}) {
    set_team("audio", change);  // any answer will do
    json after = team("audio");
    // A limit that it took back is as an administrator gave it.
    for (const char* const key :
         {"parent", "shares", "coordinators", "max_gpus", "max_running_jobs", "gpu_hours",
          "guaranteed_gpus", "borrow_limit", "lend_limit", "over_quota_weight", "members"}) {
      EXPECT_EQ(after[key], before[key]) << change << " " << key;
    }
  }
  EXPECT_EQ(call({"DELETE", "/v1/teams/audio", ""}).status, 403);
  EXPECT_EQ(call({"POST", "/v1/teams", R"({"name": "mine", "parent": "audio"})"}).status, 403);
  EXPECT_EQ(team("audio")["coordinators"], json::array({kVisionCoordinator}));
}

TEST_F(AttackByACoordinator, OtherTeamsAndTheSiteAreNotItsOwn) {
  const json before = team("speech");
  const std::string changes[] = {R"({"max_gpus": 0})",
                                 R"({"add_members": [{"user": "sys"}]})",
                                 R"({"remove_members": ["games"]})",
                                 R"({"clear": ["max_gpus"]})",
                                 R"({"max_gpus": 1, "must_exist": true})",
                                 "{}"};
  for (const std::string& change : changes) {
    EXPECT_THAT(set_team("speech", change).status, AnyOf(400, 403, 409)) << change;
    // One that is not there is not made by changing it.
    EXPECT_THAT(set_team("mine", change).status, AnyOf(400, 403, 404)) << change;
    EXPECT_THAT(set_team("vision%2f..%2fspeech", change).status, AnyOf(400, 403, 404)) << change;
  }
  EXPECT_EQ(team("speech"), before);
  EXPECT_EQ(daemon_.cli({"team", "show", "mine"}).exit_code, 3);
  for (const Call& asked :
       std::vector<Call>{{"POST", "/v1/gpus/drain", R"({"gpu": "dgx-h100-1:0"})"},
                         {"POST", "/v1/gpus/offline", R"({"gpu": "dgx-h100-1:0", "force": true})"},
                         {"POST", "/v1/gpus/online", R"({"gpu": "dgx-h100-1:0"})"},
                         {"POST", "/v1/reservations", R"({"name": "x"})"},
                         {"DELETE", "/v1/reservations/x", ""},
                         {"GET", "/v1/configuration", ""}}) {
    EXPECT_EQ(call(asked).status, 403) << asked.path;
  }
  const std::string job = R"({"command": ["/bin/true"], "workdir": "/", "gpus": 0, "team": ")";
  EXPECT_EQ(call({"POST", "/v1/jobs", job + "speech\"}"}).status, 403);
  const Answer trail = call({"GET", "/v1/audit?user=man", ""});
  EXPECT_THAT(trail.status, AnyOf(200, 403));
  EXPECT_THAT(trail.body, Not(HasSubstr("\"user\":\"man\"")));
}

}  // namespace
}  // namespace gpu_platform::e2e
