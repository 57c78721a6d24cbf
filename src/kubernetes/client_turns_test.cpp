#include "kubernetes/client.h"

#include <atomic>
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/scripted_server_fixture.h"
#include "os/clock.h"
#include "os/testing/eventually.h"

namespace gpu_platform::kubernetes {
namespace {

std::unique_ptr<Client> client_to(const ScriptedServer& server, ClientOptions options = {}) {
  ClusterAccess access;
  access.server = server.address();
  access.origin = "test";
  auto client = Client::make(std::move(access), std::move(options));
  EXPECT_TRUE(client.has_value());
  return std::move(*client);
}

bool polls_until(Client& client, const std::function<bool()>& holds) {
  const std::int64_t until = os::monotonic_ns() + kTimeout.value();
  while (!holds() && os::monotonic_ns() < until) client.poll(base::milliseconds(50));
  return holds();
}

TEST(ClientTurns, WhatGoesOnWithSomethingPassesWhatBeginsAndAFewRequestsPassBoth) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  const auto client = client_to(server, {.max_in_flight = 1});
  int answered = 0;
  const auto count = [&](const Answer&) { ++answered; };
  client->send({.path = "/claim-0"}, [&](const Answer& answer) {
    count(answer);
    client->send({.path = "/pod-0", .turn = Turn::kNext}, count);
    client->send({.path = "/lease", .turn = Turn::kAtOnce}, count);
    client->send({.path = "/pod-1", .turn = Turn::kNext}, count);
  });
  client->send({.path = "/claim-1"}, count);
  ASSERT_TRUE(polls_until(*client, [&] { return answered == 5; }));
  std::vector<std::string> order;
  for (const SeenRequest& seen : server.requests()) order.push_back(seen.target);
  EXPECT_THAT(order, ::testing::ElementsAre("/claim-0", "/lease", "/pod-0", "/pod-1", "/claim-1"));
}

// A server that was started anew, or one that has closed all idle connections.
TEST(ClientConnections, ManyKeptConnectionsThatAreClosedFailNoRequest) {
  constexpr int kKept = 12;
  std::atomic<int> arrived{0};
  ScriptedServer server([&](const SeenRequest& seen, Wire& wire) {
    if (seen.target == "/later") {
      return seen.connection <= kKept ? wire.drop() : wire.answer(200, "");
    }
    ++arrived;
    EXPECT_TRUE(os::eventually([&] { return arrived == kKept; }));
    wire.answer(200, "");
  });
  const auto client = client_to(server);
  int answered = 0;
  for (int i = 0; i < kKept; ++i) {
    client->send({.path = "/first"}, [&](const Answer& answer) { answered += answer.is_ok(); });
  }
  ASSERT_TRUE(polls_until(*client, [&] { return answered == kKept; }));
  ASSERT_EQ(server.connections(), kKept);
  std::optional<Answer> later;
  client->send({.method = Method::kPost, .path = "/later", .body = "{}"},
               [&](const Answer& answer) { later = answer; });
  ASSERT_TRUE(polls_until(*client, [&] { return later.has_value(); }));
  EXPECT_EQ(later->status, 200) << later->failure;
}

}  // namespace
}  // namespace gpu_platform::kubernetes
