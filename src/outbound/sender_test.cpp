#include "outbound/sender.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <thread>

#include <gtest/gtest.h>

#include "http/testing/scripted_server.h"
#include "os/descriptor.h"
#include "os/testing/eventually.h"
#include "outbound/folder_fixture.h"
#include "outbound/signature.h"

namespace gpu_platform::outbound {
namespace {

using http::ScriptedServer;
using http::SeenRequest;
using http::Wire;

const ScriptedServer::Script kTakesAll = [](const SeenRequest& /*request*/, Wire& wire) {
  wire.answer(200, "ok");
};

class SenderTest : public testing::Test {
 protected:
  static Channel channel(const ScriptedServer& server, ChannelKind kind = ChannelKind::kWebhook) {
    return {.name = "c", .kind = kind, .url = server.address() + "/hook"};
  }
  static Delivery delivery() {
    return {.channel = "c", .key = "alert-1", .body = R"({"text":"GPU 3 is hot"})"};
  }
  static Outcome send(Channel channel) { return Sender(std::move(channel), -1).send(delivery()); }
  // What comes of an answer that the server gives by this script.
  static Outcome outcome_of(ScriptedServer::Script script,
                            base::Duration timeout = base::seconds(60)) {
    const ScriptedServer server(std::move(script));
    Channel asked = channel(server);
    asked.timeout = timeout;
    return send(std::move(asked));
  }
  static Outcome outcome_of(int status, const std::string& header_lines = "") {
    return outcome_of([=](const SeenRequest& /*request*/, Wire& wire) {
      wire.answer(status, "words", header_lines);
    });
  }

