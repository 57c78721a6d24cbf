#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "api/rest/server_fixture_test.h"

// These tests check connections that the listener makes for clients of other machines.

namespace gpu_platform::api {
namespace {

// Knows the users that a test names; the secret is the name.
class FakeAuthenticator final : public Authenticator {
 public:
  void authenticate(Credential credential, Done done) const override {
    if (is_holding) {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(done));
      return;
    }
    if (credential.secret == "busy") {
      return done(base::fail(base::ErrorCode::kResourceExhausted, "too many failures"));
    }
    if (credential.secret != "ann" && credential.secret != "bob") {
      return done(base::fail(base::ErrorCode::kUnauthenticated, "the token is not valid"));
    }
    Peer peer;
    peer.caller.user = credential.secret;
    peer.caller.uid = credential.secret == "ann" ? 5001 : 5002;
    peer.caller.door = model::Door::kListener;
    done(std::move(peer));
  }
  base::Status check_still_holds(const Peer& peer) const override {
    if (is_revoked && peer.caller.user == "ann") {
      return base::fail(base::ErrorCode::kUnauthenticated, "the token is not valid");
    }
    return {};
  }

  std::atomic<bool> is_revoked = false;
  std::atomic<bool> is_holding = false;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<Done> held_;
};

class Adoption : public ServerTest {
 protected:
  Adoption() { options_.authenticator = &authenticator_; }

  std::unique_ptr<RawClient> adopted(const std::string& secret) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    server_->adopt(pair[1], {Credential::Kind::kBearer, secret, "192.0.2.7"});
    return std::make_unique<RawClient>(pair[0]);
  }

  FakeAuthenticator authenticator_;
};

TEST_F(Adoption, ServesTheUserBehindTheCredential) {
  start();
  core_.add_job("ann", 5001);
  core_.add_job("bob", 5002);
  const auto list = adopted("ann")->request("GET", "/v1/jobs");
  ASSERT_TRUE(list.has_value());
  ASSERT_EQ(list->status, 200) << list->body;
  const auto jobs = parsed(*list)["jobs"];
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0]["spec"].value("user", ""), "ann");
}

TEST_F(Adoption, ARefusedCredentialIsTheAnswerToTheFirstRequest) {
  start();
  const auto client = adopted("forged");
  const auto answer = client->request("GET", "/v1/jobs");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 401);
  EXPECT_EQ(answer->headers.at("www-authenticate"), "Bearer");
  EXPECT_EQ(answer->headers.at("content-type"), "application/problem+json");
  EXPECT_EQ(parsed(*answer).value("code", ""), "UNAUTHENTICATED");
  EXPECT_TRUE(client->is_closed());
  EXPECT_TRUE(all_connections_gone());
}

TEST_F(Adoption, TooManyFailuresAreAnsweredAsSuch) {
  start();
  const auto answer = adopted("busy")->request("GET", "/v1/jobs");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 429);
}

TEST_F(Adoption, WithoutAnAuthenticatorNoUserIsKnown) {
  options_.authenticator = nullptr;
  start();
  const auto answer = adopted("ann")->request("GET", "/v1/version");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 401);
}

TEST_F(Adoption, ACredentialThatNoLongerHoldsEndsTheConnectionAtTheNextRequest) {
  start();
  const auto client = adopted("ann");
  EXPECT_EQ(client->request("GET", "/v1/version")->status, 200);
  authenticator_.is_revoked = true;
  EXPECT_EQ(client->request("GET", "/v1/version")->status, 401);
  EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(adopted("bob")->request("GET", "/v1/version")->status, 200);
}

TEST_F(Adoption, AStreamEndsBeforeItsNextPieceWhenItsCredentialNoLongerHolds) {
  start();
  const auto client = adopted("ann");
  ASSERT_TRUE(client->send(request_text("GET", "/v1/events")));
  const auto head = client->receive_head();
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->status, 200);
  core_.add_job("ann", 5001);
  ASSERT_TRUE(client->receive_chunk().has_value());
  authenticator_.is_revoked = true;
  core_.add_job("ann", 5001);
  EXPECT_FALSE(client->receive_chunk().has_value());
  EXPECT_FALSE(client->is_at_end()) << "cut, not ended";
}

