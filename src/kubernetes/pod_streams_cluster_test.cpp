#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kubernetes/client.h"
#include "kubernetes/json_values.h"
#include "kubernetes/kubeconfig.h"
#include "kubernetes/pod_channel_fixture.h"
#include "kubernetes/pod_streams.h"
#include "os/clock.h"

// Channels into a pod of a real control plane (tests/kubernetes), as the platform's own user. There
// a command runs on this machine, every port repeats what it is sent, and a container prints what
// is appended to a file.

namespace gpu_platform::kubernetes {
namespace {

using model::ChannelEnd;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";

class PodOfACluster : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("GPU_PLATFORM_TEST_KUBERNETES");
    if (folder == nullptr) GTEST_SKIP() << "there is no cluster; see scripts/check_kubernetes";
    folder_ = folder;
    admin_ = client_of("admin");
    platform_ = client_of("platform");
    ask({.method = Method::kPost, .path = "/api/v1/nodes", .body = node().dump()});
    ask({.method = Method::kPost, .path = kPods, .body = pod().dump()});
    ASSERT_TRUE(wait_for_pod());
    std::optional<base::Result<Credential>> credential;
    platform_->ask_credential([&](base::Result<Credential> now) { credential = std::move(now); });
    while (!credential) platform_->poll(base::seconds(1));
    ASSERT_TRUE(credential->has_value());
    credential_ = **credential;
    streams_.emplace(*endpoint_of(access_of("platform")));
  }

  ClusterAccess access_of(const std::string& user) {
    auto access = load_kubeconfig(fmt::format("{}/{}.kubeconfig", folder_, user), "");
    EXPECT_TRUE(access.has_value());
    return *std::move(access);
  }
  std::unique_ptr<Client> client_of(const std::string& user) {
    return *Client::make(access_of(user));
  }

  static Json node() {
    const Json amounts = {{"cpu", "8"}, {"memory", "8Gi"}, {"pods", "9"}};
    return {{"apiVersion", "v1"},
            {"kind", "Node"},
            {"metadata", {{"name", "channels"}, {"labels", {{"gpu-platform.test/kwok", "true"}}}}},
            {"status", {{"capacity", amounts}, {"allocatable", amounts}}}};
  }
  static Json pod() {
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", {{"name", "channels"}}},
            {"spec",
             {{"nodeName", "channels"},
              {"containers", {{{"name", "main"}, {"image", "registry.example.org/test:1"}}}}}}};
  }

  Answer ask(Request request) {
    std::optional<Answer> answer;
    admin_->send(std::move(request), [&](const Answer& got) { answer = got; });
    while (!answer) admin_->poll(base::seconds(1));
    return *answer;
  }
  bool wait_for_pod() {
    const std::int64_t until = os::monotonic_ns() + kTimeout.value();
    while (os::monotonic_ns() < until) {
      const Answer answer = ask({.path = fmt::format("{}/channels", kPods)});
      const Json now = Json::parse(answer.body, nullptr, false);
      const Json* status = member(now, "status");
      if (status != nullptr && text_of(*status, "phase") == "Running") return true;
      admin_->poll(base::milliseconds(100));
    }
    return false;
  }

  Channel open(PodStream stream) {
    stream.namespace_name = "default";
    stream.pod = "channels";
    stream.container = "main";
    return Channel(*streams_, std::move(stream), credential_);
  }

  std::string folder_;
  std::unique_ptr<Client> admin_;
  std::unique_ptr<Client> platform_;
  Credential credential_;
  std::optional<PodStreams> streams_;
};

// kwok passes on neither the end of input nor exit codes.
TEST_F(PodOfACluster, RunsACommandWithInputAndBothOutputs) {
  Channel channel = open({.command = {"sh", "-c", "head -c 12; echo 'a b' >&2"}});
  channel.send(model::InputFrame{"what is sent"});
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.output, "what is sent") << heard.text;
  EXPECT_EQ(heard.errors, "a b\n");
  EXPECT_EQ(heard.taken, 12);
  EXPECT_EQ(heard.end, ChannelEnd::kExited);
  EXPECT_EQ(heard.value, 0);
}

TEST_F(PodOfACluster, PassesOnALotOfOutput) {
  Channel channel = open({.command = {"sh", "-c", "head -c 3000000 /dev/zero"}});
  EXPECT_EQ(channel.listen().output.size(), 3'000'000) << channel.heard.text;
  EXPECT_EQ(channel.heard.end, ChannelEnd::kExited);
}

TEST_F(PodOfACluster, PassesOnALotOfInput) {
  Channel channel = open({.command = {"sh", "-c", "head -c 100000 | wc -c"}});
  for (int i = 0; i < 5; ++i) channel.send(model::InputFrame{std::string(20'000, 'x')});
  EXPECT_EQ(channel.listen().output, "100000\n") << channel.heard.text;
}

// kwok closes a terminal as soon as its command has ended, and what was printed last may be lost:
// so the command goes on until the channel is hung up.
TEST_F(PodOfACluster, GivesACommandATerminalAndItsKeys) {
  const char* const shows_a_key = "stty raw; echo on; head -c 1 | od -An -tx1; exec cat >/dev/null";
  Channel channel = open({.command = {"sh", "-c", shows_a_key},
                          .terminal = model::TerminalSize{.columns = 100, .rows = 30}});
  EXPECT_TRUE(channel.hear_output("on")) << channel.heard.text;
  channel.send(model::SignalFrame{SIGINT});
  EXPECT_TRUE(channel.hear_output(" 03")) << channel.heard.text;
}

TEST_F(PodOfACluster, SaysThatACommandIsMissing) {
  Channel channel = open({.command = {"no-such-program"}});
  const Heard& heard = channel.listen();
  EXPECT_EQ(heard.end, ChannelEnd::kNotOpened);
  EXPECT_EQ(heard.value, 127) << heard.text;
}

// kwok's containers take no input.
TEST_F(PodOfACluster, AttachesToAContainer) {
  Channel channel = open({});
  const std::jthread container([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    // kwok shows what comes after it has begun to read, which it does not tell.
    while (!stop.stop_requested()) {
      std::ofstream(folder_ + "/output", std::ios::app)
          << "2026-01-02T03:04:05.678900000Z stdout F printed later\n";
      never.wait_for(lock, stop, std::chrono::milliseconds(50), [] { return false; });
    }
  });
  EXPECT_TRUE(channel.hear_output("printed later")) << channel.heard.text;
}

TEST_F(PodOfACluster, ForwardsAPort) {
  Channel channel = open({.port = 8888});
  channel.send(model::InputFrame{"a question"});
  EXPECT_TRUE(channel.hear_output("a question")) << channel.heard.text;
}

TEST_F(PodOfACluster, SaysThatThereIsNoSuchPod) {
  PodStream stream{.namespace_name = "default", .pod = "missing", .container = "main"};
  stream.command = {"true"};
  Channel channel(*streams_, stream, credential_);
  EXPECT_THAT(channel.listen().text, HasSubstr("pods \"missing\" not found"));
}

}  // namespace
}  // namespace gpu_platform::kubernetes
