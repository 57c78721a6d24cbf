#include "execution/kubernetes/pods/client_streams.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execution/kubernetes/pods/pod_attempts_fixture.h"
#include "kubernetes/kubeconfig.h"

// What channels must know of their attempts; what goes through them is tested with a server
// (channel_target_test.cpp). No test here makes a connection.

namespace gpu_platform::execution {
namespace {

class ClientStreamsTest : public ::testing::Test {
 protected:
  ClientStreamsTest() {
    kubernetes::ClusterAccess access;
    access.server = "http://127.0.0.1:1";
    auto client = kubernetes::Client::make(access);
    auto endpoint = kubernetes::endpoint_of(access);
    EXPECT_TRUE(client && endpoint);
    client_ = *std::move(client);
    streams_ = std::make_unique<ClientStreams>(*client_, *std::move(endpoint), attempts_,
                                               ClientStreams::Hooks{});
  }
  void ask() {
    streams_->ask_end({kOne, [this](std::optional<kubernetes::StreamEnd> end) {
                         ends_.push_back(std::move(end));
                       }});
  }

  const base::Instant begin_ = base::Instant() + base::hours(1);
  PodAttempts attempts_{settings_of_one(), [](std::string_view) { return std::string("boot-1"); }};
  std::unique_ptr<kubernetes::Client> client_;
  std::unique_ptr<ClientStreams> streams_;
  std::vector<std::optional<kubernetes::StreamEnd>> ends_;
};

TEST_F(ClientStreamsTest, TellTheEndOnceWhenThePodHasEnded) {
  attempts_.start(order_of_one(), {}, begin_);
  attempts_.see(running_pod_of_one(begin_));
  ask();
  streams_->tell_ends();
  EXPECT_TRUE(ends_.empty()) << "it runs";
  PodView ended = ended_pod_of_one(begin_, base::minutes(1));
  ended.exit_code = 3;
  attempts_.see(ended);
  streams_->tell_ends();
  streams_->tell_ends();
  ASSERT_EQ(ends_.size(), 1u);
  ASSERT_TRUE(ends_.front().has_value());
  EXPECT_EQ(ends_.front()->end, model::ChannelEnd::kExited);
  EXPECT_EQ(ends_.front()->value, 3);
}

TEST_F(ClientStreamsTest, TellAnExitCodeThatNoProcessHasAsTheNearest) {
  attempts_.start(order_of_one(), {}, begin_);
  PodView ended = ended_pod_of_one(begin_, base::minutes(1));
  ended.exit_code = 1000;
  attempts_.see(ended);
  ask();
  streams_->tell_ends();
  ASSERT_EQ(ends_.size(), 1u);
  ASSERT_TRUE(ends_.front().has_value());
  EXPECT_EQ(ends_.front()->value, 255);
}

TEST_F(ClientStreamsTest, TellThatTheEndOfAnAttemptWithoutAPodWillNotBeKnown) {
  ask();
  streams_->tell_ends();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_FALSE(ends_.front().has_value());
}

TEST_F(ClientStreamsTest, OpenNoChannelIntoAnAttemptWithoutAPod) {
  std::optional<base::Result<os::Descriptor>> opened;
  streams_->open({.attempt = kOne},
                 [&](base::Result<os::Descriptor> channel) { opened = std::move(channel); });
  ASSERT_TRUE(opened.has_value());
  EXPECT_FALSE(opened->has_value());
}

}  // namespace
}  // namespace gpu_platform::execution
