#include "node/mps/front_end.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>

#include "node/mps/control_words.h"
#include "node/mps/program_start.h"
#include "node/mps/testing/mps_place.h"
#include "node/user_switch.h"
#include "os/testing/eventually.h"

namespace gpu_platform::node {
namespace {

using os::eventually;

class MpsFrontEndTest : public ::testing::Test {
 protected:
  void SetUp() override { place_.make_folder(); }
  void TearDown() override {
    if (daemon_ <= 0) return;
    kill(daemon_, SIGKILL);
    waitpid(daemon_, nullptr, 0);
  }

  void begin_daemon(const std::optional<BoardFiles>& board = std::nullopt) {
    const MpsProgram program = place_.about_program();
    UserSwitch user(program.user);
    MpsStart start;
    start.words = {program.path, "-f"};
    start.environment = mps_daemon_environment(program, "GPU-1", board);
    start.user = geteuid() == 0 ? &user : nullptr;
    start.output = open("/dev/null", O_WRONLY | O_CLOEXEC);
    daemon_ = fork();
    if (daemon_ == 0) become_mps_program(start);
    close(start.output);
    ASSERT_TRUE(eventually([&] { return place_.ask("get_server_list").empty(); }));
  }

  MpsPlace place_;
  pid_t daemon_ = -1;
};

TEST_F(MpsFrontEndTest, AnswersWhatTheDaemonSays) {
  begin_daemon();
  EXPECT_EQ(place_.ask("get_default_active_thread_percentage"), "100.0\n");
  EXPECT_EQ(place_.ask("set_default_active_thread_percentage 30\nget_server_list\nx"),
            "30.0\nUnknown command \"x\"\n");
}

TEST_F(MpsFrontEndTest, RunsAsTheUserWithNothingOfOurs) {
  begin_daemon(BoardFiles{"/e/libnvidia-ml.so.1", "/e/state", "/e/bin/nvidia-smi"});
  const Identity user = MpsPlace::user();
  EXPECT_EQ(place_.ask("double_user"),
            std::to_string(user.uid) + " " + std::to_string(user.gid) + "\n");
  EXPECT_EQ(place_.ask("double_environment CUDA_MPS_PIPE_DIRECTORY"), place_.folder() + "/pipe\n");
  EXPECT_EQ(place_.ask("double_environment CUDA_VISIBLE_DEVICES"), "GPU-1\n");
  EXPECT_EQ(place_.ask("double_environment GPU_EMULATOR_STATE"), "/e/state\n");
  EXPECT_EQ(place_.ask("double_environment LD_LIBRARY_PATH"), "/e\n");
  EXPECT_EQ(place_.ask("double_environment HOME"), "none\n");
}

TEST_F(MpsFrontEndTest, SaysThatThereIsNoDaemon) {
  EXPECT_EQ(place_.ask("get_server_list"), "no answer: Cannot find MPS control daemon process");
}

TEST_F(MpsFrontEndTest, SaysThatTheProgramCannotBeExecuted) {
  MpsProgram program = place_.about_program();
  program.path = place_.path() + "/missing";
  EXPECT_EQ(ask_mps_daemon(program, "get_server_list", MpsPlace::kTestTimeoutMs).why,
            "Cannot execute " + program.path + ": No such file or directory");
}

TEST_F(MpsFrontEndTest, IsKilledWhenTheDaemonHangs) {
  begin_daemon();
  kill(daemon_, SIGSTOP);
  EXPECT_EQ(ask_mps_daemon(place_.about_program(), "get_server_list", 50).why,
            "the MPS daemon did not answer in time");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0) << "only the daemon is left";
  kill(daemon_, SIGCONT);
  EXPECT_EQ(place_.ask("get_server_list"), "");
}

// A user's program may say anything.
TEST_F(MpsFrontEndTest, KeepsNoMoreThanItCanHold) {
  const std::string talker = place_.path() + "/talker";
  std::ofstream(talker) << "#!/bin/sh\nexec head -c 1000000 /dev/zero\n";
  chmod(talker.c_str(), 0755);
  MpsProgram program = place_.about_program();
  program.path = talker;
  const MpsAnswer answer = ask_mps_daemon(program, "", MpsPlace::kTestTimeoutMs);
  EXPECT_EQ(answer.why, "");
  EXPECT_EQ(answer.text.size(), 64U * 1024);
}

TEST_F(MpsFrontEndTest, TakesNoMoreThanFitsAtOnce) {
  const std::string commands(100'000, 'x');
  EXPECT_FALSE(
      ask_mps_daemon(place_.about_program(), commands, MpsPlace::kTestTimeoutMs).why.empty());
}

}  // namespace
}  // namespace gpu_platform::node
