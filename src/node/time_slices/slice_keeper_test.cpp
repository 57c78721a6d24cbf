#include "node/time_slices/slice_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "node/cgroup.h"
#include "node/cgroup_freezer.h"
#include "node/protocol.h"
#include "node/syscalls.h"
#include "node/time_slices/wheel/turn_wheel.h"
#include "os/clock.h"
#include "os/packet_socket.h"
#include "os/small_file.h"
#include "os/testing/eventually.h"

namespace gpu_platform::node {
namespace {

using os::eventually;

constexpr std::uint64_t kShortSlice = 100;    // milliseconds
constexpr std::uint64_t kLongSlice = 60'000;  // no turn ends by itself while a test runs

model::AttemptId attempt_of(std::uint64_t number) {
  return {model::JobId(number), 1};
}

// A cgroup with busy processes in it.
class Busy {
 public:
  explicit Busy(const std::string& path) : path_(path) {
    mkdir(path.c_str(), 0755);
    fd_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    events_ = openat(fd_, "cgroup.events", O_RDONLY | O_CLOEXEC);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    end();
    close(events_);
    close(fd_);
    rmdir(path_.c_str());
  }

  void begin() {
    pid_ = fork_into_cgroup(fd_);
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    volatile std::uint64_t count = 0;
    while (true) count = count + 1;
  }
  void end() {
    thaw_cgroup(fd_);
    kill_cgroup(fd_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  int fd() const { return fd_; }
  bool stands_still() const { return look_at_cgroup(fd_, events_).stands_still; }
  bool is_to_stand_still() const { return look_at_cgroup(fd_, events_).is_to_stand_still; }
  std::int64_t cpu_us() const {
    return os::number_after(os::read_small_file(fd_, "cpu.stat"), "usage_usec");
  }

 private:
  const std::string path_;
  int fd_ = -1;
  int events_ = -1;
  int pid_ = -1;
};

class SliceKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
    if (!mount) GTEST_SKIP() << "no cgroup v2 tree is mounted";
    base_ = *mount + "/gp-keeper-test-" + std::to_string(getpid());
    if (mkdir(base_.c_str(), 0755) != 0) GTEST_SKIP() << "no cgroup can be made here";
    for (const std::uint64_t number : {1U, 2U, 3U}) {
      jobs_.try_emplace(number, base_ + "/" + attempt_name(attempt_of(number)));
    }
    one().begin();
    two().begin();
  }
  void TearDown() override {
    end_keeper(SIGKILL);
    jobs_.clear();
    if (!base_.empty()) rmdir(base_.c_str());
  }

  Busy& one() { return jobs_.at(1); }
  Busy& two() { return jobs_.at(2); }

  void begin_keeper() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = ends[0];
    keeper_ = fork();
    if (keeper_ == 0) {
      close(ends[0]);
      SliceKeeperOptions options;
      options.socket = ends[1];
      options.open_cgroup = [this](model::AttemptId attempt) {
        return open((base_ + "/" + attempt_name(attempt)).c_str(),
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      };
      run_slice_keeper(options);
      _exit(0);
    }
    close(ends[1]);
  }
  void order(std::uint64_t slice_ms, std::vector<TimeSliceJob> jobs) const {
    ASSERT_TRUE(os::send_packet(socket_, encode(TimeSlices{"GPU-1", slice_ms, std::move(jobs)})));
  }
  void begin_turns(std::uint64_t slice_ms, std::uint32_t weight_of_two = 1) {
    begin_keeper();
    order(slice_ms, {{attempt_of(1), 1}, {attempt_of(2), weight_of_two}});
  }
  // Returns the status of its end.
  int end_keeper(int signal) {
    int status = -1;
    if (keeper_ > 0 && signal != 0) kill(keeper_, signal);
    if (socket_ >= 0) close(socket_);
    if (keeper_ > 0) waitpid(keeper_, &status, 0);
    socket_ = keeper_ = -1;
    return status;
  }
  bool is_alone_awake(Busy& awake, Busy& other) {
    return eventually([&] { return other.stands_still() && !awake.is_to_stand_still(); });
  }

