#include "node/mps/mps_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "node/cgroup.h"
#include "node/folders/private_folders.h"
#include "node/mps/control_words.h"
#include "node/mps/mps_places.h"
#include "node/mps/program_start.h"
#include "node/mps/testing/mps_place.h"
#include "node/protocol.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/packet_socket.h"
#include "os/small_file.h"
#include "os/testing/eventually.h"

namespace gpu_platform::node {
namespace {

using os::eventually;

constexpr const char* kGpu = "GPU-1";

MpsJob mps_job(std::uint64_t number, std::uint32_t percent, std::uint32_t memory_mib) {
  return {{model::JobId(number), 1}, percent, memory_mib};
}

class MpsKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root has MPS daemons";
    if (const std::string why = error_in_private_folders(); !why.empty()) GTEST_SKIP() << why;
    const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
    if (!mount) GTEST_SKIP() << "no cgroup v2 tree is mounted";
    base_ = *mount + "/gp-mps-test-" + std::to_string(getpid());
    if (mkdir(base_.c_str(), 0755) != 0) GTEST_SKIP() << "no cgroup can be made here";
    base_fd_ = open(base_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    places_.emplace(MpsPlaces::Options{place_.path() + "/run", "token", base_fd_});
    made_ = places_->make(name_, MpsPlace::user());
    ASSERT_EQ(made_.why, "");
    place_.set_folder("run/token/" + name_);
  }
  void TearDown() override {
    end_keeper(SIGKILL);
    if (base_fd_ < 0) return;
    EXPECT_TRUE(eventually([&] { return places_->remove(name_); }));
    close(base_fd_);
    EXPECT_EQ(rmdir(base_.c_str()), 0) << "nothing is left in it";
  }

  void begin_keeper(int answer_ms = MpsPlace::kTestTimeoutMs) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    socket_ = ends[0];
    keeper_ = fork();
    if (keeper_ == 0) {
      close(ends[0]);
      MpsKeeperOptions options;
      options.socket = ends[1];
      options.folder = made_.folder.get();
      options.cgroup = made_.cgroup.get();
      options.path = place_.folder();
      options.user = MpsPlace::user();
      options.look_every_ms = 50;
      options.answer_ms = answer_ms;
      options.has_own_memory = has_own_memory_;
      run_mps_keeper(options);
      _exit(0);
    }
    close(ends[1]);
  }
  // Returns the status of its end. Signal 0: the launcher hangs up.
  int end_keeper(int signal) {
    int status = -1;
    if (keeper_ > 0 && signal != 0) kill(keeper_, signal);
    if (signal == 0) close_socket();
    if (keeper_ > 0) waitpid(keeper_, &status, 0);
    close_socket();
    keeper_ = -1;
    return status;
  }
  void close_socket() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  void order(std::vector<MpsJob> jobs) const {
    const MpsServer wanted{kGpu, MpsPlace::kUser, place_.program(), std::nullopt, std::move(jobs)};
    ASSERT_TRUE(os::send_packet(socket_, encode(wanted)));
  }
  // Waits for the next one.
  MpsState state() {
    pollfd readable{socket_, POLLIN, 0};
    poll(&readable, 1, MpsPlace::kTestTimeoutMs);
    const os::Packet packet = os::receive_packet(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT);
    const auto message =
        packet.kind == os::Packet::Kind::kMessage ? decode(packet.bytes) : std::nullopt;
    const auto* const found = message ? std::get_if<MpsState>(&*message) : nullptr;
    EXPECT_NE(found, nullptr) << "nothing was told";
    return found != nullptr ? *found : MpsState{};
  }
  void begin_daemon(int answer_ms = MpsPlace::kTestTimeoutMs) {
    begin_keeper(answer_ms);
    order({mps_job(1, 30, 2048)});
    const MpsState told = state();
    ASSERT_TRUE(told.is_ready) << told.why;
  }
  // It was lost for this reason, and another one is ready.
  void expect_another(const std::string& why) {
    const MpsState lost = state();
    EXPECT_TRUE(lost.is_lost && !lost.is_ready);
    EXPECT_EQ(lost.why, "the MPS daemon was lost: " + why);
    EXPECT_EQ(lost.jobs.size(), 1U);
    const MpsState found = state();
    EXPECT_TRUE(found.is_ready) << found.why;
    EXPECT_EQ(ask("get_default_active_thread_percentage"), "30.0\n");
  }

