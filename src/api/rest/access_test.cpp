#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "api/call_access.h"
#include "api/calls.h"
#include "api/fake_core_test.h"
#include "api/rest/dispatcher.h"
#include "api/rest/session.h"
#include "base/check.h"
#include "gpu_platform/v1/access.pb.h"
#include "gpu_platform/v1/descriptors.h"

// Every call, for every role, on what is the caller's own and on what belongs to others: what the
// door answers follows from the calls' rows in proto/ alone.

namespace gpu_platform::api {
namespace {

namespace pb = google::protobuf;
using v1::Access;

// A role that a user may have, and how far it goes in the order of the rows.
struct Who {
  std::string user;
  std::uint32_t uid = 0;
  int rank = 0;  // as Access::Least
  bool coordinates = false;
};
const std::vector<Who> kAll = {{"vera", 2001, Access::VIEWER},     {"una", 2002, Access::USER},
                               {"cora", 2003, Access::USER, true}, {"otto", 2004, Access::OPERATOR},
                               {"eve", 2005, Access::ADMIN},       {"root", 0, Access::ROOT}};
constexpr std::uint32_t kOther = 3000;

enum class Whose { kOwn, kOthers, kOfItsTeam };

model::AccessRules rules_with(const model::AccessSettings& more = {}) {
  model::AccessSettings settings = more;
  settings.roles = {{"vera", model::Role::kViewer},
                    {"otto", model::Role::kOperator},
                    {"eve", model::Role::kAdmin}};
  settings.coordinators = {{"vision", {"cora"}}};
  model::Organisation organisation;
  organisation.teams = {{.name = "vision", .members = {{"cora"}, {"una"}}}};
  return {settings, organisation, 0};
}

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    core_.set_rules(rules_with());
    for (const Who& who : kAll) {
      own_[who.user] = core_.add_job(who.user, who.uid);
      core_.start_job(own_[who.user], {});
    }
    others_ = core_.add_job("oscar", kOther, "secret-work");
    of_team_ = core_.add_job_of_team("tom", kOther + 1, "vision");
    for (const model::JobId job : {others_, of_team_}) core_.start_job(job, {});
  }

  model::JobId job_of(const Who& who, Whose whose) const {
    if (whose == Whose::kOthers) return others_;
    return whose == Whose::kOfItsTeam ? of_team_ : own_.at(who.user);
  }

  // A token of the caller, or of another user; there again if it was revoked.
  model::TokenId token_of(const Who& who, Whose whose) {
    model::Token token;
    token.id = model::TokenId(whose == Whose::kOwn ? 1 : 2);
    token.name = "laptop";
    token.user = whose == Whose::kOwn ? who.user : "oscar";
    token.uid = whose == Whose::kOwn ? who.uid : kOther;
    core_.put_token(token);
    return token.id;
  }

  struct Answer {
    int status = 0;
    std::string body;
  };