  std::string base_;
  std::map<std::uint64_t, Busy> jobs_;
  int socket_ = -1;
  pid_t keeper_ = -1;
};

// A turn is no shorter than kShortestTurn: within less than that, "one, two, one" is no switch.
TEST_F(SliceKeeperTest, HasOneAwakeAtATime) {
  begin_turns(kShortSlice);
  ASSERT_TRUE(eventually([&] { return one().stands_still() || two().stands_still(); }));
  int switches = 0;
  bool was_one = false;
  EXPECT_TRUE(eventually([&] {
    const std::int64_t start = os::monotonic_ns();
    const bool first = !one().stands_still();
    const bool second = !two().stands_still();
    const bool again = !one().stands_still();
    if (os::monotonic_ns() - start < TurnWheel::kShortestTurn) {
      EXPECT_FALSE(first && second && again);
    }
    if (first != second && first != was_one) ++switches;
    was_one = first != second ? first : was_one;
    return switches >= 20;
  }));
}

TEST_F(SliceKeeperTest, SharesTheTimeByTheWeights) {
  begin_turns(kShortSlice, 3);
  ASSERT_TRUE(eventually([&] { return one().stands_still() || two().stands_still(); }));
  const std::int64_t first = one().cpu_us();
  const std::int64_t second = two().cpu_us();
  const auto used_by_one = [&] { return one().cpu_us() - first; };
  const auto used_by_two = [&] { return two().cpu_us() - second; };
  // Awake on a loaded machine is not at work: the more time, the less that says.
  EXPECT_TRUE(eventually([&] {
    const double ratio = double(used_by_two()) / double(std::max<std::int64_t>(used_by_one(), 1));
    return used_by_one() + used_by_two() >= 2'000'000 && ratio > 2 && ratio < 4.5;
  })) << used_by_one()
      << " " << used_by_two();
}

TEST_F(SliceKeeperTest, GivesATurnToOneThatAnotherProcessHasThawed) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  thaw_cgroup(two().fd());
  EXPECT_TRUE(is_alone_awake(two(), one()));
}

TEST_F(SliceKeeperTest, LeavesAwakeWhatIsHeld) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  hold_awake(two().fd());
  thaw_cgroup(one().fd());  // woken, the keeper looks at all
  EXPECT_FALSE(two().is_to_stand_still());
  EXPECT_FALSE(one().is_to_stand_still());
  let_go(two().fd());
  EXPECT_TRUE(is_alone_awake(two(), one())) << "what was held gets a turn";
}

TEST_F(SliceKeeperTest, CountsNoHoldOfAProcessThatHasEnded) {
  const pid_t holder = fork();
  if (holder == 0) {
    hold_awake(one().fd());
    _exit(0);
  }
  waitpid(holder, nullptr, 0);
  EXPECT_FALSE(is_held_awake(one().fd()));
  hold_awake(one().fd());
  EXPECT_TRUE(is_held_awake(one().fd()));
  let_go(one().fd());
  EXPECT_FALSE(is_held_awake(one().fd()));
}

TEST_F(SliceKeeperTest, PassesTheTurnOnWhenAJobHasEnded) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  one().end();
  EXPECT_TRUE(eventually([&] { return !two().is_to_stand_still(); }));
}

TEST_F(SliceKeeperTest, ThawsAJobThatTakesNoTurnsAnyMore) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  order(kLongSlice, {{attempt_of(1), 1}});
  EXPECT_TRUE(eventually([&] { return !two().is_to_stand_still(); }));
  EXPECT_FALSE(one().is_to_stand_still());
  order(kLongSlice, {{attempt_of(1), 1}, {attempt_of(2), 1}});
  EXPECT_TRUE(is_alone_awake(one(), two()));
}

TEST_F(SliceKeeperTest, GoesOnWithoutAJobThatIsNotThere) {
  begin_keeper();
  order(kLongSlice, {{attempt_of(7), 1}, {attempt_of(1), 1}, {attempt_of(2), 1}});
  EXPECT_TRUE(is_alone_awake(one(), two()));
}

TEST_F(SliceKeeperTest, LeavesNothingFrozenWhenItsLauncherHangsUp) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  EXPECT_EQ(end_keeper(0), 0);
  EXPECT_FALSE(one().is_to_stand_still());
  EXPECT_FALSE(two().is_to_stand_still());
}

TEST_F(SliceKeeperTest, LeavesNothingFrozenWhenItIsEnded) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  EXPECT_EQ(end_keeper(SIGTERM), 0);
  EXPECT_FALSE(one().is_to_stand_still());
  EXPECT_FALSE(two().is_to_stand_still());
}

TEST_F(SliceKeeperTest, LeavesToOthersWhatItHadFrozenWhenItIsKilled) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  end_keeper(SIGKILL);
  EXPECT_TRUE(two().is_to_stand_still());
  const int base = open(base_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  thaw_cgroups_below(base);
  close(base);
  EXPECT_FALSE(two().is_to_stand_still());
}

// It is said again and again: that of a turn's first second is not heard.
TEST_F(SliceKeeperTest, PassesTheTurnOnWhileTheGpuIsIdle) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  EXPECT_TRUE(eventually([&] {
    os::send_packet(socket_, encode(GpuIsIdle{"GPU-1"}));
    return one().stands_still() && !two().is_to_stand_still();
  }));
}

// A job that is killed while it is frozen dies at once.
TEST_F(SliceKeeperTest, KeepsNoJobFromBeingKilled) {
  begin_turns(kLongSlice);
  ASSERT_TRUE(is_alone_awake(one(), two()));
  kill_cgroup(two().fd());
  EXPECT_TRUE(eventually([&] { return cgroup_is_empty(two().fd()); }));
}

}  // namespace
}  // namespace gpu_platform::node