  std::string ask(const std::string& commands) const { return place_.ask(commands); }
  std::vector<int> processes() const {
    return parse_mps_pids(os::read_small_file(made_.cgroup.get(), "cgroup.procs")).pids;
  }
  // One that is dead and waited for by no process is not in the cgroup any more.
  bool process_lives(int pid) const {
    const std::vector<int> pids = processes();
    return std::ranges::find(pids, pid) != pids.end();
  }
  // The only process of the cgroup, while there are no servers.
  int daemon_pid() const {
    const std::vector<int> pids = processes();
    EXPECT_EQ(pids.size(), 1U);
    return pids.empty() ? -1 : pids.front();
  }
  int begin_server() const {
    const std::vector<int> pids = parse_mps_pids(ask("double_server")).pids;
    EXPECT_EQ(pids.size(), 1U);
    return pids.empty() ? -1 : pids.front();
  }

  const std::string name_ = mps_name(kGpu, MpsPlace::kUser);
  MpsPlace place_;
  std::optional<MpsPlaces> places_;
  MpsPlaces::Place made_;
  std::string base_;
  int base_fd_ = -1;
  bool has_own_memory_ = true;
  int socket_ = -1;
  pid_t keeper_ = -1;
  char buffer_[kMaxMessage];
};

TEST_F(MpsKeeperTest, StartsADaemonWithTheLargestLimitsOfItsJobs) {
  begin_keeper();
  order({mps_job(1, 30, 2048), mps_job(2, 50, 1024)});
  const MpsState told = state();
  EXPECT_TRUE(told.is_ready) << told.why;
  EXPECT_EQ(told.folder, place_.folder());
  EXPECT_EQ(told.jobs.size(), 2U);
  EXPECT_EQ(ask("get_default_active_thread_percentage"), "50.0\n");
  EXPECT_EQ(ask("get_default_device_pinned_mem_limit 0"), "2G\n");
  EXPECT_EQ(ask("double_user"), "12345 12345\n");
  EXPECT_EQ(ask("double_environment CUDA_VISIBLE_DEVICES"), std::string(kGpu) + "\n");
}

TEST_F(MpsKeeperTest, SharedMemoryOfTheDaemonIsThatOfItsFolder) {
  begin_daemon();
  struct stat of_folder{};
  struct stat of_daemon{};
  const std::string shm = "/proc/" + std::to_string(daemon_pid()) + "/root/dev/shm";
  ASSERT_EQ(stat((place_.folder() + "/shm").c_str(), &of_folder), 0);
  ASSERT_EQ(stat(shm.c_str(), &of_daemon), 0);
  EXPECT_EQ(of_folder.st_dev, of_daemon.st_dev);
  EXPECT_EQ(of_folder.st_ino, of_daemon.st_ino);
}

TEST_F(MpsKeeperTest, SharedMemoryIsTheHostsWhereJobsHaveNoFoldersOfTheirOwn) {
  has_own_memory_ = false;
  begin_daemon();
  struct stat ours{};
  struct stat of_daemon{};
  const std::string shm = "/proc/" + std::to_string(daemon_pid()) + "/root/dev/shm";
  ASSERT_EQ(stat("/dev/shm", &ours), 0);
  ASSERT_EQ(stat(shm.c_str(), &of_daemon), 0);
  EXPECT_EQ(ours.st_dev, of_daemon.st_dev);
  EXPECT_EQ(ours.st_ino, of_daemon.st_ino);
}

TEST_F(MpsKeeperTest, LivingServersGetTheLimitsToo) {
  begin_daemon();
  const std::string server = std::to_string(begin_server());
  order({mps_job(1, 30, 2048), mps_job(2, 70, 3072)});
  EXPECT_TRUE(state().is_ready);
  EXPECT_EQ(ask("get_active_thread_percentage " + server), "70.0\n");
  EXPECT_EQ(ask("get_device_pinned_mem_limit " + server + " 0"), "3G\n");
}

TEST_F(MpsKeeperTest, LimitThatIsDroppedInSilenceIsAFailure) {
  begin_daemon();
  ask("double_drop set_default_active_thread_percentage");
  order({mps_job(1, 30, 2048), mps_job(2, 60, 2048)});
  MpsState told = state();
  EXPECT_FALSE(told.is_ready);
  EXPECT_EQ(told.why, "the MPS daemon did not take 60 % (it says 30.0)");
  EXPECT_EQ(told.jobs.size(), 2U);
  order({mps_job(1, 30, 2048)});
  EXPECT_TRUE(state().is_ready);
  ask("double_drop set_default_device_pinned_mem_limit");
  order({mps_job(1, 30, 512)});
  told = state();
  EXPECT_FALSE(told.is_ready);
  EXPECT_EQ(told.why, "the MPS daemon did not take 512 MiB (it says 2G)");
}

