#include "bin/engine_channels.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <optional>
#include <string>

#include "bin/captured_log_fixture.h"
#include "bin/fake_access_fixture.h"

namespace gpu_platform::bin {
namespace {

using model::EngineKind;

class EngineChannelsTest : public ::testing::Test {
 protected:
  EngineChannelsTest() {
    model::Job job;
    job.id = model::JobId(1);
    job.attempts.emplace_back();
    job.attempts.back().allocation.nodes.push_back({.node = model::NodeId(1)});
    snapshot_->jobs.put(1, job);
  }
  // Returns the error's words; empty: it was opened.
  std::string open(std::uint64_t job) {
    model::ChannelOrder order;
    order.attempt = {model::JobId(job), 1};
    order.command = {"nvidia-smi", "--secret"};
    order.by = "ann";
    order.by_uid = 1001;
    std::string why = "no answer";
    channels_.open(order, [&](base::Result<api::ChannelSocket> channel) {
      why = channel ? "" : channel.error().message;
      if (channel) socket_.emplace(*std::move(channel));
    });
    return why;
  }

  CapturedLog captured_;
  logging::Log log_;
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  FakeAccess processes_;
  FakeAccess pods_;
  execution::AccessRouter router_{
      {{EngineKind::kProcess, &processes_}, {EngineKind::kKubernetes, &pods_}},
      [](model::NodeId) { return EngineKind::kKubernetes; }};
  EngineChannels channels_{router_, [this] { return snapshot_; }, log_};
  std::optional<api::ChannelSocket> socket_;
};

TEST_F(EngineChannelsTest, AreOpenedByTheEngineOfTheAttempt) {
  EXPECT_EQ(open(1), "it does not run");
  EXPECT_EQ(pods_.opened().size(), 1U);
  EXPECT_TRUE(processes_.opened().empty());
  EXPECT_EQ(open(7), "it does not run") << "a job that is not there any more";
  EXPECT_EQ(processes_.opened().size(), 1U);
}

TEST_F(EngineChannelsTest, BeginAndEndAreLoggedWithoutArguments) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const os::Descriptor other(ends[1]);
  pods_.set_channel(ends[0]);
  EXPECT_EQ(open(1), "");
  const std::string what = "info: channel=1 job=1 attempt=1 by=ann kind=exec command=nvidia-smi";
  EXPECT_EQ(captured_.lines(), (std::vector<std::string>{what + " begins"}));
  socket_.reset();
  EXPECT_EQ(captured_.lines(), (std::vector<std::string>{what + " begins", what + " ends"}));
}

TEST_F(EngineChannelsTest, ThatAreRefusedAreNotLogged) {
  open(1);
  EXPECT_TRUE(captured_.lines().empty());
}

TEST(ChannelLog, TellsPortsFromAttaching) {
  CapturedLog captured;
  logging::Log log;
  model::ChannelOrder order;
  order.attempt = {model::JobId(2), 3};
  order.by = "bob";
  {
    const ChannelLog attach(log, 1, order);
  }
  order.port = 8888;
  {
    const ChannelLog port(log, 2, order);
  }
  EXPECT_EQ(captured.lines(),
            (std::vector<std::string>{"info: channel=1 job=2 attempt=3 by=bob kind=attach begins",
                                      "info: channel=1 job=2 attempt=3 by=bob kind=attach ends",
                                      "info: channel=2 job=2 attempt=3 by=bob kind=port port=8888 "
                                      "begins",
                                      "info: channel=2 job=2 attempt=3 by=bob kind=port port=8888 "
                                      "ends"}));
}

}  // namespace
}  // namespace gpu_platform::bin