  // The connection of one user; requests follow each other on it.
  class Connection {
   public:
    Connection(AccessTest& test, const Who& who) : test_(test) {
      int ends[2];
      CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
      client_ = ends[0];
      Peer peer;
      peer.caller = {.user = who.user, .uid = who.uid, .door = model::Door::kUnixSocket};
      peer.gid = who.uid;
      LocalSocket socket(test.io_, boost::asio::local::stream_protocol(), ends[1]);
      session_ = std::make_shared<Session>(
          std::move(socket), peer,
          Session::Environment{test.dispatcher_,
                               test.calls_.meter(),
                               test.watcher_,
                               test.io_,
                               test.gate_,
                               test.limits_,
                               test.budgets_,
                               {who.uid, "user " + who.user, who.uid == 0},
                               [] { return std::string("r1"); },
                               [](Peer&) {},
                               [](Session*) {}});
      session_->start();
    }
    ~Connection() {
      session_->close();
      test_.io_.restart();
      test_.io_.poll();
      ::close(client_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // A stream's answer is its head, and what is there of it at once.
    Answer ask(const std::string& method, const std::string& target, const std::string& body) {
      std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: h\r\n", method, target);
      if (!body.empty()) {
        request +=
            fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
      }
      request += "\r\n" + body;
      CHECK(::send(client_, request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size()));
      std::string answer;
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (answer.find("\r\n\r\n") == std::string::npos || !is_whole(answer)) {
        CHECK(std::chrono::steady_clock::now() < limit);
        test_.io_.restart();
        test_.io_.poll();
        char buffer[16384];
        const ssize_t got = ::recv(client_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got > 0) answer.append(buffer, static_cast<std::size_t>(got));
        if (got == 0) break;
      }
      const std::size_t head = answer.find("\r\n\r\n");
      std::string text = answer.substr(head + 4);
      if (answer.ends_with("0\r\n\r\n")) text = without_chunks(text);
      return {std::stoi(answer.substr(9, 3)), text};
    }

   private:
    static std::string without_chunks(std::string_view text) {
      std::string out;
      while (true) {
        const std::size_t size = std::stoul(std::string(text.substr(0, 16)), nullptr, 16);
        if (size == 0) return out;
        text.remove_prefix(text.find("\r\n") + 2);
        out += text.substr(0, size);
        text.remove_prefix(size + 2);
      }
    }
    static bool is_whole(const std::string& answer) {
      const std::size_t head = answer.find("\r\n\r\n");
      const std::size_t length = answer.find("Content-Length: ");
      if (length != std::string::npos && length < head) {
        return answer.size() - head - 4 >= std::stoul(answer.substr(length + 16));
      }
      return answer.find("text/event-stream") != std::string::npos || answer.ends_with("0\r\n\r\n");
    }

    AccessTest& test_;
    int client_ = -1;
    std::shared_ptr<Session> session_;
  };

  Answer ask(const Who& who, const std::string& method, const std::string& target,
             const std::string& body = {}) {
    Connection connection(*this, who);
    return connection.ask(method, target, body);
  }

  FakeCore core_;
  CoreAccess access_ = core_.access();
  Calls calls_{access_, {.version = "1.2.3", .users = {.min_uid = 1}}};
  Dispatcher dispatcher_{calls_, core_.hub(), std::size_t{1} << 20};
  Budgets budgets_{BudgetLimits()};
  boost::asio::io_context io_{1};
  FileWatcher watcher_{io_};
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>(io_);
  SessionLimits limits_;
  std::map<std::string, model::JobId> own_;
  model::JobId others_;
  model::JobId of_team_;
};

// What a call needs besides the job in its path. "OWNER" stands for the owner of what is touched.
struct Extra {
  std::string query;
  std::string body;
};
const std::map<std::string_view, Extra> kExtras = {
    {"SubmitJob", {"", R"({"command":["true"],"user":"OWNER"})"}},
    {"CheckJob", {"", R"({"spec":{"command":["true"],"user":"OWNER"}})"}},
    {"ActOnJobs", {"", R"({"action":"CANCEL","user":"OWNER"})"}},
    {"RequeueJob", {"", "{}"}},
    {"SignalJob", {"", R"({"signal":"USR1"})"}},
    {"UpdateJob", {"", R"({"spec":{"name":"new"}})"}},
    {"RecordStep",
     {"", R"({"attempt":1,"number":0,"name":"a","tasks":1,"started_at":"2025-06-15T15:07:00Z"})"}},
    {"StreamOutput", {"?follow=true", ""}},
    {"WaitJob", {"?timeout_seconds=0", ""}},
    {"ExecInJob", {"?command=true", ""}},
    {"DrainGpus", {"", R"({"gpu":"dgx-h100-1:0"})"}},
    {"TakeGpusOffline", {"", R"({"gpu":"dgx-h100-1:0"})"}},
    {"BringGpusOnline", {"", R"({"gpu":"dgx-h100-1:0"})"}},
    {"ResetGpus", {"", R"({"gpu":"dgx-h100-1:0"})"}},
    {"CheckGpus", {"", R"({"gpu":"dgx-h100-1:0"})"}},
    {"CreateToken", {"", R"({"name":"laptop","user":"OWNER"})"}},
    {"GetGpuHealth", {"?gpu=dgx-h100-1:0", ""}},
    {"SizeModelServer", {"", R"({"model":"llama-3-70b","settings":[]})"}},
    {"CreateReservation",
     {"", R"({"name":"r","begin":"2099-01-01T00:00:00Z","end":"2099-01-02T00:00:00Z","gpus":1})"}},
    {"CreateTeam", {"", R"({"name":"t","max_gpus":3})"}},
    {"SetTeam", {"", R"({"max_gpus":3})"}},
    {"AcceptInvitation", {"", "{}"}},
    {"DeclineInvitation", {"", "{}"}},
    {"SetBudget", {"", R"({"amount":"100.00"})"}},
    {"OverrideBudget", {"", R"({"until":"2099-01-01T00:00:00Z","why":"a deadline"})"}},
    {"UpdateReservation", {"", R"({"end":"2099-01-02T00:00:00Z"})"}},
    {"AcknowledgeAlert", {"", "{}"}},
    {"CreateSilence", {"", R"({"matchers":{"rule":"GpuHot"},"duration_seconds":60})"}},
    {"TestAlertChannel", {"", "{}"}},
};

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

bool allows(Access::Least least, const Who& who) {
  return least != Access::LEAST_UNSPECIFIED && static_cast<int>(least) <= who.rank;
}

// What the path of a call names.
enum class Names { kNothing, kJob, kToken };

enum class Expected { kAllowed, kRefused, kNotFound };

// What the row alone says.
Expected expected(const Access& row, const Who& who, Whose whose, Names names) {
  if (!allows(row.role(), who)) return Expected::kRefused;
  if (whose == Whose::kOwn || row.others() == Access::LEAST_UNSPECIFIED) return Expected::kAllowed;
  // A change of many jobs chooses those that the caller may touch.
  const bool as_coordinator =
      who.coordinates && (whose == Whose::kOfItsTeam || names != Names::kJob);
  if (allows(row.others(), who) || (as_coordinator && row.coordinators())) {
    return Expected::kAllowed;
  }
  // What the caller does not see is not there.
  const bool is_seen = names == Names::kJob && (who.rank >= Access::OPERATOR || as_coordinator);
  return names == Names::kNothing || is_seen ? Expected::kRefused : Expected::kNotFound;
}

TEST_F(AccessTest, AnswersEveryCallOfEveryRoleByItsRow) {
  std::size_t checked = 0;
  // A user beside root that each machine has; the range lets it have tokens.
  const auto account = host::system_users()->find(34);
  ASSERT_TRUE(account.has_value());
  const std::string& another = account->name;
  for (const Route& route : dispatcher_.table().routes()) {
    const Access& row = route.call->options().GetExtension(v1::access);
    const bool names_job = route.path.starts_with("/v1/jobs/{id}");
    const bool names_token = route.path.find("{token}") != std::string::npos;
    const Names names = names_job ? Names::kJob : names_token ? Names::kToken : Names::kNothing;
    const bool names_owner = kExtras.contains(route.call->name()) &&
                             kExtras.at(route.call->name()).body.find("OWNER") != std::string::npos;
    for (const Who& who : kAll) {
      for (const Whose whose : {Whose::kOwn, Whose::kOthers, Whose::kOfItsTeam}) {
        // A list and a change of the site are the same call whosever things are meant.
        if (names == Names::kNothing && !names_owner && whose != Whose::kOwn) continue;
        if (!names_job && whose == Whose::kOfItsTeam) continue;
        const bool is_of_roots_token = route.call->name() == "CreateToken" && who.uid == 0;
        if (is_of_roots_token && whose == Whose::kOwn) continue;  // there are none
        const Extra extra =
            kExtras.contains(route.call->name()) ? kExtras.at(route.call->name()) : Extra();
        std::string target = replaced(route.path, "{id}", std::to_string(job_of(who, whose).value));
        target = replaced(replaced(target, "{port}", "80"), "{name}", "r") + extra.query;
        target = replaced(target, "{holder}", "project");
        if (names_token) {
          target = replaced(target, "{token}", std::to_string(token_of(who, whose).value));
        }
        const std::string owner = whose == Whose::kOwn ? who.user : another;
        const Answer answer = ask(who, route.method, target, replaced(extra.body, "OWNER", owner));
        const std::string what =
            fmt::format("{} as {} on {}: {} {}", route.call->name(), who.user,
                        whose == Whose::kOwn ? "its own" : "another's", answer.status, answer.body);
        switch (expected(row, who, whose, names)) {
          case Expected::kAllowed:
            EXPECT_NE(answer.status, 403) << what;
            EXPECT_FALSE((names_job || names_token) && answer.status == 404) << what;
            // The users of this test have no accounts, which tokens are for.
            EXPECT_TRUE(answer.status != 400 || route.call->name() == "CreateToken") << what;
            EXPECT_NE(answer.status, 500) << what;
            break;
          case Expected::kRefused:
            EXPECT_EQ(answer.status, 403) << what;
            if (!allows(row.role(), who)) {
              EXPECT_NE(answer.body.find("has the role"), std::string::npos) << what;
            } else if (names_job) {
              EXPECT_NE(answer.body.find(fmt::format("job {} belongs to another user",
                                                     job_of(who, whose).value)),
                        std::string::npos)
                  << what;
            }
            break;
          case Expected::kNotFound:
            EXPECT_EQ(answer.status, 404) << what;
            break;
        }
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 500U);
}

// All services of proto/, served or not.
std::vector<const pb::ServiceDescriptor*> services() {
  pb::FileDescriptorSet files;
  CHECK(files.ParseFromString(std::string(v1::descriptor_set())));
  // The door's own code has the calls that it serves; others are in no pool.
  const RoutingTable table;
  CHECK(!table.routes().empty());
  std::vector<const pb::ServiceDescriptor*> found;
  for (const pb::FileDescriptorProto& file : files.file()) {
    for (const pb::ServiceDescriptorProto& service : file.service()) {
      found.push_back(pb::DescriptorPool::generated_pool()->FindServiceByName(file.package() + "." +
                                                                              service.name()));
      CHECK(found.back() != nullptr);
    }
  }
  return found;
}

TEST(AccessRows, EveryCallWithARouteIsServed) {
  std::set<const pb::MethodDescriptor*> served;
  const RoutingTable table;
  for (const Route& route : table.routes()) served.insert(route.call);
  for (const pb::ServiceDescriptor* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      if (!service->method(i)->options().HasExtension(v1::rest)) continue;
      EXPECT_TRUE(served.contains(service->method(i))) << service->method(i)->full_name();
    }
  }
}

TEST(AccessRows, EveryCallHasOne) {
  std::size_t calls = 0;
  for (const pb::ServiceDescriptor* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const pb::MethodDescriptor& call = *service->method(i);
      ASSERT_TRUE(call.options().HasExtension(v1::access)) << call.full_name();
      const Access& row = call.options().GetExtension(v1::access);
      EXPECT_NE(row.role(), Access::LEAST_UNSPECIFIED) << call.full_name();
      EXPECT_TRUE(row.others() == Access::LEAST_UNSPECIFIED || row.others() >= row.role())
          << call.full_name() << ": others are not nearer than oneself";
      ++calls;
    }
  }
  EXPECT_GT(calls, 40U);
}

TEST(AccessRows, AgreeWithTheRightsToSee) {
  const std::map<model::Sight, model::Right> rights = {
      {model::Sight::kJobs, model::Right::kSeeJobs},
      {model::Sight::kCommands, model::Right::kSeeCommands},
      {model::Sight::kOutput, model::Right::kSeeOutput},
      {model::Sight::kUsage, model::Right::kSeeUsage}};
  for (const pb::ServiceDescriptor* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const CallAccess access = access_of(*service->method(i));
      if (!access.sight) continue;
      const model::Role least = model::least_role(rights.at(*access.sight));
      EXPECT_EQ(static_cast<int>(access.others), static_cast<int>(least) + Access::VIEWER)
          << service->method(i)->full_name();
    }
  }
}

// The numbers of three enumerations of roles are taken for each other.
TEST(AccessRows, RolesHaveTheSameOrderEverywhere) {
  for (std::size_t i = 0; i < model::kRoles; ++i) {
    const std::string name(model::to_string(static_cast<model::Role>(i)));
    std::string upper = name;
    for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
    EXPECT_EQ(v1::Role_Name(static_cast<int>(i) + 1), "ROLE_" + upper);
    EXPECT_EQ(Access::Least_Name(static_cast<Access::Least>(Access::VIEWER + static_cast<int>(i))),
              upper);
  }
}

TEST_F(AccessTest, HidesTheCommandsOfJobsThatItShows) {
  model::AccessSettings open;
  open.visibility[0] = model::Audience::kAll;
  core_.set_rules(rules_with(open));
  const std::string target = fmt::format("/v1/jobs/{}", others_.value);
  const auto job = nlohmann::json::parse(ask(kAll[1], "GET", target).body);
  EXPECT_EQ(job["spec"]["user"], "oscar");
  EXPECT_TRUE(job["spec"]["command"].empty() || job["spec"]["command"].is_null()) << job.dump();
  EXPECT_TRUE(job["spec"]["workdir"].is_null()) << job.dump();
  EXPECT_TRUE(job["output"].is_null()) << job.dump();
  const auto own = nlohmann::json::parse(
      ask(kAll[1], "GET", fmt::format("/v1/jobs/{}", own_["una"].value)).body);
  EXPECT_EQ(own["spec"]["command"], nlohmann::json::array({"work"}));
  open.visibility[1] = model::Audience::kAll;
  core_.set_rules(rules_with(open));
  const auto shown = nlohmann::json::parse(ask(kAll[1], "GET", target).body);
  EXPECT_EQ(shown["spec"]["command"], nlohmann::json::array({"work"}));
}

TEST_F(AccessTest, ShowsWhatAJobPrintsByItsOwnKey) {
  core_.print(others_, "a line\n");
  const std::string target = fmt::format("/v1/jobs/{}/output", others_.value);
  model::AccessSettings open;
  open.visibility[0] = model::Audience::kAll;
  core_.set_rules(rules_with(open));
  EXPECT_EQ(ask(kAll[1], "GET", target).status, 403);
  EXPECT_EQ(ask(kAll[1], "GET", target + "?follow=true").status, 403);
  open.visibility[2] = model::Audience::kAll;
  core_.set_rules(rules_with(open));
  EXPECT_EQ(ask(kAll[1], "GET", target).status, 200);
}

TEST_F(AccessTest, ListsShowWhatEachSees) {
  const auto shown = [&](const Who& who, const std::string& target) {
    return ask(who, "GET", target).body.find("secret-work") != std::string::npos;
  };
  for (const Who& who : kAll) {
    const bool sees_all = who.rank >= Access::OPERATOR;
    EXPECT_EQ(shown(who, "/v1/jobs?all=true"), sees_all) << who.user;
    const model::JobId ended = core_.add_job("oscar", kOther, "secret-work");
    core_.start_job(ended, {});
    core_.end_job(ended, 0);
    EXPECT_EQ(shown(who, "/v1/jobs?all=true&state=COMPLETED"), sees_all) << who.user;
  }
  core_.add_job("oscar", kOther, "secret-work");
  for (const Who& who : kAll) {
    EXPECT_EQ(shown(who, "/v1/queue?all=true"), who.rank >= Access::OPERATOR) << who.user;
  }
}

TEST_F(AccessTest, ACoordinatorsListHasTheJobsOfItsTeam) {
  const auto list = nlohmann::json::parse(ask(kAll[2], "GET", "/v1/jobs?all=true").body)["jobs"];
  ASSERT_EQ(list.size(), 2U) << list.dump();
  EXPECT_EQ(list[0]["spec"]["user"], "tom");
  EXPECT_EQ(list[1]["spec"]["user"], "cora");
}

TEST_F(AccessTest, AReloadReachesOpenConnections) {
  Connection una(*this, kAll[1]);
  const std::string cancel = fmt::format("/v1/jobs/{}/cancel", others_.value);
  EXPECT_EQ(una.ask("POST", cancel, "").status, 404);
  model::AccessSettings settings;
  settings.roles = {{"una", model::Role::kOperator}};
  core_.set_rules({settings, {}, 0});
  EXPECT_EQ(una.ask("POST", cancel, "").status, 200);
  settings.roles = {{"una", model::Role::kViewer}};
  core_.set_rules({settings, {}, 0});
  EXPECT_EQ(una.ask("POST", cancel, "").status, 403);
}

TEST_F(AccessTest, AdminsEnterJobsWhereTheSiteSaysSoButNeverThoseOfRoot) {
  const auto exec = [&](model::JobId job) {
    return ask(kAll[4], "GET", fmt::format("/v1/jobs/{}/exec?command=true", job.value)).status;
  };
  EXPECT_EQ(exec(others_), 403);
  model::AccessSettings settings;
  settings.admins_act_as_users = true;
  core_.set_rules(rules_with(settings));
  EXPECT_EQ(exec(others_), 409) << "no job of this fake can be entered";
  EXPECT_EQ(exec(own_["root"]), 403);
}

TEST_F(AccessTest, TellsTheCallerWhoItIs) {
  const auto who = nlohmann::json::parse(ask(kAll[2], "GET", "/v1/whoami").body);
  EXPECT_EQ(who["user"], "cora");
  EXPECT_EQ(who["uid"], 2003);
  EXPECT_EQ(who["role"], "USER");
  EXPECT_EQ(who["teams"], nlohmann::json::array({"vision"}));
  EXPECT_EQ(who["coordinates"], nlohmann::json::array({"vision"}));
  EXPECT_EQ(who["credential"], "SOCKET");
  EXPECT_TRUE(who["credential_name"].is_null() && who["token"].is_null());
  const auto root = nlohmann::json::parse(ask(kAll[5], "GET", "/v1/whoami").body);
  EXPECT_EQ(root["role"], "ADMIN");
}

}  // namespace
}  // namespace gpu_platform::api
