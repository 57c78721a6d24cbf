#include <sys/stat.h>

#include "mps/mps_fixture.h"

// The control daemon and its front end, compared with what NVIDIA's own (535) was seen to do on a
// machine without a GPU.

namespace gpu_emulator {
namespace {

using gpu_platform::os::eventually;

class MpsControl : public MpsTest {
 protected:
  mode_t mode_of(const std::string& path) const {
    struct stat about{};
    EXPECT_EQ(lstat(path.c_str(), &about), 0) << path;
    return about.st_mode;
  }
};

constexpr char kNoDaemon[] = "Cannot find MPS control daemon process\n";

TEST_F(MpsControl, HasNoServerBeforeTheFirstClient) {
  start_daemon();
  EXPECT_EQ(text_of("get_server_list"), "");
  EXPECT_EQ(text_of("ps"), "Server not found\n");
  EXPECT_EQ(text_of("get_default_active_thread_percentage"), "100.0\n");
  EXPECT_EQ(text_of("get_default_device_pinned_mem_limit 0"), "");
}

TEST_F(MpsControl, RefusesInWordsAndEndsWithZero) {
  start_daemon();
  EXPECT_EQ(text_of("foo bar"), "Unknown command \"foo\"\n");
  EXPECT_EQ(text_of(""), "Unknown command \"\"\n");
  for (const char* const command :
       {"get_client_list 1", "shutdown_server 1", "shutdown_server 1 -f",
        "get_active_thread_percentage 1", "set_active_thread_percentage 1 5",
        "get_device_pinned_mem_limit 1 0", "set_device_pinned_mem_limit 1 0 3G"}) {
    EXPECT_EQ(text_of(command), "Server 1 not found\n") << command;
  }
  EXPECT_EQ(text_of("get_client_list"), "Server 0 not found\n");
  EXPECT_EQ(text_of("terminate_client 1 2"), "Server 1 not found\nServer 1 not found!\n1\n");
  EXPECT_EQ(text_of("start_server"), "A user id (UID) is required to start a new server\n");
  if (is_nvidias() && getuid() == 0) return;  // root's serves every user
  EXPECT_EQ(text_of(fmt::format("start_server -uid {}", getuid() + 1)),
            fmt::format("Insufficient privileges for UID {}\n", getuid()));
}

TEST_F(MpsControl, AnswersEachLine) {
  start_daemon();
  EXPECT_EQ(text_of("get_server_list\\nfoo\\nget_default_active_thread_percentage"),
            "Unknown command \"foo\"\n100.0\n");
}

TEST_F(MpsControl, DropsWrongPercentagesWithoutAWord) {
  start_daemon();
  EXPECT_EQ(text_of("set_default_active_thread_percentage 50"), "50.0\n");
  for (const char* const wrong : {"0", "-5", "130", "abc", ""}) {
    EXPECT_EQ(text_of(fmt::format("set_default_active_thread_percentage {}", wrong)), "50.0\n");
  }
  EXPECT_EQ(text_of("get_default_active_thread_percentage"), "50.0\n");
}

TEST_F(MpsControl, ReadsLimitsBackInItsOwnForm) {
  start_daemon();
  const std::pair<const char*, const char*> forms[] = {
      {"20G", "20G\n"}, {"3T", "3M\n"},       {"2048M", "2G\n"}, {"3584M", "3G\n"},
      {"abc", ""},      {"1000M", "1000M\n"}, {"0", ""},
  };
  for (const auto& [written, read] : forms) {
    EXPECT_EQ(text_of(fmt::format("set_default_device_pinned_mem_limit 0 {}", written)), "");
    EXPECT_EQ(text_of("get_default_device_pinned_mem_limit 0"), read) << written;
  }
  EXPECT_EQ(text_of("get_default_device_pinned_mem_limit 1"), "");
}

TEST_F(MpsControl, TakesTwoPriorities) {
  start_daemon();
  EXPECT_EQ(text_of("set_default_client_priority 1"), "");
  EXPECT_EQ(text_of("set_default_client_priority 3"), "Invalid priority value - must be 0 or 1!\n");
  EXPECT_EQ(text_of("get_default_client_priority"), "1\n");
}

TEST_F(MpsControl, IsAloneInItsFolder) {
  start_daemon();
  for (const char* const option : {"-f", "-d"}) {
    const pid_t second = start({mps_control(), option}, environment());
    EXPECT_EQ(end_of(second), 1);
    EXPECT_EQ(errors_of(second), "An instance of this daemon is already running\n");
  }
  EXPECT_EQ(text_of("get_server_list"), "") << "the first one is still there";
}

TEST_F(MpsControl, IsNotFoundWhereItIsNot) {
  const Answer before = ask("get_server_list");
  EXPECT_EQ(before.exit_code, 1);
  EXPECT_EQ(before.text, kNoDaemon);

  const pid_t daemon = start_daemon();
  std::filesystem::remove_all(pipe_folder());

  EXPECT_EQ(ask("get_server_list").text, kNoDaemon);
  EXPECT_EQ(waitpid(daemon, nullptr, WNOHANG), 0) << "it lives on, where no program reaches it";
}

TEST_F(MpsControl, HasTheFilesOfTheRealOne) {
  start_daemon();
  EXPECT_EQ(mode_of(pipe_folder() + "/control"), S_IFSOCK | 0666U);
  EXPECT_EQ(mode_of(pipe_folder() + "/control_lock"), S_IFREG | 0666U);
  EXPECT_EQ(mode_of(pipe_folder() + "/log"), S_IFIFO | 0777U);
  EXPECT_EQ(mode_of(pipe_folder() + "/control_privileged"), S_IFSOCK | 0755U);
}

TEST_F(MpsControl, ListensWhenItsStarterReturns) {
  const pid_t starter = start({mps_control(), "-d"}, environment());
  EXPECT_EQ(end_of(starter), 0);
  EXPECT_EQ(text_of("get_default_active_thread_percentage"), "100.0\n");
  EXPECT_EQ(mode_of(root_ + "/log/control.log"), S_IFREG | 0644U);
  EXPECT_EQ(mode_of(root_ + "/log/server.log"), S_IFREG | 0644U);
  EXPECT_EQ(text_of("quit"), "");
  EXPECT_TRUE(eventually([&] { return ask("get_server_list").exit_code == 1; }));
}

TEST_F(MpsControl, StartsWhereAnotherWasKilled) {
  const pid_t first = start_daemon();
  kill(first, SIGKILL);
  EXPECT_EQ(end_of(first), 128 + SIGKILL);
  EXPECT_EQ(ask("get_server_list").text, kNoDaemon);

  start_daemon();
  EXPECT_EQ(text_of("get_default_active_thread_percentage"), "100.0\n");
}

TEST_F(MpsControl, EndsAtOnceWithSigterm) {
  const pid_t daemon = start_daemon();
  kill(daemon, SIGTERM);
  EXPECT_EQ(end_of(daemon), 128 + SIGTERM);
}

TEST_F(MpsControl, QuitsWithZero) {
  for (const char* const command : {"quit", "quit -t 1"}) {
    const pid_t daemon = start_daemon();
    EXPECT_EQ(text_of(command), "");
    EXPECT_EQ(end_of(daemon), 0) << command;
    EXPECT_FALSE(std::filesystem::exists(pipe_folder() + "/log"));
  }
}

TEST_F(MpsControl, FailsInAFolderWithALongPath) {
  const std::string folder = root_ + "/" + std::string(85, 'a');
  std::filesystem::create_directory(folder);
  auto variables = environment();
  std::erase(variables, "CUDA_MPS_PIPE_DIRECTORY=" + pipe_folder());
  variables.push_back("CUDA_MPS_PIPE_DIRECTORY=" + folder);
  EXPECT_EQ(end_of(start({mps_control(), "-f"}, variables)), 1);
  const Answer answer = ask("get_server_list", folder);
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.text, "");
}

TEST_F(MpsControl, BeginsWithThePercentageOfItsEnvironment) {
  auto variables = environment();
  variables.push_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=40");
  start({mps_control(), "-f"}, variables);
  EXPECT_TRUE(
      eventually([&] { return ask("get_default_active_thread_percentage").text == "40.0\n"; }));
}

TEST_F(MpsControl, SaysInItsLogThatAServerFoundNoDriver) {
  auto variables = environment();
  std::erase(variables, "GPU_EMULATOR_STATE=" + root_ + "/state");
  const pid_t daemon = start({mps_control(), "-f"}, variables);
  ASSERT_TRUE(eventually([&] { return ask("get_server_list").exit_code == 0; }));
  EXPECT_EQ(text_of(fmt::format("start_server -uid {}", getuid())), "");
  EXPECT_TRUE(says(daemon, "exited with status 1"));
  EXPECT_EQ(text_of("get_server_list"), "");
}

}  // namespace
}  // namespace gpu_emulator
