#include "node/mps/mps_drain.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "node/cgroup.h"
#include "node/mps/program_start.h"
#include "node/mps/testing/mps_place.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/small_file.h"
#include "os/testing/eventually.h"

namespace gpu_platform::node {
namespace {

using os::eventually;

// A job in a cgroup of its own, with one process, and an MPS daemon.
class MpsDrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
    cgroup_path_ = mount.value_or("") + "/gp-mps-drain-" + std::to_string(getpid());
    if (!mount || mkdir(cgroup_path_.c_str(), 0755) != 0) {
      cgroup_path_.clear();
      GTEST_SKIP() << "no cgroups can be made here";
    }
    cgroup_ = open(cgroup_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    job_ = fork_into_cgroup(cgroup_);
    if (job_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) pause();
    }
    place_.make_folder();
    begin_daemon();
  }
  void TearDown() override {
    if (server_ > 0) kill(server_, SIGKILL);  // the daemon's child
    for (const pid_t process : {daemon_, job_}) {
      if (process <= 0) continue;
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    if (cgroup_ >= 0) close(cgroup_);
    if (!cgroup_path_.empty()) rmdir(cgroup_path_.c_str());
  }

  void begin_daemon() {
    const MpsProgram program = place_.about_program();
    UserSwitch user(program.user);
    MpsStart start;
    start.words = {program.path, "-f"};
    start.environment = mps_daemon_environment(program, "GPU-1", std::nullopt);
    start.user = geteuid() == 0 ? &user : nullptr;
    start.output = open("/dev/null", O_WRONLY | O_CLOEXEC);
    daemon_ = fork();
    if (daemon_ == 0) become_mps_program(start);
    close(start.output);
    ASSERT_TRUE(eventually([&] { return place_.ask("get_server_list").empty(); }));
  }

  std::string cgroup_path_;
  int cgroup_ = -1;
  pid_t job_ = -1;
  pid_t daemon_ = -1;
  pid_t server_ = -1;
  MpsPlace place_;
};

TEST_F(MpsDrainTest, ClientsOfTheJobEndAndNoOthers) {
  std::string server = place_.ask("double_server");
  server.pop_back();
  server_ = std::stoi(server);
  const std::string ours = std::to_string(job_);
  const std::string other = std::to_string(getpid());
  place_.ask("double_client " + server + " " + ours);
  place_.ask("double_client " + server + " " + other);
  MpsDrain drain(place_.about_program());
  const std::int64_t begin = os::boot_ms();
  EXPECT_FALSE(drain.is_over(cgroup_, begin)) << "it has just begun";
  EXPECT_TRUE(eventually([&] { return drain.is_over(cgroup_, begin); }));
  EXPECT_EQ(place_.ask("get_client_list " + server), other + "\n");
  EXPECT_TRUE(drain.is_over(cgroup_, begin)) << "once for each job";
}

TEST_F(MpsDrainTest, ADaemonThatHangsDelaysTheKillNoLonger) {
  kill(daemon_, SIGSTOP);
  MpsDrain drain(place_.about_program());
  const std::int64_t begin = os::boot_ms();
  EXPECT_FALSE(drain.is_over(cgroup_, begin));
  EXPECT_FALSE(drain.is_over(cgroup_, begin + MpsDrain::kTimeoutMs - 1));
  EXPECT_TRUE(drain.is_over(cgroup_, begin + MpsDrain::kTimeoutMs));
}

TEST_F(MpsDrainTest, AJobThatIsNoClientIsKilledAtOnce) {
  MpsDrain drain(std::nullopt);
  EXPECT_TRUE(drain.is_over(cgroup_, os::boot_ms()));
}

}  // namespace
}  // namespace gpu_platform::node