  Folder folder_;
};

TEST_F(SenderTest, AWebhookIsSignedAndHasItsKey) {
  const ScriptedServer server(kTakesAll);
  Channel signed_channel = channel(server);
  signed_channel.secret_file = folder_.secret("key", "hunter2\n");
  const Outcome outcome = send(signed_channel);
  ASSERT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  const SeenRequest request = server.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/hook");
  EXPECT_EQ(request.body, delivery().body);
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("idempotency-key"), "alert-1");
  const std::string stamp = request.header("x-gpu-platform-timestamp");
  EXPECT_FALSE(stamp.empty());
  EXPECT_EQ(request.header("x-gpu-platform-signature"),
            "sha256=" + hmac_sha256("hunter2", stamp + "." + request.body));
}

TEST_F(SenderTest, ASecretThatAllMayReadIsNotUsed) {
  const ScriptedServer server(kTakesAll);
  Channel open_channel = channel(server);
  open_channel.secret_file = folder_.secret("key", "hunter2");
  std::filesystem::permissions(open_channel.secret_file, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const Outcome outcome = send(open_channel);
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  EXPECT_NE(outcome.problem.find("open to all users"), std::string::npos) << outcome.problem;
  EXPECT_EQ(outcome.problem.find("hunter2"), std::string::npos);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(SenderTest, SlacksUrlIsASecretThatNoProblemShows) {
  const ScriptedServer server([](const SeenRequest& request, Wire& wire) {
    wire.answer(request.number == 1 ? 200 : 404, "");
  });
  Channel slack{.name = "c", .kind = ChannelKind::kSlack};
  slack.url_file = folder_.secret("url", server.address() + "/services/hunter2\n");
  EXPECT_EQ(send(slack).kind, Outcome::Kind::kSent);
  EXPECT_EQ(server.requests().at(0).target, "/services/hunter2");
  const Outcome absent = send(slack);
  EXPECT_EQ(absent.kind, Outcome::Kind::kFailed);
  EXPECT_EQ(absent.problem, "the other side answers with status 404");
  slack.url_file = folder_.secret("url", "http://hooks.example.org/services/hunter2");
  const Outcome plain = send(slack);
  EXPECT_EQ(plain.kind, Outcome::Kind::kFailed);
  EXPECT_EQ(plain.problem.find("hunter2"), std::string::npos) << plain.problem;
}

TEST_F(SenderTest, AlertmanagerHasItsPathAndToken) {
  const ScriptedServer server(kTakesAll);
  Channel alertmanager = channel(server, ChannelKind::kAlertmanager);
  alertmanager.url = server.address() + "/prefix/";
  alertmanager.secret_file = folder_.secret("token", "abc");
  EXPECT_EQ(send(alertmanager).kind, Outcome::Kind::kSent);
  EXPECT_EQ(server.requests().at(0).target, "/prefix/api/v2/alerts");
  EXPECT_EQ(server.requests().at(0).header("authorization"), "Bearer abc");
}

TEST_F(SenderTest, TheStatusDecidesWhetherItIsTriedAgain) {
  for (const int status : {200, 202, 204}) {
    EXPECT_EQ(outcome_of(status).kind, Outcome::Kind::kSent) << status;
  }
  for (const int status : {400, 413, 415, 422}) {
    EXPECT_EQ(outcome_of(status).kind, Outcome::Kind::kRefused) << status;
  }
  for (const int status : {401, 403, 404, 405, 407, 408, 410, 429, 500, 502, 503}) {
    EXPECT_EQ(outcome_of(status).kind, Outcome::Kind::kFailed) << status;
  }
}

TEST_F(SenderTest, TheOtherSideSaysWhenItIsTriedAgain) {
  EXPECT_EQ(outcome_of(429, "Retry-After: 7\r\n").retry_after, base::seconds(7));
  EXPECT_EQ(outcome_of(503).retry_after, base::Duration());
}

TEST_F(SenderTest, ARedirectIsNotFollowed) {
  const ScriptedServer server([](const SeenRequest& /*request*/, Wire& wire) {
    wire.answer(307, "", "Location: /elsewhere\r\n");
  });
  const Outcome outcome = send(channel(server));
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  EXPECT_NE(outcome.problem.find("redirect"), std::string::npos) << outcome.problem;
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(SenderTest, AHugeAnswerIsCutAndCountsByItsStatus) {
  const Outcome outcome = outcome_of([](const SeenRequest& /*request*/, Wire& wire) {
    wire.begin_stream();
    while (!wire.is_dropped()) wire.piece(std::string(65'536, 'x'));
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
}

TEST_F(SenderTest, AHugeHeadIsCut) {
  const Outcome outcome = outcome_of([](const SeenRequest& /*request*/, Wire& wire) {
    wire.raw("HTTP/1.1 200 x\r\n");
    while (!wire.is_dropped()) wire.raw("X-Filler: " + std::string(1000, 'x') + "\r\n");
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
}

TEST_F(SenderTest, ASilentServerFailsAtTheTimeout) {
  const Outcome outcome =
      outcome_of([](const SeenRequest& /*request*/, Wire& wire) { wire.hold(); }, base::seconds(1));
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
}

TEST_F(SenderTest, AServerThatTricklesFailsAtTheTimeout) {
  const Outcome outcome = outcome_of(
      [](const SeenRequest& /*request*/, Wire& wire) {
        wire.raw("HTTP/1.1 200 x\r\n");
        while (!wire.is_dropped()) {
          wire.raw("X: 1\r\n");
          ::poll(nullptr, 0, 10);
        }
      },
      base::seconds(1));
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
}

TEST_F(SenderTest, AConnectionThatBreaksInTheAnswerFails) {
  const Outcome outcome = outcome_of([](const SeenRequest& /*request*/, Wire& wire) {
    wire.raw("HTTP/1.1 200 x\r\nContent-Le");
    wire.drop();
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
}

TEST_F(SenderTest, ATransferIsStoppedAtOnce) {
  const ScriptedServer server([](const SeenRequest& /*request*/, Wire& wire) { wire.hold(); });
  Channel slow = channel(server);
  slow.timeout = base::hours(1);
  const os::Descriptor stop(eventfd(0, EFD_CLOEXEC));
  Outcome outcome;
  std::thread runner([&] { outcome = Sender(slow, stop.get()).send(delivery()); });
  EXPECT_TRUE(os::eventually([&] { return server.requests().size() == 1; }));
  EXPECT_EQ(eventfd_write(stop.get(), 1), 0);
  runner.join();
  EXPECT_EQ(outcome.kind, Outcome::Kind::kStopped);
}

TEST_F(SenderTest, AKeyCannotAddAHeader) {
  const ScriptedServer server(kTakesAll);
  Delivery evil = delivery();
  evil.key = "a\r\nX-Other: b";
  EXPECT_EQ(Sender(channel(server), -1).send(evil).kind, Outcome::Kind::kRefused);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(SenderTest, TheEnvironmentsProxyIsNotUsed) {
  const ScriptedServer server(kTakesAll);
  const ScriptedServer proxy(kTakesAll);
  setenv("http_proxy", proxy.address().c_str(), 1);
  setenv("all_proxy", proxy.address().c_str(), 1);
  const Outcome outcome = send(channel(server));
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  EXPECT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_TRUE(proxy.requests().empty());
}

TEST_F(SenderTest, TheChannelsProxyIsUsed) {
  const ScriptedServer proxy(kTakesAll);
  Channel far{.name = "c", .kind = ChannelKind::kWebhook, .url = "http://hooks.invalid/hook"};
  far.allow_plain_text = true;
  far.proxy = proxy.address();
  setenv("no_proxy", "hooks.invalid", 1);
  const Outcome outcome = send(far);
  unsetenv("no_proxy");
  EXPECT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  ASSERT_EQ(proxy.requests().size(), 1U);
  EXPECT_EQ(proxy.requests()[0].target, "http://hooks.invalid/hook");
}

TEST_F(SenderTest, AServersCertificateMustBeOfItsName) {
  const http::TestCertificate authority = http::make_authority();
  const std::string ca_file = folder_.write("ca.pem", authority.pem());
  const auto show = [&](const std::string& names) {
    const ScriptedServer server(
        ScriptedServer::Tls{
            .shown = http::make_certificate({.alternative_names = names, .issuer = &authority})},
        kTakesAll);
    Channel secure = channel(server);
    secure.ca_file = ca_file;
    const Outcome outcome = send(secure);
    EXPECT_EQ(server.requests().size(), outcome.kind == Outcome::Kind::kSent ? 1U : 0U);
    return outcome;
  };
  EXPECT_EQ(show(http::kThisMachine).kind, Outcome::Kind::kSent);
  EXPECT_EQ(show("DNS:other.example.org").kind, Outcome::Kind::kFailed);
}

TEST_F(SenderTest, AnUnknownAuthorityIsRefused) {
  const http::TestCertificate authority = http::make_authority();
  const ScriptedServer server(
      ScriptedServer::Tls{.shown = http::make_certificate(
                              {.alternative_names = http::kThisMachine, .issuer = &authority})},
      kTakesAll);
  Channel secure = channel(server);
  secure.ca_file = folder_.write("ca.pem", http::make_authority().pem());
  EXPECT_EQ(send(secure).kind, Outcome::Kind::kFailed);
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace gpu_platform::outbound
