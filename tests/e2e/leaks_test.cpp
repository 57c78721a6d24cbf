// After ten thousand jobs, and after daemons were killed meanwhile, a host has nothing that it did
// not have before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dirent.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "harness.h"
#include "http_load.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::IsEmpty;

constexpr std::size_t kManyJobs = 10'000;
constexpr std::size_t kBatch = 1'000;

// Device programs that the kernel has; -1 where we may not ask.
int device_programs() {
  int count = 0;
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  while (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attributes, sizeof attributes) == 0) {
    attributes.start_id = attributes.next_id;
    bpf_attr which;
    std::memset(&which, 0, sizeof which);
    which.prog_id = attributes.next_id;
    const int program =
        static_cast<int>(syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &which, sizeof which));
    if (program < 0) continue;  // gone meanwhile
    bpf_prog_info info;
    std::memset(&info, 0, sizeof info);
    bpf_attr about;
    std::memset(&about, 0, sizeof about);
    about.info.bpf_fd = static_cast<__u32>(program);
    about.info.info_len = sizeof info;
    about.info.info = reinterpret_cast<__u64>(&info);
    if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &about, sizeof about) == 0 &&
        info.type == BPF_PROG_TYPE_CGROUP_DEVICE) {
      ++count;
    }
    close(program);
  }
  return errno == ENOENT ? count : -1;
}

std::set<std::string> entries(const std::string& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    names.insert(entry.path().filename());
  }
  return names;
}

// Folders of control groups, of both versions.
std::set<std::string> cgroups() {
  std::set<std::string> found;
  for (const std::string& line : lines_of(read_file("/proc/self/mounts"))) {
    const std::size_t point = line.find(' ') + 1;
    if (line.find(" cgroup ") == std::string::npos && line.find(" cgroup2 ") == std::string::npos) {
      continue;
    }
    for (const auto& entry : entries_below(line.substr(point, line.find(' ', point) - point))) {
      std::error_code gone;
      if (entry.is_directory(gone) && !entry.is_symlink(gone)) found.insert(entry.path());
    }
  }
  return found;
}

std::set<std::string> mount_points() {
  std::set<std::string> points;
  for (const std::string& line : lines_of(read_file("/proc/self/mounts"))) {
    const std::size_t point = line.find(' ') + 1;
    points.insert(line.substr(point, line.find(' ', point) - point));
  }
  return points;
}

// Dead children of all processes that no parent has asked for: those of killed parents go to init.
std::set<std::string> zombies() {
  std::set<std::string> found;
  for (const std::string& pid : entries("/proc")) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_file("/proc/" + pid + "/stat");
    const std::size_t after_name = stat.rfind(") ");
    if (after_name == std::string::npos || stat[after_name + 2] != 'Z') continue;
    found.insert(stat.substr(0, after_name + 3));
  }
  return found;
}

std::set<std::string> new_in(const std::set<std::string>& now, const std::set<std::string>& then) {
  std::set<std::string> added;
  for (const std::string& one : now) {
    if (!then.contains(one)) added.insert(one);
  }
  return added;
}

std::size_t open_files(pid_t pid) {
  return entries("/proc/" + std::to_string(pid) + "/fd").size();
}

std::string submission() {
  return post("/v1/jobs", R"({"command":["/bin/true"],"gpus":1,"cpus":1,"memory_bytes":67108864})");
}

bool all_jobs_ended(Daemon& daemon) {
  const auto status = daemon.json({"status"});
  return status.is_object() && status["queued_jobs"] == 0 && status["running_jobs"] == 0;
}

TEST(Leaks, TenThousandJobsAndKilledProcessesLeaveNothing) {
  const std::set<std::string> cgroups_before = cgroups();
  const std::set<std::string> mounts_before = mount_points();
  const std::set<std::string> zombies_before = zombies();
  const int programs_before = device_programs();
  Daemon daemon({.emulate = "16xdgx-h100",
                 .config = "scheduling:\n  max_queue_size: 20000\n"
                           "fault_tolerance:\n  max_retries: 50\n  retry_backoff: 1s\n"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  ASSERT_EQ(daemon.processes("launcher").size(), 1u);
  const std::size_t files_of_daemon = open_files(daemon.pid());
  const std::size_t files_of_launcher = open_files(daemon.processes("launcher").front());
  const std::set<std::string> run_before = entries(daemon.node_folder() + "/run");

  for (std::size_t submitted = 0; submitted < kManyJobs; submitted += kBatch) {
    const LoadResult load =
        run_load({daemon.socket(), 16, kBatch}, [](std::size_t) { return submission(); });
    ASSERT_EQ(load.refused, 0u) << load.first_refusal;
    const std::size_t batch = submitted / kBatch;
    if (batch % 3 != 1) {
      for (const pid_t pid : daemon.processes("launcher")) kill(pid, SIGKILL);
    }
    if (batch % 3 == 2) {
      for (const pid_t pid : daemon.processes("gp-supervisor")) kill(pid, SIGKILL);
    }
    if (batch % 3 != 0) {
      daemon.kill_now();
      ASSERT_TRUE(daemon.start()) << daemon.log();
    }
  }
  ASSERT_TRUE(eventually([&] { return all_jobs_ended(daemon); }, std::chrono::seconds(300)))
      << daemon.json({"status"});
  const auto list = daemon.json({"jobs", "list", "--all", "--state", "COMPLETED"});
  EXPECT_EQ(list["jobs"].size(), kManyJobs);

  EXPECT_TRUE(eventually([&] { return daemon.processes("gp-supervisor").empty(); }));
  EXPECT_TRUE(eventually([&] { return entries(daemon.node_folder() + "/attempts").empty(); }))
      << ::testing::PrintToString(entries(daemon.node_folder() + "/attempts"));
  EXPECT_TRUE(eventually([&] { return entries(daemon.node_folder() + "/tmp").empty(); }));
  EXPECT_THAT(new_in(entries(daemon.node_folder() + "/run"), run_before), IsEmpty());
  EXPECT_LE(open_files(daemon.pid()), files_of_daemon + 8);
  ASSERT_EQ(daemon.processes("launcher").size(), 1u);
  EXPECT_LE(open_files(daemon.processes("launcher").front()), files_of_launcher + 8);
  EXPECT_TRUE(eventually([&] { return new_in(zombies(), zombies_before).empty(); }))
      << ::testing::PrintToString(new_in(zombies(), zombies_before));

  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_TRUE(eventually([&] { return daemon.processes("launcher").empty(); }));
  EXPECT_TRUE(eventually([&] { return new_in(cgroups(), cgroups_before).empty(); }))
      << ::testing::PrintToString(new_in(cgroups(), cgroups_before));
  EXPECT_THAT(new_in(mount_points(), mounts_before), IsEmpty());
  if (programs_before >= 0) {
    EXPECT_TRUE(eventually([&] { return device_programs() <= programs_before; }))
        << device_programs() << " device programs, before " << programs_before;
  }
}

}  // namespace
}  // namespace gpu_platform::e2e