// A job can raise them: it reaches its own daemon.
TEST_F(MpsKeeperTest, LimitsThatAJobHasChangedAreSetAgain) {
  begin_daemon();
  ask("set_default_active_thread_percentage 100");
  EXPECT_TRUE(eventually([&] { return ask("get_default_active_thread_percentage") == "30.0\n"; }));
}

TEST_F(MpsKeeperTest, SaysThatTheProgramIsNotThere) {
  begin_keeper();
  const MpsServer wanted{kGpu, MpsPlace::kUser, "/missing", std::nullopt, {mps_job(1, 30, 2048)}};
  ASSERT_TRUE(os::send_packet(socket_, encode(wanted)));
  const MpsState told = state();
  EXPECT_FALSE(told.is_ready);
  EXPECT_EQ(told.why,
            "the MPS daemon ended at its start: Cannot execute /missing: No such file or "
            "directory");
}

TEST_F(MpsKeeperTest, KilledDaemonIsStartedAgain) {
  begin_daemon();
  const int before = daemon_pid();
  const int server = begin_server();
  kill(before, SIGKILL);
  expect_another("it ended");
  EXPECT_NE(daemon_pid(), before);
  EXPECT_TRUE(eventually([&] { return !process_lives(server); })) << "it ends with its daemon";
}

TEST_F(MpsKeeperTest, HangingDaemonIsStartedAgain) {
  begin_daemon(3000);
  const int before = daemon_pid();
  kill(before, SIGSTOP);
  expect_another("the MPS daemon did not answer in time");
  EXPECT_TRUE(eventually([&] { return !process_lives(before); }));
}

TEST_F(MpsKeeperTest, DaemonWhoseFolderWasRemovedIsStartedAgain) {
  begin_daemon();
  const int before = daemon_pid();
  std::filesystem::remove_all(place_.folder() + "/pipe");
  expect_another("it cannot be reached in its folder any more");
  EXPECT_TRUE(eventually([&] { return !process_lives(before); }));
}

TEST_F(MpsKeeperTest, AnotherDaemonInItsPlaceIsNotTakenForIt) {
  begin_daemon();
  const std::string pipe = place_.folder() + "/pipe";
  const std::string aside = place_.folder() + "/aside";
  ASSERT_EQ(mkdir(aside.c_str(), 0700), 0);
  ASSERT_EQ(chown(aside.c_str(), MpsPlace::kUser, MpsPlace::kUser), 0);
  UserSwitch user(MpsPlace::user());
  MpsStart start;
  start.words = {place_.program(), "-f"};
  start.environment = {"CUDA_MPS_PIPE_DIRECTORY=" + aside};
  start.user = &user;
  start.output = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t other = fork();
  if (other == 0) become_mps_program(start);
  close(start.output);
  ASSERT_TRUE(eventually([&] { return access((aside + "/control").c_str(), F_OK) == 0; }));
  ASSERT_EQ(renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, pipe.c_str(), RENAME_EXCHANGE), 0);
  expect_another("it cannot be reached in its folder any more");
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0) << "it lives: it is not in the cgroup";
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_F(MpsKeeperTest, ServerWithoutClientsEndsAfterAJobHasLeft) {
  begin_keeper();
  order({mps_job(1, 30, 2048), mps_job(2, 30, 2048)});
  ASSERT_TRUE(state().is_ready);
  const int server = begin_server();
  const std::string pid = std::to_string(server);
  ask("double_client " + pid + " 4711");
  order({mps_job(1, 30, 2048)});
  ASSERT_TRUE(state().is_ready);
  EXPECT_TRUE(process_lives(server)) << "it has a client";
  ask("terminate_client " + pid + " 4711");
  EXPECT_TRUE(eventually([&] { return !process_lives(server); }));
  EXPECT_EQ(ask("get_server_list"), "");
}

