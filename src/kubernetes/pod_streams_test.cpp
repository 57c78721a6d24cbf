#include "kubernetes/pod_streams.h"

#include <openssl/evp.h>

#include <chrono>
#include <csignal>
#include <future>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/pod_channel_fixture.h"
#include "kubernetes/pod_server_fixture.h"
#include "kubernetes/scripted_server_fixture.h"
#include "model/channel.h"

namespace gpu_platform::kubernetes {
namespace {

using model::ChannelEnd;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Pod = PodServer::Pod;

Endpoint endpoint_at(const std::string& address, const std::string& ca_pem = {}) {
  ClusterAccess access;
  access.server = address;
  access.ca_pem = ca_pem;
  access.origin = "test";
  auto endpoint = endpoint_of(access);
  EXPECT_TRUE(endpoint.has_value());
  return *std::move(endpoint);
}

PodStream command() {
  return {.namespace_name = "jobs", .pod = "a", .container = "main", .command = {"act"}};
}
PodStream terminal() {
  PodStream stream = command();
  stream.terminal = model::TerminalSize{.columns = 100, .rows = 30};
  return stream;
}
PodStream port() {
  return {.namespace_name = "jobs", .pod = "a", .port = 8888};
}

// Repeats its input, until that ends.
void echo(Pod& pod) {
  while (true) {
    const std::string message = pod.read();
    if (message.empty()) return;
    if (message == end_of_input_message()) return pod.exit(0);
    pod.write(1, message.substr(1));
  }
}

// ---- commands

TEST(PodStreams, CarryInputAndOutput) {
  PodServer server(echo);
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  channel.send(model::InputFrame{"one "});
  EXPECT_TRUE(channel.hear_output("one "));
  channel.send(model::InputFrame{"two"});
  channel.send(model::EndOfInputFrame{});
  const Heard& heard = channel.listen();
  EXPECT_TRUE(heard.is_open);
  EXPECT_EQ(heard.output, "one two");
  EXPECT_EQ(heard.taken, 7);
  EXPECT_EQ(heard.end, ChannelEnd::kExited);
  EXPECT_EQ(heard.value, 0);
}

TEST(PodStreams, TellTheExitCodeAfterBothOutputs) {
  PodServer server([](Pod& pod) {
    pod.write(1, "");
    pod.write(2, pod.path());
    pod.write(1, "out");
    pod.exit(7);
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.output, "out");
  EXPECT_EQ(heard.errors, path_of(command()));
  EXPECT_EQ(heard.end, ChannelEnd::kExited);
  EXPECT_EQ(heard.value, 7);
}

TEST(PodStreams, PassOnAllOutputHoweverLargeItsMessages) {
  std::string all;
  for (int i = 0; all.size() < 900'000; ++i) all += fmt::format("{} ", i);
  PodServer server([&](Pod& pod) {
    pod.write(1, all);
    pod.write(1, all);
    pod.exit(0);
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  EXPECT_EQ(channel.listen().output, all + all);
  EXPECT_EQ(channel.heard.end, ChannelEnd::kExited);
}

TEST(PodStreams, ATerminalGetsItsSizeAndItsKeys) {
  PodServer server([](Pod& pod) {
    for (int i = 0; i < 4; ++i) {
      const std::string message = pod.read();
      pod.write(1, fmt::format("{}{}|", static_cast<int>(message.at(0)), message.substr(1)));
    }
    pod.exit(0);
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, terminal());
  EXPECT_TRUE(channel.hear_output("4{\"Width\":100,\"Height\":30}|"));
  channel.send(model::ResizeFrame{{.columns = 90, .rows = 20}});
  EXPECT_TRUE(channel.hear_output("4{\"Width\":90,\"Height\":20}|"));
  channel.send(model::SignalFrame{SIGTERM});  // Kubernetes has no way for it
  channel.send(model::SignalFrame{SIGINT});
  EXPECT_TRUE(channel.hear_output("0\x03|"));
  channel.send(model::EndOfInputFrame{});
  EXPECT_TRUE(channel.hear_output("0\x04|"));
  EXPECT_EQ(channel.listen().end, ChannelEnd::kExited);
}

TEST(PodStreams, ACommandThatDidNotStartWasNotOpened) {
  PodServer server([](Pod& pod) {
    pod.write(3,
              R"({"status":"Failure","message":"exec: act: executable file not found in $PATH"})");
    pod.close();
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.end, ChannelEnd::kNotOpened);
  EXPECT_EQ(heard.value, 127);
  EXPECT_THAT(heard.text, HasSubstr("executable file not found"));
}

TEST(PodStreams, AnEndIsToldThoughTheServerForgetsToClose) {
  std::promise<void> done;
  PodServer server([&, end = done.get_future().share()](Pod& pod) {
    pod.write(3, R"({"status":"Success"})");
    end.wait();
  });
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  PodStreams streams(endpoint_at(server.address()), {.end_time = base::milliseconds(50)});
  Channel channel(streams, command());
  EXPECT_EQ(channel.listen().end, ChannelEnd::kExited);
  done.set_value();
}

TEST(PodStreams, MoreInputThanTheWindowEndsTheChannel) {
  // The server has not agreed yet, so nothing is taken.
  ScriptedServer deaf([](const SeenRequest&, Wire& wire) { wire.hold(); });
  PodStreams streams(endpoint_at(deaf.address()));
  Channel channel(streams, command());
  const std::string piece(16 * 1024, 'x');
  for (std::size_t sent = 0; sent <= model::kInputWindow; sent += piece.size()) {
    channel.send(model::InputFrame{piece});
  }
  EXPECT_EQ(channel.listen().end, std::nullopt);
  EXPECT_FALSE(channel.heard.is_open);
}

TEST(PodStreams, AHangUpIsSeenByTheServer) {
  std::promise<std::string> last;
  PodServer server([&](Pod& pod) {
    pod.write(1, "ready");
    last.set_value(pod.read());
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  EXPECT_TRUE(channel.hear_output("ready"));
  channel.hang_up();
  EXPECT_EQ(last.get_future().get(), "");
}

TEST(PodStreams, EndAllChannelsWithThemselves) {
  PodServer server(echo);
  std::optional<PodStreams> streams(endpoint_at(server.address()));
  Channel open(*streams, command());
  open.send(model::InputFrame{"here"});
  EXPECT_TRUE(open.hear_output("here"));
  streams.reset();
  EXPECT_EQ(open.listen().end, std::nullopt);
}

// ---- servers that refuse

class RefusedWith : public ::testing::TestWithParam<int> {};

TEST_P(RefusedWith, AndItsReasonIsTold) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.answer(GetParam(), R"({"kind":"Status","message":"pods \"a\" are not for you"})");
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command(), {.token = "t0ken"});
  const Heard& heard = channel.listen();
  EXPECT_FALSE(heard.is_open);
  EXPECT_EQ(heard.end, ChannelEnd::kNotOpened);
  EXPECT_EQ(heard.text, "the cluster's API server refuses it: pods \"a\" are not for you");
  ASSERT_EQ(server.requests().size(), 1);
  const SeenRequest seen = server.requests().front();
  EXPECT_EQ(seen.target, path_of(command()));
  EXPECT_EQ(seen.header("authorization"), "Bearer t0ken");
  EXPECT_EQ(seen.header("sec-websocket-protocol"), "v5.channel.k8s.io");
}

INSTANTIATE_TEST_SUITE_P(PodStreams, RefusedWith, ::testing::Values(200, 302, 401, 403, 404, 500));

TEST(PodStreams, AServerThatIsAwayIsToldOf) {
  std::string address;
  {
    ScriptedServer server([](const SeenRequest&, Wire&) {});
    address = server.address();
  }
  PodStreams streams(endpoint_at(address));
  Channel channel(streams, command());
  EXPECT_THAT(channel.listen().text,
              AllOf(HasSubstr("cannot be used: connect to 127.0.0.1:"), HasSubstr("refused")));
  EXPECT_EQ(channel.heard.end, ChannelEnd::kNotOpened);
}

TEST(PodStreams, AServerThatDoesNotAnswerIsGivenUp) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.hold(); });
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  PodStreams streams(endpoint_at(server.address()), {.open_time = base::milliseconds(50)});
  Channel channel(streams, command());
  EXPECT_THAT(channel.listen().text, HasSubstr("did not answer within"));
  EXPECT_EQ(channel.heard.end, ChannelEnd::kNotOpened);
}

TEST(PodStreams, AServerOfAnotherProtocolIsRefused) {
  PodServer server(echo, "v1.channel.k8s.io");
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  EXPECT_THAT(channel.listen().text, HasSubstr("does not support v5.channel.k8s.io"));
}

TEST(PodStreams, WhatIsNoAnswerIsNoWayIn) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.raw("\x01\x02 nothing of HTTP\r\n\r\n");
    wire.drop();
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  EXPECT_EQ(channel.listen().end, ChannelEnd::kNotOpened);
}

TEST(PodStreams, AProxyIsSaidToBeInTheWay) {
  Endpoint endpoint = endpoint_at("http://127.0.0.1:1");
  endpoint.proxy_url = "http://proxy:3128";
  PodStreams streams(std::move(endpoint));
  Channel channel(streams, command());
  EXPECT_THAT(channel.listen().text, HasSubstr("through a proxy"));
}

// ---- servers that fail later

TEST(PodStreams, AServerThatGoesAwayCutsTheChannelAfterItsLastWords) {
  PodServer server([](Pod& pod) { pod.write(1, "last words"); });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.output, "last words");
  EXPECT_EQ(heard.end, std::nullopt);
}

TEST(PodStreams, WhatIsNoWebSocketCutsTheChannel) {
  PodServer server([](Pod& pod) {
    pod.write(1, "good");
    pod.write_raw("\xff\xff\xff\xff is nothing that a WebSocket says");
    pod.read();
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.output, "good");
  EXPECT_EQ(heard.end, std::nullopt);
}

// ---- TLS and dead servers, on a server that answers byte by byte

// The answer by which a server agrees.
std::string agreement(const SeenRequest& request) {
  const std::string text =
      request.header("sec-websocket-key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), hash, &size, EVP_sha1(), nullptr);
  unsigned char encoded[64];
  EVP_EncodeBlock(encoded, hash, static_cast<int>(size));
  return fmt::format(
      "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n"
      "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
      reinterpret_cast<const char*>(encoded));
}

std::string message_frame(int stream, std::string_view bytes) {
  std::string frame = "\x82";
  frame += static_cast<char>(bytes.size() + 1);
  frame += static_cast<char>(stream);
  frame += bytes;
  return frame;
}

TEST(PodStreams, AMessageIsOneFrame) {
  std::promise<std::string> first;
  ScriptedServer server([&](const SeenRequest& request, Wire& wire) {
    wire.raw(agreement(request));
    std::string header;
    for (char byte = 0; header.size() < 4 && wire.read(&byte, 1) == 1;) header += byte;
    first.set_value(header);
    wire.drop();
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, command());
  channel.send(model::InputFrame{std::string(0x4000, 'x')});
  // Binary and final; masked, with 16 bits of length: the input and the byte of its stream.
  EXPECT_EQ(first.get_future().get(), "\x82\xfe\x40\x01");
  channel.listen();
}

TEST(PodStreams, AServerWithoutASignOfLifeIsGivenUp) {
  ScriptedServer server([](const SeenRequest& request, Wire& wire) {
    wire.raw(agreement(request) + message_frame(1, "ready"));
    wire.hold();
  });
  PodStreams streams(endpoint_at(server.address()), {.ping_every = base::milliseconds(20)});
  Channel channel(streams, command());
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.output, "ready");
  EXPECT_EQ(heard.end, std::nullopt);
}

TEST(PodStreams, AServerThatAnswersPingsMayBeSilent) {
  std::promise<void> enough;
  PodServer server([&](Pod& pod) {
    // More than the silent ones after which a server is given up.
    pod.after_pings(5, [&] { enough.set_value(); });
    pod.write(1, pod.read());
    pod.exit(0);
  });
  PodStreams streams(endpoint_at(server.address()), {.ping_every = base::milliseconds(400)});
  Channel channel(streams, command());
  const auto timeout = std::chrono::nanoseconds(kTimeout.value());
  EXPECT_EQ(enough.get_future().wait_for(timeout), std::future_status::ready);
  channel.send(model::InputFrame{"go on"});
  EXPECT_EQ(channel.listen().end, ChannelEnd::kExited);
}

TEST(PodStreams, TlsShowsTheClientsCertificateAndChecksTheServers) {
  const TestCertificate authority = make_authority();
  const TestCertificate shown =
      make_certificate({.alternative_names = "IP:127.0.0.1", .issuer = &authority});
  const TestCertificate mine =
      make_certificate({.alternative_names = "DNS:me", .issuer = &authority});
  ScriptedServer server({shown, authority.pem()}, [](const SeenRequest& request, Wire& wire) {
    wire.raw(agreement(request) + message_frame(1, "over TLS") +
             message_frame(3, R"({"status":"Success"})"));
    wire.drop();
  });
  PodStreams streams(endpoint_at(server.address(), authority.pem()));
  Channel channel(streams, command(), {.certificate_pem = mine.pem(), .key_pem = mine.key_pem()});
  EXPECT_EQ(channel.listen().output, "over TLS") << channel.heard.text;
  EXPECT_EQ(channel.heard.end, ChannelEnd::kExited);
}

TEST(PodStreams, AServerOfAnotherAuthorityOrNameIsRefused) {
  const TestCertificate authority = make_authority();
  const TestCertificate other = make_authority();
  ScriptedServer server(
      {make_certificate({.alternative_names = "DNS:elsewhere", .issuer = &authority}), {}},
      [](const SeenRequest&, Wire& wire) { wire.hold(); });
  for (const std::string& trusted : {other.pem(), authority.pem()}) {
    PodStreams streams(endpoint_at(server.address(), trusted));
    Channel channel(streams, command(), {.token = "secret"});
    EXPECT_THAT(channel.listen().text, HasSubstr("certificate verify failed"));
    EXPECT_EQ(channel.heard.end, ChannelEnd::kNotOpened);
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST(PodStreams, TheNameOfTheAccessIsTheOneThatIsChecked) {
  const TestCertificate authority = make_authority();
  ScriptedServer server(
      {make_certificate({.alternative_names = "DNS:elsewhere", .issuer = &authority}), {}},
      [](const SeenRequest&, Wire& wire) { wire.answer(404, "x"); });
  Endpoint endpoint = endpoint_at(server.address(), authority.pem());
  endpoint.checked_name = "elsewhere";
  PodStreams streams(std::move(endpoint));
  Channel channel(streams, command());
  EXPECT_THAT(channel.listen().text, HasSubstr("HTTP 404"));
}

TEST(PodStreams, ACertificateThatIsNoneIsToldOf) {
  PodStreams streams(endpoint_at("https://127.0.0.1:1"));
  Channel channel(streams, command(), {.certificate_pem = "x", .key_pem = "y"});
  EXPECT_THAT(channel.listen().text, HasSubstr("certificate or its key cannot be used"));
}

// ---- ports

TEST(PodStreams, AConnectionToAPortIsCarriedUntilItCloses) {
  PodServer server([](Pod& pod) {
    pod.write(0, "NN");
    pod.write(1, "NN");
    const std::string request = pod.read();
    pod.write(0, "answer to " + request.substr(1));
    pod.close();
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, port());
  channel.send(model::InputFrame{"a question"});
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.output, "answer to a question");
  EXPECT_EQ(heard.taken, 10);
  EXPECT_EQ(heard.end, ChannelEnd::kExited);
}

TEST(PodStreams, APortThatIsClosedSaysSo) {
  PodServer server([](Pod& pod) {
    pod.write(0, "NN");
    pod.write(1, "NN");
    pod.write(1, "dial tcp 127.0.0.1:8888: connection refused");
    pod.close();
  });
  PodStreams streams(endpoint_at(server.address()));
  Channel channel(streams, port());
  EXPECT_THAT(channel.listen().text, HasSubstr("connection refused"));
  EXPECT_EQ(channel.heard.end, ChannelEnd::kNotOpened);
}

}  // namespace
}  // namespace gpu_platform::kubernetes
