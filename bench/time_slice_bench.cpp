// Jobs that take turns by freezing their cgroups: how exactly the shares follow the weights, and
// what a switch costs. Two busy processes stand for the jobs, on one CPU, which only the one that
// is awake needs. Needs root and cgroups v2. No test: people run it and read it.

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "node/cgroup.h"
#include "node/cgroup_freezer.h"
#include "node/protocol.h"
#include "node/syscalls.h"
#include "node/time_slices/slice_keeper.h"
#include "os/clock.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_platform {
namespace {

constexpr int kSlices = 20;

model::AttemptId job(int number) {
  return {model::JobId(static_cast<std::uint64_t>(number)), 1};
}

struct Cgroup {
  std::string path;
  int fd = -1;
  int events = -1;
  pid_t pid = -1;

  double cpu_ms() const {
    const auto text = os::read_small_file(fd, "cpu.stat");
    return static_cast<double>(os::number_after(text, "usage_usec")) / 1000;
  }
  bool is_awake() const { return !node::look_at_cgroup(fd, events).stands_still; }
  // Until all of it stands still, or runs.
  void wait_for(bool stands_still) const {
    while (node::look_at_cgroup(fd, events).stands_still != stands_still) {
      pollfd changed{events, POLLPRI, 0};
      poll(&changed, 1, 100);
    }
  }
};

Cgroup make_busy(const std::string& path) {
  Cgroup made{path};
  mkdir(path.c_str(), 0755);
  made.fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  made.events = openat(made.fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
  made.pid = node::fork_into_cgroup(made.fd);
  if (made.pid != 0) return made;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  sched_setaffinity(0, sizeof first, &first);
  volatile std::uint64_t count = 0;
  while (true) count = count + 1;
}

void remove(const Cgroup& cgroup) {
  node::thaw_cgroup(cgroup.fd);
  node::kill_cgroup(cgroup.fd);
  waitpid(cgroup.pid, nullptr, 0);
  close(cgroup.events);
  close(cgroup.fd);
  rmdir(cgroup.path.c_str());
}

struct Keeper {
  int socket = -1;
  pid_t pid = -1;
};

Keeper begin_keeper(const std::string& base) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    node::run_slice_keeper({ends[1],
                            [&](model::AttemptId attempt) {
                              return open((base + "/" + node::attempt_name(attempt)).c_str(),
                                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                            },
                            2});
    _exit(0);
  }
  close(ends[1]);
  return {ends[0], pid};
}

void rest(std::int64_t ms) {
  os::rest_until(os::monotonic_ns() + ms * 1'000'000);
}

// Freezing one and thawing another, each waited for, without any keeper.
double switch_us(const Cgroup& one, const Cgroup& two) {
  constexpr int kTimes = 100;
  std::int64_t took = 0;
  for (int i = 0; i < kTimes; ++i) {
    const Cgroup& awake = i % 2 == 0 ? one : two;
    const Cgroup& other = i % 2 == 0 ? two : one;
    rest(20);  // the kernel holds back notices that follow each other within 10 ms
    const std::int64_t start = os::monotonic_ns();
    node::freeze_cgroup(awake.fd);
    awake.wait_for(true);
    node::thaw_cgroup(other.fd);
    took += os::monotonic_ns() - start;
  }
  node::thaw_cgroup(one.fd);
  node::thaw_cgroup(two.fd);
  return static_cast<double>(took) / kTimes / 1000;
}

// What an observer sees of the two, in nanoseconds.
struct Observed {
  std::int64_t one = 0;  // awake alone
  std::int64_t two = 0;
  std::int64_t both = 0;
  std::int64_t none = 0;
  int switches = 0;
};

Observed observe(const Cgroup& one, const Cgroup& two, std::int64_t time) {
  Observed seen;
  const std::int64_t end = os::monotonic_ns() + time;
  std::int64_t since = os::monotonic_ns();
  bool is_one = one.is_awake();
  bool is_two = two.is_awake();
  while (since < end) {
    pollfd changed[] = {{one.events, POLLPRI, 0}, {two.events, POLLPRI, 0}};
    poll(changed, 2, static_cast<int>((end - since) / 1'000'000 + 1));
    const std::int64_t now = os::monotonic_ns();
    std::int64_t& state =
        is_one && is_two ? seen.both : (is_one ? seen.one : (is_two ? seen.two : seen.none));
    state += now - since;
    since = now;
    const bool was_none = !is_one && !is_two;
    is_one = one.is_awake();
    is_two = two.is_awake();
    seen.switches += was_none && (is_one || is_two) ? 1 : 0;
  }
  return seen;
}

void measure(const std::string& base, const Cgroup& one, const Cgroup& two, int slice_ms,
             std::uint32_t weight) {
  const Keeper keeper = begin_keeper(base);
  const node::TimeSlices turns{"GPU-bench",
                               static_cast<std::uint64_t>(slice_ms),
                               {{job(1), weight}, {job(2), 7000 - weight}}};
  os::send_packet(keeper.socket, node::encode(turns));
  rest(slice_ms * 2);
  const double first = one.cpu_ms();
  const double second = two.cpu_ms();
  const Observed seen = observe(one, two, std::int64_t{slice_ms} * kSlices * 1'000'000);
  const double cpu_of_one = one.cpu_ms() - first;
  const double cpu = cpu_of_one + two.cpu_ms() - second;
  fmt::print(
      "{:>8} {:>8.3f} {:>8.3f} {:>8.3f} {:>9} {:>12.0f} {:>8.1f}\n", slice_ms, weight / 7000.0,
      static_cast<double>(seen.one) / static_cast<double>(seen.one + seen.two), cpu_of_one / cpu,
      seen.switches, static_cast<double>(seen.none) / 1000 / std::max(seen.switches, 1),
      static_cast<double>(seen.both) / 1e6);
  fflush(stdout);
  close(keeper.socket);
  waitpid(keeper.pid, nullptr, 0);
}

int run() {
  const auto mount =
      node::find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  const std::string base = fmt::format("{}/gp-time-slice-bench-{}", mount.value_or(""), getpid());
  if (!mount || mkdir(base.c_str(), 0755) != 0) {
    fmt::print("no cgroup v2 can be made here: run it as root\n");
    return 1;
  }
  const Cgroup one = make_busy(base + "/" + node::attempt_name(job(1)));
  const Cgroup two = make_busy(base + "/" + node::attempt_name(job(2)));
  fmt::print("freezing one and thawing another: {:.0f} us\n\n", switch_us(one, two));
  fmt::print(
      "{} slices; gap: from the end of one turn to the begin of the next, which is what a\n"
      "switch costs beyond freezing and thawing, and what the observer is late\n",
      kSlices);
  fmt::print("{:>8} {:>8} {:>8} {:>8} {:>9} {:>12} {:>8}\n", "slice ms", "weight", "awake", "CPU",
             "switches", "gap us", "both ms");
  for (const int slice_ms : {100, 250, 1000}) {
    for (const std::uint32_t weight : {3500U, 1750U, 700U}) {
      measure(base, one, two, slice_ms, weight);
    }
  }
  remove(one);
  remove(two);
  rmdir(base.c_str());
  return 0;
}

}  // namespace
}  // namespace gpu_platform

int main() {
  return gpu_platform::run();
}
