#include "execution/kubernetes/pods/channel_target.h"

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execution/kubernetes/kubernetes_harness_fixture.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

using testing::Act;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::KubernetesHarness;
using ::testing::Pair;

const model::AttemptId kAttempt{model::JobId(7), 1};

PodView running_pod(std::uint32_t rank) {
  PodView pod;
  pod.name = "gp-" + std::to_string(rank);
  pod.namespace_name = "jobs";
  pod.rank = rank;
  pod.phase = PodPhase::kRunning;
  pod.started_at = base::Instant(1);
  return pod;
}

model::JobSpec a_job() {
  model::JobSpec spec;
  spec.takes_input = true;
  return spec;
}

// ---- Where a channel leads ----

TEST(ChannelTarget, IsTheMainContainerOfTheFirstRank) {
  const model::TerminalSize size{.columns = 90, .rows = 20};
  const model::JobSpec job = a_job();
  const auto stream = channel_target({kAttempt, {"nvidia-smi", "-L"}, size},
                                     {running_pod(2), running_pod(0), running_pod(1)}, &job);
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ(stream->namespace_name, "jobs");
  EXPECT_EQ(stream->pod, "gp-0");
  EXPECT_EQ(stream->container, "main");
  EXPECT_EQ(stream->command, (std::vector<std::string>{"nvidia-smi", "-L"}));
  EXPECT_EQ(stream->terminal, size);
}

TEST(ChannelTarget, MayBeAPort) {
  const model::JobSpec job = a_job();
  const auto stream = channel_target({.attempt = kAttempt, .port = 8888}, {running_pod(0)}, &job);
  ASSERT_TRUE(stream.has_value());
  EXPECT_TRUE(stream->is_port());
  EXPECT_EQ(stream->port, 8888);
}

TEST(ChannelTarget, IsNoneOfAPodThatDoesNotRun) {
  const model::JobSpec job = a_job();
  const auto why = [&](const std::vector<PodView>& pods) {
    const auto stream = channel_target({kAttempt, {"ls"}}, pods, &job);
    EXPECT_FALSE(stream.has_value());
    return stream ? std::string() : stream.error().message;
  };
  EXPECT_EQ(why({}), "job 7 has no pod that runs");
  EXPECT_EQ(why({running_pod(1)}), "job 7 has no pod that runs");
  PodView pod = running_pod(0);
  pod.phase = PodPhase::kFailed;
  EXPECT_EQ(why({pod}), "job 7 has no pod that runs");
  pod = running_pod(0);
  pod.is_being_deleted = true;
  EXPECT_EQ(why({pod}), "job 7 has no pod that runs");
  pod = running_pod(0);
  pod.started_at = {};
  pod.waiting = "ImagePullBackOff: no such image";
  EXPECT_EQ(why({pod}), "the pod of job 7 has not started yet: ImagePullBackOff: no such image");
}

TEST(ChannelTarget, OfAJobThatIsNotKnownIsNone) {
  EXPECT_FALSE(channel_target({kAttempt, {"ls"}}, {running_pod(0)}, nullptr).has_value());
}

TEST(ChannelTarget, MayBeTheJobItself) {
  const model::JobSpec job = a_job();
  const model::TerminalSize size{.columns = 90, .rows = 20};
  const auto stream = channel_target(
      {.attempt = kAttempt, .terminal = size, .without_output = true}, {running_pod(0)}, &job);
  ASSERT_TRUE(stream.has_value());
  EXPECT_TRUE(stream->is_attach());
  EXPECT_EQ(stream->pod, "gp-0");
  EXPECT_EQ(stream->container, "main");
  EXPECT_TRUE(stream->without_output);
  EXPECT_EQ(stream->terminal, std::nullopt) << "the job has none, and the client has one";
}

TEST(ChannelTarget, ATerminalHasTheSizeOfItsClientElseOfItsJob) {
  model::JobSpec job = a_job();
  job.terminal = model::TerminalSize{.columns = 132, .rows = 50};
  const model::TerminalSize size{.columns = 90, .rows = 20};
  auto stream = channel_target({.attempt = kAttempt, .terminal = size}, {running_pod(0)}, &job);
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ(stream->terminal, size);
  EXPECT_FALSE(stream->is_usual_size);
  stream = channel_target({.attempt = kAttempt}, {running_pod(0)}, &job);
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ(stream->terminal, job.terminal);
  EXPECT_TRUE(stream->is_usual_size);
}

// ---- Channels of the engine ----

class EngineChannel : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(harness_.open(), ""); }

  base::Result<os::Descriptor> open(model::ChannelOrder order) {
    std::promise<base::Result<os::Descriptor>> opened;
    harness_.engine().open_channel(std::move(order), [&](base::Result<os::Descriptor> channel) {
      opened.set_value(std::move(channel));
    });
    return opened.get_future().get();
  }

  // The packet that ends a channel which carries nothing else.
  static std::string last_packet(const os::Descriptor& channel) {
    pollfd handle{channel.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&handle, 1, 20'000), 1);
    std::string bytes(model::kMaxFrame, '\0');
    const ssize_t got = ::recv(channel.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }

  KubernetesHarness harness_;
};

TEST_F(EngineChannel, AsksTheClusterForTheCommandInTheJobsPod) {
  const StartOrder order = harness_.order(7, Act{Act::Kind::kWaits});
  harness_.engine().start(order);
  ASSERT_TRUE(harness_.wait_until([&] { return !harness_.told(order.attempt).started.empty(); }));
  const std::string path = "/api/v1/namespaces/jobs/pods/gp-test-7-1-0/exec";
  harness_.server().forbid("GET", path);
  const auto channel = open({order.attempt, {"ls", "-l"}});
  ASSERT_TRUE(channel.has_value()) << channel.error().message;
  const std::string packet = last_packet(*channel);
  const auto frame = model::decode_frame(packet);
  ASSERT_TRUE(frame.has_value());
  const auto* end = std::get_if<model::EndFrame>(&*frame);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->end, model::ChannelEnd::kNotOpened);
  EXPECT_THAT(std::string(end->text), HasSubstr("API server refuses it: "));
  std::optional<kubernetes::RecordedRequest> asked;
  for (const auto& request : harness_.server().requests()) {
    if (request.path == path) asked = request;
  }
  ASSERT_TRUE(asked.has_value());
  EXPECT_THAT(asked->query, Contains(Pair("container", "main")));
}

TEST_F(EngineChannel, IsRefusedForAJobThatIsNotThere) {
  const auto channel = open({kAttempt, {"ls"}});
  ASSERT_FALSE(channel.has_value());
  EXPECT_EQ(channel.error().code, base::ErrorCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gpu_platform::execution
