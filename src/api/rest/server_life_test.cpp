#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "api/rest/server_fixture_test.h"
#include "api/rest/unix_listener.h"

namespace gpu_platform::api {
namespace {

TEST_F(ServerTest, ForgetsClientsThatVanish) {
  core_.add_job(user_, uid_);
  start();
  const std::string submit = request_text("POST", "/v1/jobs", R"({"command":["true"]})");
  const std::string talk =
      submit + request_text("GET", "/v1/jobs/1/wait") + request_text("GET", "/v1/events");
  for (std::size_t length = 0; length <= talk.size(); ++length) {
    RawClient client(options_.socket_path);
    client.send(std::string_view(talk).substr(0, length));
    if (length >= submit.size() && length % 3 == 0) {
      EXPECT_EQ(client.receive()->status, 201);
    }
  }
  EXPECT_TRUE(all_connections_gone());
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, ForgetsAClientThatVanishesBeforeTheCoreAnswers) {
  start();
  core_.hold_commands(true);
  {
    RawClient client(options_.socket_path);
    client.send(request_text("POST", "/v1/jobs", R"({"command":["true"]})"));
    ASSERT_TRUE(eventually([&] { return core_.held_commands() == 1; }));
  }
  core_.hold_commands(false);
  EXPECT_TRUE(all_connections_gone());
  EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 200);
}

TEST_F(ServerTest, LetsOneUserHaveSoManyConnections) {
  options_.budgets.connections = 3;
  start();
  RawClient one(options_.socket_path);
  RawClient two(options_.socket_path);
  RawClient three(options_.socket_path);
  EXPECT_EQ(one.request("GET", "/v1/health")->status, 200);
  EXPECT_EQ(three.request("GET", "/v1/health")->status, 200);
  RawClient four(options_.socket_path);
  EXPECT_EQ(four.receive()->status, 503);
  one.close();
  EXPECT_TRUE(eventually([&] { return server_->figures().connections == 2; }));
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, WorksOnSeveralThreads) {
  options_.io_threads = 2;
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  start();
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      RawClient client(options_.socket_path);
      for (int i = 0; i < 50; ++i) {
        const auto created = client.request("POST", "/v1/jobs", R"({"command":["true"]})");
        ASSERT_TRUE(created.has_value());
        EXPECT_EQ(created->status, 201);
        EXPECT_EQ(client.request("GET", created->headers.at("location"))->status, 200);
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(core_.commands().size(), 200U);
}

// ---- the end ----

TEST_F(ServerTest, RemovesItsPathAndLetsTheRequestUnderWayFinish) {
  start();
  core_.hold_commands(true);
  RawClient client(options_.socket_path);
  client.send(request_text("POST", "/v1/jobs", R"({"command":["true"]})"));
  ASSERT_TRUE(eventually([&] { return core_.held_commands() == 1; }));
  const std::jthread stopper([&] { server_->stop(); });
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(options_.socket_path); }));
  core_.hold_commands(false);
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 201);
  // The answer may have been under way before the connection heard of the stop.
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, SurvivesAnswersThatComeAfterItsEnd) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.stop_grace = std::chrono::milliseconds(10);
  start();
  core_.hold_commands(true);
  RawClient client(options_.socket_path);
  client.send(request_text("POST", "/v1/jobs", R"({"command":["true"]})"));
  ASSERT_TRUE(eventually([&] { return core_.held_commands() == 1; }));
  server_.reset();
  core_.hold_commands(false);
  EXPECT_TRUE(eventually([&] { return core_.snapshot()->jobs.size() == 1; }));
  EXPECT_FALSE(client.receive().has_value());
}

// ---- the path ----

TEST_F(ServerTest, ListensForAllUsersAsSoonAsItsPathIsThere) {
  start();
  struct stat found{};
  ASSERT_EQ(::stat(options_.socket_path.c_str(), &found), 0);
  EXPECT_TRUE(S_ISSOCK(found.st_mode));
  EXPECT_EQ(found.st_mode & 0777, 0666U);
  EXPECT_FALSE(std::filesystem::exists(options_.socket_path + ".new"));
}

TEST_F(ServerTest, ReplacesWhatADeadDaemonLeft) {
  {
    auto dead = UnixListener::open(options_.socket_path);
    ASSERT_TRUE(dead.has_value());
    // Its path stays behind, as after a SIGKILL.
    std::filesystem::create_hard_link(options_.socket_path, options_.socket_path + ".kept");
  }
  std::filesystem::rename(options_.socket_path + ".kept", options_.socket_path);
  start();
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, LeavesALivingDaemonAlone) {
  start();
  const auto second = Server::start(options_, core_.access(), core_.hub());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, base::ErrorCode::kAlreadyExists);
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, LeavesOtherFilesAlone) {
  std::ofstream(options_.socket_path) << "precious";
  const auto server = Server::start(options_, core_.access(), core_.hub());
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().code, base::ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::is_regular_file(options_.socket_path));
}

TEST_F(ServerTest, RefusesAPathThatIsTooLong) {
  options_.socket_path = "/tmp/" + std::string(200, 'x');
  const auto server = Server::start(options_, core_.access(), core_.hub());
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().field, "socket");
}

TEST_F(ServerTest, DoesNotRemoveThePathOfItsSuccessor) {
  start();
  std::filesystem::remove(options_.socket_path);
  std::ofstream(options_.socket_path) << "successor";
  server_.reset();
  EXPECT_TRUE(std::filesystem::exists(options_.socket_path));
}

}  // namespace
}  // namespace gpu_platform::api