TEST_F(MpsKeeperTest, IdleServerThatDoesNotEndIsKilled) {
  begin_keeper();
  order({mps_job(1, 30, 2048), mps_job(2, 30, 2048)});
  ASSERT_TRUE(state().is_ready);
  const int server = begin_server();
  ask("double_drop shutdown_server");
  order({mps_job(1, 30, 2048)});
  EXPECT_TRUE(eventually([&] { return !process_lives(server); }));
}

// The user's daemon may name any process.
TEST_F(MpsKeeperTest, ServerThatIsNotInTheCgroupIsNotKilled) {
  begin_keeper();
  order({mps_job(1, 30, 2048), mps_job(2, 30, 2048)});
  ASSERT_TRUE(state().is_ready);
  const pid_t other = fork();
  if (other == 0) {
    while (true) pause();
  }
  ask("double_client " + std::to_string(other) + " 4711");
  ask("terminate_client " + std::to_string(other) + " 4711");
  ask("double_drop shutdown_server");
  order({mps_job(1, 30, 2048)});
  ASSERT_TRUE(state().is_ready);
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0) << "it lives";
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_F(MpsKeeperTest, LinkInThePlaceOfAFolderIsNotFollowed) {
  namespace fs = std::filesystem;
  const std::string elsewhere = place_.path() + "/elsewhere";
  fs::create_directory(elsewhere);
  for (const char* const name : {"pipe", "log"}) {
    fs::remove_all(place_.folder() + "/" + name);
    fs::create_directory_symlink(elsewhere, place_.folder() + "/" + name);
  }
  begin_keeper();
  order({mps_job(1, 30, 2048)});
  EXPECT_FALSE(state().is_ready) << "there is no place for the log";
  fs::remove(place_.folder() + "/log");
  EXPECT_TRUE(state().is_ready) << "it is made";
  EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST_F(MpsKeeperTest, ServerStaysWhileNoJobLeaves) {
  begin_daemon();
  const int server = begin_server();
  order({mps_job(1, 30, 2048), mps_job(2, 30, 2048)});
  EXPECT_TRUE(state().is_ready);
  EXPECT_TRUE(process_lives(server));
}

TEST_F(MpsKeeperTest, NothingIsLeftAfterTheLastJob) {
  begin_daemon();
  begin_server();
  order({});
  const MpsState told = state();
  EXPECT_FALSE(told.is_ready);
  EXPECT_TRUE(told.jobs.empty());
  EXPECT_EQ(end_keeper(0), 0);
  EXPECT_TRUE(cgroup_is_empty(made_.cgroup.get()));
  ASSERT_TRUE(places_->remove(name_));
  EXPECT_NE(access((base_ + "/mps-" + name_).c_str(), F_OK), 0);
  EXPECT_NE(access((place_.path() + "/run/token").c_str(), F_OK), 0);
  const std::string mounts = os::read_small_file(AT_FDCWD, "/proc/self/mountinfo");
  EXPECT_EQ(mounts.find(place_.path()), std::string::npos);
}

TEST_F(MpsKeeperTest, EndsTheDaemonWhenItIsEnded) {
  begin_daemon();
  EXPECT_EQ(end_keeper(SIGTERM), 0);
  EXPECT_TRUE(cgroup_is_empty(made_.cgroup.get()));
}

TEST_F(MpsKeeperTest, HangingDaemonIsEndedToo) {
  begin_daemon(3000);
  kill(daemon_pid(), SIGSTOP);
  EXPECT_EQ(end_keeper(SIGTERM), 0);
  EXPECT_TRUE(cgroup_is_empty(made_.cgroup.get()));
}

TEST_F(MpsKeeperTest, DaemonOutlivesItsLauncherAndIsTakenOver) {
  begin_daemon();
  const int before = daemon_pid();
  EXPECT_EQ(end_keeper(0), 0);
  EXPECT_TRUE(process_lives(before));
  begin_daemon();
  EXPECT_EQ(daemon_pid(), before);
  end_keeper(SIGKILL);
  begin_daemon();
  EXPECT_EQ(daemon_pid(), before);
}

TEST_F(MpsKeeperTest, ProcessesThatAreNoDaemonMakeRoomForOne) {
  const pid_t other = fork_into_cgroup(made_.cgroup.get());
  if (other == 0) {
    while (true) pause();
  }
  begin_daemon();
  EXPECT_EQ(waitpid(other, nullptr, 0), other) << "it was killed";
  EXPECT_NE(daemon_pid(), other);
}

}  // namespace
}  // namespace gpu_platform::node
