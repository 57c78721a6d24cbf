#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "node/protocol.h"
#include "os/child_process.h"
#include "os/packet_socket.h"
#include "os/small_file.h"
#include "os/testing/eventually.h"

// The launcher's part in MPS (node/launcher/mps_servers.h), spoken to as a daemon does. The program
// that it starts stands in for nvidia-cuda-mps-control.

namespace gpu_platform::execution {
namespace {

using os::eventually;

constexpr int kLimitMs = 60'000;
constexpr const char* kMpsGpu = "GPU-1";

class LauncherMps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root has MPS daemons";
    char name[] = "/tmp/gp-mps-launcher-XXXXXX";
    root_ = mkdtemp(name);
    begin_launcher();
    if (welcome_.isolation != node::Isolation::kCgroup) GTEST_SKIP() << welcome_.detail;
  }
  void TearDown() override {
    if (root_.empty()) return;
    end_launcher();
    std::filesystem::remove_all(root_);
  }

  void begin_launcher() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = ends[0];
    os::ChildProgram program;
    program.words = {GP_PROGRAM_DIRECTORY "/gpu-platform-node",
                     "launcher",
                     "--root",
                     root_ + "/node",
                     "--socket-fd",
                     std::to_string(os::kChildLink),
                     "--root-jobs",
                     "allow"};
    program.link = ends[1];
    const auto started = os::start_child_process(program);
    close(ends[1]);
    ASSERT_TRUE(started.has_value());
    launcher_ = *started;
    send(node::Hello{node::kProtocolVersion});
    const auto answer = receive();
    ASSERT_TRUE(answer && std::holds_alternative<node::Welcome>(*answer));
    welcome_ = std::get<node::Welcome>(*answer);
  }
  void end_launcher() {
    if (launcher_ < 0) return;
    close(socket_);
    waitpid(launcher_, nullptr, 0);
    launcher_ = -1;
  }

  void send(const node::Message& message) const {
    ASSERT_TRUE(os::send_packet(socket_, node::encode(message)));
  }
  std::optional<node::Message> receive() {
    pollfd readable{socket_, POLLIN, 0};
    if (poll(&readable, 1, kLimitMs) != 1) return std::nullopt;
    const os::Packet packet = os::receive_packet(socket_, buffer_, sizeof buffer_);
    if (packet.fd >= 0) close(packet.fd);
    return packet.kind == os::Packet::Kind::kMessage ? node::decode(packet.bytes) : std::nullopt;
  }
  node::MpsState order(std::vector<node::MpsJob> jobs) {
    send(node::MpsServer{kMpsGpu, 0, GP_PROGRAM_DIRECTORY "/mps_control_double", std::nullopt,
                         std::move(jobs)});
    const auto answer = receive();
    const auto* const state = answer ? std::get_if<node::MpsState>(&*answer) : nullptr;
    EXPECT_NE(state, nullptr) << "nothing was told";
    return state != nullptr ? *state : node::MpsState{};
  }
  static std::vector<node::MpsJob> one_job() { return {{{model::JobId(1), 1}, 30, 2048}}; }

  std::string cgroup() const { return welcome_.detail + "/mps-" + node::mps_name(kMpsGpu, 0); }
  std::string processes() const {
    return os::read_small_file(AT_FDCWD, (cgroup() + "/cgroup.procs").c_str());
  }
  // That of a launcher that has gone: it ends, too.
  void wait_for_keeper() const {
    const int handle = open(cgroup().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_TRUE(eventually([&] { return flock(handle, LOCK_EX | LOCK_NB) == 0; }));
    close(handle);
  }
  static bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

  std::string root_;
  pid_t launcher_ = -1;
  int socket_ = -1;
  node::Welcome welcome_;
  char buffer_[node::kMaxMessage];
};

TEST_F(LauncherMps, DaemonIsThereWhileAJobNeedsIt) {
  const node::MpsState ready = order(one_job());
  ASSERT_TRUE(ready.is_ready) << ready.why;
  EXPECT_EQ(ready.jobs.size(), 1U);
  EXPECT_TRUE(exists(ready.folder + "/pipe/control"));
  EXPECT_FALSE(processes().empty());
  const node::MpsState ended = order({});
  EXPECT_FALSE(ended.is_ready);
  EXPECT_TRUE(ended.jobs.empty());
  EXPECT_TRUE(eventually([&] { return !exists(ready.folder) && !exists(cgroup()); }));
}

TEST_F(LauncherMps, DaemonThatNoJobEverNeededIsEndedAtOnce) {
  const node::MpsState ended = order({});
  EXPECT_FALSE(ended.is_ready);
  EXPECT_FALSE(exists(cgroup()));
}

TEST_F(LauncherMps, DaemonOutlivesTheLauncherAndTheNextOneTakesItOver) {
  const node::MpsState ready = order(one_job());
  ASSERT_TRUE(ready.is_ready) << ready.why;
  const std::string before = processes();
  kill(launcher_, SIGKILL);
  end_launcher();
  EXPECT_EQ(processes(), before);
  begin_launcher();
  EXPECT_TRUE(order(one_job()).is_ready);
  EXPECT_EQ(processes(), before);
  order({});
  EXPECT_TRUE(eventually([&] { return !exists(ready.folder) && !exists(cgroup()); }));
}

TEST_F(LauncherMps, LauncherThatBeginsRemovesWhatHasNoProcess) {
  const node::MpsState ready = order(one_job());
  ASSERT_TRUE(ready.is_ready) << ready.why;
  kill(launcher_, SIGKILL);
  end_launcher();
  wait_for_keeper();
  os::write_small_file(AT_FDCWD, (cgroup() + "/cgroup.kill").c_str(), "1");
  ASSERT_TRUE(eventually([&] { return processes().empty(); }));
  begin_launcher();
  EXPECT_FALSE(exists(ready.folder));
  EXPECT_FALSE(exists(cgroup()));
}

}  // namespace
}  // namespace gpu_platform::execution