TEST_F(Adoption, ALongPollTellsNothingToACredentialThatHasEndedMeanwhile) {
  core_.add_job("ann", 5001);
  core_.start_job(model::JobId(1), {});
  core_.edit_node([](model::Node& node) {
    for (model::Gpu& gpu : node.gpus) gpu.state = model::GpuState::kInUse;
  });
  start();
  const auto waiting = adopted("ann");
  waiting->send(request_text("GET", "/v1/jobs/1/wait?timeout_seconds=600"));
  const auto checking = adopted("ann");
  checking->send(request_text("POST", "/v1/check",
                              R"({"spec":{"command":["x"],"gpus":1},"timeout_seconds":600})"));
  core_.wait_for_command();
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 2; }));
  authenticator_.is_revoked = true;
  core_.end_job(model::JobId(1), 0);
  core_.edit_node([](model::Node& node) { node.gpus[5].state = model::GpuState::kAvailable; });
  for (RawClient* const client : {waiting.get(), checking.get()}) {
    const auto answer = client->receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 401) << answer->body;
    EXPECT_EQ(answer->headers.at("connection"), "close");
    EXPECT_TRUE(client->is_closed());
  }
  EXPECT_TRUE(all_connections_gone());
}

TEST_F(Adoption, WhatIsSilentEndsSoonAfterItsCredential) {
  options_.limits.admit_every = std::chrono::milliseconds(20);
  start();
  core_.add_job("ann", 5001);
  const auto waiting = adopted("ann");
  waiting->send(request_text("GET", "/v1/jobs/1/wait?timeout_seconds=600"));
  const auto following = adopted("ann");
  following->send(request_text("GET", "/v1/events"));
  ASSERT_EQ(following->receive_head().value().status, 200);
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 2; }));
  authenticator_.is_revoked = true;
  EXPECT_EQ(waiting->receive().value().status, 401);
  EXPECT_FALSE(following->receive_chunk().has_value());
  EXPECT_FALSE(following->is_at_end()) << "cut, not ended";
}

TEST_F(Adoption, AnAnswerThatWaitedForTheCoreIsNotTold) {
  core_.add_job("ann", 5001);
  start();
  core_.hold_commands(true);
  const auto client = adopted("ann");
  client->send(request_text("POST", "/v1/jobs/1/cancel", "{}"));
  core_.wait_for_command();
  authenticator_.is_revoked = true;
  core_.hold_commands(false);
  EXPECT_EQ(client->receive().value().status, 401);
}

TEST_F(Adoption, LeavesRoomForItsUserOnThisMachine) {
  options_.budgets.connections_per_user = 8;
  start();
  std::vector<std::unique_ptr<RawClient>> open;
  for (int i = 0; i < 7; ++i) {
    open.push_back(adopted("ann"));
    EXPECT_EQ(open.back()->request("GET", "/v1/version")->status, 200) << i;
  }
  EXPECT_EQ(adopted("ann")->request("GET", "/v1/version")->status, 429);
  open.pop_back();
  EXPECT_TRUE(
      eventually([&] { return adopted("ann")->request("GET", "/v1/version")->status == 200; }));
}

TEST_F(Adoption, CountsForTheUserAndLeavesOthersAlone) {
  options_.budgets.connections_per_user = 2;
  start();
  const auto first = adopted("ann");
  const auto second = adopted("ann");
  EXPECT_EQ(first->request("GET", "/v1/version")->status, 200);
  EXPECT_EQ(second->request("GET", "/v1/version")->status, 200);
  EXPECT_EQ(adopted("ann")->request("GET", "/v1/version")->status, 429);
  EXPECT_EQ(adopted("bob")->request("GET", "/v1/version")->status, 200);
}

TEST_F(Adoption, BeyondTheLimitOfArrivalsIsRefusedAtOnce) {
  options_.arrivals = 2;
  authenticator_.is_holding = true;
  start();
  const auto first = adopted("ann");
  const auto second = adopted("ann");
  const auto answer = adopted("bob")->receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 503);
}

}  // namespace
}  // namespace gpu_platform::api
