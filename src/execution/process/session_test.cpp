#include <signal.h>
#include <unistd.h>

#include "execution/process/channel_fixture.h"
#include "model/job_spec.h"
#include "node/protocol.h"

// Jobs that a person sits at: the engine, the launcher, supervisors and real programs on real
// terminals.

namespace gpu_platform::execution::testing {
namespace {

class SessionTest : public ChannelTest {
 protected:
  // A job with a pipe for its stdin.
  StartOrder piped(const std::string& script, base::Duration idle_timeout = {}) const {
    StartOrder start = shell(1, script);
    auto spec = std::make_shared<model::JobSpec>(*start.spec);
    spec->takes_input = true;
    spec->idle_timeout = idle_timeout;
    start.spec = spec;
    return start;
  }
  StartOrder on_terminal(const std::string& script, base::Duration idle_timeout = {}) const {
    StartOrder start = piped(script, idle_timeout);
    auto spec = std::make_shared<model::JobSpec>(*start.spec);
    spec->terminal = {132, 50};
    start.spec = spec;
    return start;
  }
  void begin(const StartOrder& start) {
    engine_->start(start);
    ASSERT_TRUE(observed_->wait_started(start.attempt));
  }
  os::Descriptor attach(const StartOrder& start) {
    auto channel = open({start.attempt, {}, std::nullopt});
    EXPECT_TRUE(channel.has_value()) << channel.error().message;
    return channel ? *std::move(channel) : os::Descriptor();
  }
  // Reads until the text has come.
  static std::string hear(const os::Descriptor& channel, const std::string& text) {
    std::string heard;
    while (heard.find(text) == std::string::npos) {
      const std::string packet = receive(channel);
      const auto frame = model::decode_frame(packet);
      if (!frame || std::holds_alternative<model::EndFrame>(*frame)) break;
      if (const auto* out = std::get_if<model::OutputFrame>(&*frame)) heard += out->bytes;
    }
    return heard;
  }
  bool is_kept(const StartOrder& start, const std::string& text) const {
    return eventually([&] { return output(start).find(text) != std::string::npos; });
  }
  std::string socket_of(const StartOrder& start) const {
    return folder() + "/run/" + node::session_name(start.attempt);
  }
};
INSTANTIATE_TEST_SUITE_P(Engine, SessionTest, ::testing::Values(Mode::kCgroup, Mode::kAdvisory),
                         [](const auto& mode) {
                           return mode.param == Mode::kCgroup ? "Cgroup" : "Advisory";
                         });

TEST_P(SessionTest, InputIsWhatIsSentUntilItsEnd) {
  const StartOrder job = piped("cat; echo whole; exit 3");
  begin(job);
  const os::Descriptor channel = attach(job);
  EXPECT_TRUE(send(channel, model::InputFrame{"typed\n"}));
  EXPECT_TRUE(send(channel, model::EndOfInputFrame{}));
  const Heard heard = listen(channel);
  EXPECT_TRUE(heard.opened);
  EXPECT_EQ(heard.output, "typed\nwhole\n");
  EXPECT_EQ(heard.taken, 6u);
  EXPECT_EQ(heard.end, model::ChannelEnd::kExited);
  EXPECT_EQ(heard.value, 3);
  ASSERT_TRUE(observed_->wait_cleaned(job.attempt));
  EXPECT_EQ(output(job), "typed\nwhole\n") << "kept all the same";
  EXPECT_NE(access(socket_of(job).c_str(), F_OK), 0);
}

TEST_P(SessionTest, JobHasATerminalOfItsOwn) {
  const StartOrder job =
      on_terminal("tty -s && stty size && echo by-name > /dev/tty; read word; echo \"got $word\"");
  begin(job);
  const os::Descriptor channel = attach(job);
  EXPECT_NE(hear(channel, "by-name").find("50 132"), std::string::npos);
  EXPECT_TRUE(send(channel, model::InputFrame{"something\n"}));
  const Heard heard = listen(channel);
  EXPECT_NE(heard.output.find("got something\r\n"), std::string::npos) << heard.output;
  EXPECT_EQ(heard.end, model::ChannelEnd::kExited);
  ASSERT_TRUE(observed_->wait_cleaned(job.attempt));
  EXPECT_NE(output(job).find("got something"), std::string::npos);
}

TEST_P(SessionTest, TerminalTakesTheSizeOfWhoeverAttachesAndOfTheirWindow) {
  const StartOrder job =
      on_terminal("trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
  begin(job);
  ASSERT_TRUE(is_kept(job, "ready"));
  const auto channel = open({job.attempt, {}, model::TerminalSize{100, 30}});
  ASSERT_TRUE(channel.has_value());
  EXPECT_NE(hear(*channel, "30 100").find("30 100"), std::string::npos);
  EXPECT_TRUE(send(*channel, model::ResizeFrame{{90, 20}}));
  EXPECT_NE(hear(*channel, "20 90").find("20 90"), std::string::npos);
}

TEST_P(SessionTest, ControlCInterruptsWhatIsInTheForeground) {
  const StartOrder job =
      on_terminal("trap 'echo interrupted' INT; echo ready; sleep 1000; echo alive");
  begin(job);
  const os::Descriptor channel = attach(job);
  std::string heard = hear(channel, "ready");
  // A key that comes before the shell has begun to sleep interrupts the shell alone.
  ASSERT_TRUE(eventually([&] {
    if (!send(channel, model::InputFrame{"\x03"})) return true;
    heard += hear(channel, "^C");
    return heard.find("alive") != std::string::npos;
  }));
  heard += listen(channel).output;
  EXPECT_NE(heard.find("interrupted"), std::string::npos) << heard;
  EXPECT_NE(heard.find("alive"), std::string::npos) << heard;
}

TEST_P(SessionTest, WhatWasPrintedBeforeIsShownToWhoeverAttaches) {
  const StartOrder job = on_terminal("echo earlier; read word");
  begin(job);
  ASSERT_TRUE(is_kept(job, "earlier"));
  EXPECT_NE(hear(attach(job), "earlier").find("earlier"), std::string::npos);
  EXPECT_NE(hear(attach(job), "earlier").find("earlier"), std::string::npos) << "and again";
}

TEST_P(SessionTest, OnlyTheNewestIsKeptForThat) {
  const StartOrder job = on_terminal("seq 1 100000; echo last; read word");
  begin(job);
  ASSERT_TRUE(is_kept(job, "last"));
  const std::string heard = hear(attach(job), "last");
  EXPECT_LE(heard.size(), 64u * 1024);
  EXPECT_NE(heard.find("99999\r\n100000\r\nlast"), std::string::npos);
}

TEST_P(SessionTest, WhoeverComesTakesThePlaceOfWhoeverWasThere) {
  const StartOrder job = on_terminal("read word; echo \"got $word\"");
  begin(job);
  const os::Descriptor first = attach(job);
  EXPECT_EQ(model::decode_frame(receive(first)), model::Frame(model::OpenedFrame{}));
  const os::Descriptor second = attach(job);
  const Heard heard = listen(first);
  EXPECT_EQ(heard.end, model::ChannelEnd::kDetached);
  EXPECT_NE(heard.text.find("another client has attached"), std::string::npos) << heard.text;
  EXPECT_TRUE(send(second, model::InputFrame{"word\n"}));
  EXPECT_NE(listen(second).output.find("got word"), std::string::npos);
}

TEST_P(SessionTest, OutlivesEngineAndLauncher) {
  const StartOrder job = on_terminal("echo $$; read word; echo \"got $word\"");
  begin(job);
  const os::Descriptor before = attach(job);
  EXPECT_NE(hear(before, "\n"), "");
  kill(static_cast<pid_t>(engine_->node_part().launcher_pid), SIGKILL);
  if (mode_ == Mode::kAdvisory) restart_service();
  open_engine();
  adopt(job, model::AttemptState::kRunning);
  ASSERT_TRUE(observed_->wait_started(job.attempt));
  const os::Descriptor after = attach(job);
  EXPECT_TRUE(send(after, model::InputFrame{"word\n"}));
  EXPECT_NE(listen(after).output.find("got word"), std::string::npos);
}

TEST_P(SessionTest, InputOnlyIsSentWhereNoOutputIsWanted) {
  const StartOrder job = piped("cat");
  begin(job);
  auto channel = open({job.attempt, {}, std::nullopt, 0, true});
  ASSERT_TRUE(channel.has_value());
  EXPECT_TRUE(send(*channel, model::InputFrame{"typed\n"}));
  EXPECT_TRUE(send(*channel, model::EndOfInputFrame{}));
  const Heard heard = listen(*channel);
  EXPECT_EQ(heard.output, "");
  EXPECT_EQ(heard.end, model::ChannelEnd::kExited);
  EXPECT_EQ(output(job), "typed\n");
}

TEST_P(SessionTest, JobThatReadsNothingHoldsNobodyUp) {
  const StartOrder job = piped("exec 0</dev/null; echo closed; read never; sleep 1000");
  begin(job);
  const os::Descriptor channel = attach(job);
  EXPECT_NE(hear(channel, "closed"), "");
  const std::string most(model::kMaxFrameBytes, 'x');
  EXPECT_TRUE(send(channel, model::InputFrame{most}));
  EXPECT_TRUE(send(channel, model::EndOfInputFrame{}));
  std::uint64_t taken = 0;
  while (taken < most.size()) {
    const std::string packet = receive(channel);
    const auto frame = model::decode_frame(packet);
    ASSERT_TRUE(frame.has_value());
    if (const auto* part = std::get_if<model::TakenFrame>(&*frame)) taken += part->bytes;
  }
}

TEST_P(SessionTest, WhoeverTakesNothingIsLeftBehindAndTheJobGoesOn) {
  const StartOrder job = piped("read go; seq 1 1000000; touch done; cat");
  begin(job);
  const os::Descriptor channel = attach(job);
  EXPECT_TRUE(send(channel, model::InputFrame{"go\n"}));
  ASSERT_TRUE(wait_for_file(path("done")));
  const Heard heard = listen(channel);
  EXPECT_EQ(heard.end, model::ChannelEnd::kDetached);
  EXPECT_NE(heard.text.find("was not read"), std::string::npos) << heard.text;
  EXPECT_NE(heard.output.find("1\n2\n3\n"), std::string::npos);
  ASSERT_TRUE(is_kept(job, "\n1000000\n"));
}

// It is announced when half of its time is over, and the client must be there by then.
TEST_P(SessionTest, IdleJobIsAnnouncedAndEndedWithoutDaemon) {
  const StartOrder job = on_terminal("echo ready; read word", base::seconds(6));
  begin(job);
  const os::Descriptor channel = attach(job);
  close_engine();
  const Heard heard = listen(channel);
  EXPECT_NE(heard.output.find("the job is ended in"), std::string::npos) << heard.output;
  EXPECT_EQ(heard.end, model::ChannelEnd::kSignalled);
  open_engine();
  adopt(job, model::AttemptState::kRunning);
  ASSERT_TRUE(observed_->wait_cleaned(job.attempt));
  const Ended ended = observed_->of(job.attempt).ended.front();
  EXPECT_EQ(ended.reason, model::EndReason::kIdleTimeout);
  EXPECT_EQ(output(job).find("the job is ended in"), std::string::npos)
      << "kept is what the job printed";
}

TEST_P(SessionTest, JobThatPrintsIsNotIdle) {
  // Between two lines much less than the timeout passes, in all much more.
  const StartOrder job =
      on_terminal("for i in $(seq 40); do echo $i; sleep 0.2; done; exit 4", base::seconds(5));
  const Ended ended = run(job);
  EXPECT_EQ(ended.exit.code, 4);
  EXPECT_EQ(ended.reason, model::EndReason::kNone);
}

TEST_P(SessionTest, JobWithoutInputCannotBeAttachedTo) {
  const StartOrder job = sleeper();
  const os::Descriptor channel = attach(job);
  const Heard heard = listen(channel);
  EXPECT_FALSE(heard.opened);
  EXPECT_EQ(heard.end, model::ChannelEnd::kNotOpened);
}

TEST_P(SessionTest, SocketOfAKilledSupervisorIsRemovedWithItsMarker) {
  const StartOrder job = piped("sleep 1000");
  begin(job);
  ASSERT_EQ(access(socket_of(job).c_str(), F_OK), 0);
  kill(static_cast<pid_t>(supervisor_pid(job.attempt)), SIGKILL);
  ASSERT_TRUE(observed_->wait_cleaned(job.attempt));
  engine_->forget({job.attempt});
  EXPECT_TRUE(eventually([&] { return access(socket_of(job).c_str(), F_OK) != 0; }));
}

}  // namespace
}  // namespace gpu_platform::execution::testing
