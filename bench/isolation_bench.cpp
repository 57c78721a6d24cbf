// This program measures what it costs to keep jobs apart: /bin/true from its start until nothing of
// it is left, with one more guard in each row, beside a bare posix_spawn; all in one run.
//   isolation_bench [starts = 500]
// Needs root. The 10th percentile is what it costs when the machine has nothing else to do; what a
// guard costs is the difference to the row above. "Tidied" includes what follows when the GPUs are
// free again: the removal of the job's mounts and folders.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench_directory.h"
#include "node/cgroup.h"
#include "node/confinement.h"
#include "node/supervisor/job_start.h"

namespace gpu_platform::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

struct Row {
  const char* name;
  // Starts one, waits for its end, calls `released` when nothing of it is left, tidies up.
  std::function<void(const std::function<void()>& released)> start;
  std::vector<double> released_us;
  std::vector<double> tidied_us;
};

double percentile(std::vector<double>& values, std::size_t percent) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() * percent / 100);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// One start of each row after the other, so that other work on the machine meets all alike.
void measure(std::vector<Row>& rows, int starts) {
  for (int i = 0; i < starts; ++i) {
    for (Row& row : rows) {
      const auto begin = SteadyClock::now();
      const auto since_begin = [begin] {
        return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
      };
      row.start([&] { row.released_us.push_back(since_begin()); });
      row.tidied_us.push_back(since_begin());
    }
  }
}

void print(std::vector<Row>& rows) {
  std::printf("%-32s %9s %8s %8s %14s\n", "us", "10th pct", "added", "median", "tidied, median");
  double before = 0;
  for (Row& row : rows) {
    const double least = percentile(row.released_us, 10);
    std::printf("%-32s %9.0f %+8.0f %8.0f %14.0f\n", row.name, least, least - before,
                percentile(row.released_us, 50), percentile(row.tidied_us, 50));
    before = least;
  }
}

void spawn_bare(const std::function<void()>& released) {
  char name[] = "/bin/true";
  char* arguments[] = {name, nullptr};
  pid_t pid = -1;
  if (posix_spawn(&pid, name, nullptr, nullptr, arguments, environ) != 0) fail("posix_spawn");
  waitpid(pid, nullptr, 0);
  released();
}

node::LaunchRequest request() {
  node::LaunchRequest request;
  request.user = {0, 0, {0}, "root"};
  request.command = {std::string_view("/bin/true\0", 10)};
  request.workdir = std::string_view("/\0", 2);
  request.output = std::string_view("/dev/null\0", 10);
  request.devices = {{node::kGpuMajor, 0}};
  request.memory_bytes = std::uint64_t{1} << 30;
  request.max_processes = 16'384;
  request.cpus = 4;
  request.near_cpus = "0";
  request.private_folders = true;
  request.hide_processes = true;
  return request;
}

// As the supervisor does it, from the cgroup to its removal.
void start_confined(const node::HostConfinement& host, const std::string& base,
                    const node::LaunchRequest& job, const std::function<void()>& released) {
  const std::string cgroup = base + "/1-1";
  if (mkdir(cgroup.c_str(), 0755) != 0) fail("mkdir " + cgroup);
  const int fd = open(cgroup.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  node::JobConfinement confinement(host, "1-1");
  if (const std::string why = confinement.set_up(job, fd); !why.empty()) fail(why);
  node::JobStartOptions options;
  options.request = &job;
  options.cgroup_fd = fd;
  options.confinement = &confinement;
  node::JobStart start(options);
  if (!start.begin()) fail(start.detail());
  pollfd handle{start.handle(), POLLIN, 0};
  while (!start.is_over()) poll(&handle, 1, -1);
  if (!start.was_executed()) fail(start.detail());
  confinement.hold_mounts(start.take_mounts());
  waitpid(start.pid(), nullptr, 0);
  close(fd);
  confinement.limits().close_entrances();
  rmdir(cgroup.c_str());
  confinement.remove_groups();
  released();
  confinement.remove_folder();
}

int run(int starts) {
  if (geteuid() != 0) fail("needs root");
  const BenchDirectory directory;
  const std::string data = directory.path();
  node::NodeFolders folders;
  if (const std::string why = node::open_node_folders(data, -1, folders); !why.empty()) fail(why);
  const node::CgroupBase base = node::make_cgroup_base("isolation-bench");
  if (base.path.empty()) fail(base.why);
  node::HostConfinement all =
      node::find_confinement({&folders, "isolation-bench", base.path, base.why, {}});
  const node::LaunchRequest job = request();
  node::prepare_for(all, job);

  std::vector<Row> rows;
  node::HostConfinement some;
  some.folders = all.folders;
  const auto add = [&](const char* name) {
    rows.push_back({name,
                    [&base, &job, some](const std::function<void()>& released) {
                      start_confined(some, base.path, job, released);
                    },
                    {},
                    {}});
  };
  rows.push_back({"posix_spawn", spawn_bare, {}, {}});
  add("+ cgroup, user, no new rights");
  some.devices = all.devices;
  some.drivers = all.drivers;
  some.programs = all.programs;
  add("+ device program");
  constexpr const char* kLimits[node::kResources] = {"+ memory limit", "+ process limit",
                                                     "+ CPU weight", "+ cores near the GPUs"};
  for (std::size_t i = 0; i < node::kResources; ++i) {
    some.limits.places[i] = all.limits.places[i];
    add(kLimits[i]);
  }
  some.private_folders = all.private_folders;
  add("+ own /tmp and /dev/shm");
  some.proc_fd = all.proc_fd;
  add("+ own view of /proc");
  some.filters_syscalls = all.filters_syscalls;
  add("+ filter of system calls");
  measure(rows, starts);
  print(rows);

  node::leave_confinement(all);
  node::leave_cgroup_base(base);
  return 0;
}

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  return gpu_platform::bench::run(std::max(argc > 1 ? std::atoi(argv[1]) : 500, 10));
}
