#include <signal.h>

#include "base/prng.h"
#include "execution/process/channel_fixture.h"

// Channels into running attempts: the engine, the launcher, a relay and real commands.

namespace gpu_platform::execution::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Engine, ChannelTest, ::testing::Values(Mode::kCgroup, Mode::kAdvisory),
                         [](const auto& mode) {
                           return mode.param == Mode::kCgroup ? "Cgroup" : "Advisory";
                         });

TEST_P(ChannelTest, CommandHasThreeStreamsAndAnExitCode) {
  const StartOrder job = sleeper();
  const os::Descriptor channel = open_shell(job, "cat; echo wrong >&2; exit 3");
  EXPECT_TRUE(send(channel, model::InputFrame{"typed\n"}));
  EXPECT_TRUE(send(channel, model::EndOfInputFrame{}));
  const Heard heard = listen(channel);
  EXPECT_TRUE(heard.opened);
  EXPECT_EQ(heard.output, "typed\n");
  EXPECT_EQ(heard.errors, "wrong\n");
  EXPECT_EQ(heard.taken, 6u);
  EXPECT_EQ(heard.end, model::ChannelEnd::kExited);
  EXPECT_EQ(heard.value, 3);
}

TEST_P(ChannelTest, SignalReachesACommandThatReadsNoInput) {
  const StartOrder job = sleeper();
  const os::Descriptor channel = open_shell(job, "exec sleep 1000");
  const std::string most(model::kMaxFrameBytes, 'x');
  for (std::size_t sent = 0; sent + most.size() <= model::kInputWindow; sent += most.size()) {
    ASSERT_TRUE(send(channel, model::InputFrame{most}));
  }
  EXPECT_TRUE(send(channel, model::SignalFrame{SIGTERM}));
  const Heard heard = listen(channel);
  EXPECT_EQ(heard.end, model::ChannelEnd::kSignalled);
  EXPECT_EQ(heard.value, SIGTERM);
}

TEST_P(ChannelTest, LargeOutputIsWhole) {
  const StartOrder job = sleeper();
  const os::Descriptor channel = open_shell(job, "seq 1 300000");
  std::string expected;
  for (int i = 1; i <= 300'000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(listen(channel).output == expected);
}

TEST_P(ChannelTest, MoreInputThanTheWindowAndWhatIsNoFrameHangUp) {
  const StartOrder job = sleeper();
  const os::Descriptor full = open_shell(job, "echo $$ > full; exec sleep 1000");
  ASSERT_TRUE(eventually([&] { return !read(path("full")).empty(); }));
  const std::string most(model::kMaxFrameBytes, 'x');
  // A pipe's own buffer takes some of it; beyond both it is too much.
  for (int i = 0; i < 16; ++i) {
    if (!send(full, model::InputFrame{most})) break;
  }
  EXPECT_FALSE(listen(full).end.has_value());
  const int pid = std::stoi(read(path("full")));
  EXPECT_TRUE(eventually([&] { return !is_alive(pid); }));

  base::Prng random(11);
  for (int i = 0; i < 20; ++i) {
    const os::Descriptor channel = open_shell(job, "exec sleep 1000");
    std::string packet(1 + random.below(40), '\0');
    for (char& c : packet) c = static_cast<char>(random.below(256));
    packet.front() = static_cast<char>(5 + random.below(250));  // none that a client may send
    EXPECT_TRUE(send(channel, packet));
    EXPECT_FALSE(listen(channel).end.has_value());
  }
  EXPECT_EQ(observed_->of(job.attempt).ended.size(), 0u) << "the job itself is not touched";
}

TEST_P(ChannelTest, CommandEndsWithItsJob) {
  const StartOrder job = sleeper();
  const os::Descriptor channel = open_shell(job, "exec sleep 1000");
  EXPECT_EQ(model::decode_frame(receive(channel)), model::Frame(model::OpenedFrame{}));
  engine_->stop({job.attempt, true, {}, model::EndReason::kKilledBy});
  const Heard heard = listen(channel);
  EXPECT_EQ(heard.end, model::ChannelEnd::kSignalled);
  EXPECT_NE(heard.text.find("job 1 has ended"), std::string::npos) << heard.text;
  EXPECT_TRUE(observed_->wait_cleaned(job.attempt));
}

TEST_P(ChannelTest, WhatCannotBeOpenedSaysWhy) {
  const StartOrder job = sleeper();
  const auto missing = open({job.attempt, {"no-such-program"}, std::nullopt});
  ASSERT_TRUE(missing.has_value());
  const Heard heard = listen(*missing);
  EXPECT_FALSE(heard.opened);
  EXPECT_EQ(heard.end, model::ChannelEnd::kNotOpened);
  EXPECT_EQ(heard.value, 127);

  const auto unknown = open({{model::JobId(9), 1}, {"/bin/true"}, std::nullopt});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, base::ErrorCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gpu_platform::execution::testing
