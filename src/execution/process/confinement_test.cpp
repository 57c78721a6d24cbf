// These tests check that jobs are kept within their bounds, with real processes, devices and limits
// of this host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>

#include "execution/process/engine_fixture.h"
#include "model/job_spec.h"
#include "node/protocol.h"

namespace gpu_platform::execution::testing {
namespace {

using model::EndReason;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint32_t kUser = 34;

class Confinement : public EngineTest {
 protected:
  bool holds(node::Guard guard) const {
    for (const node::GuardState& state : engine_->node_part().guards) {
      if (state.guard == guard) return state.held;
    }
    return false;
  }

  static StartOrder as_user(StartOrder start, std::uint32_t uid) {
    model::JobSpec spec = *start.spec;
    spec.uid = uid;
    spec.gid = uid;
    start.spec = std::make_shared<model::JobSpec>(spec);
    return start;
  }
  static StartOrder with_memory(StartOrder start, base::Bytes memory) {
    model::JobSpec spec = *start.spec;
    spec.request.memory = memory;
    start.spec = std::make_shared<model::JobSpec>(spec);
    return start;
  }
  static StartOrder with_gpu(StartOrder start, std::uint32_t minor) {
    model::GpuInfo gpu;
    gpu.uuid = "GPU-x";
    gpu.minor = minor;
    start.nodes.front().gpus = {{.info = gpu}};
    return start;
  }

  std::string node_file(const std::string& name, unsigned major, unsigned minor,
                        mode_t type = S_IFCHR) {
    const std::string file = path(name);
    EXPECT_EQ(mknod(file.c_str(), type | 0666, makedev(major, minor)), 0) << file;
    chmod(file.c_str(), 0666);
    return file;
  }
  // Names of everything below `folder`.
  std::vector<std::string> left_in(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
};

// Prints the error of opening the file, "opened" where there is none.
std::string try_open(const std::string& file) {
  return "dd if=" + file +
         " of=/dev/null count=0 2>&1 | grep -o 'Operation not permitted\\|No such "
         "device or address\\|Permission denied' || echo opened; ";
}

TEST_F(Confinement, JobOpensItsOwnGpuAndNoOther) {
  if (!holds(node::Guard::kDevices)) GTEST_SKIP() << "advisory on this host";
  node_file("own", 195, 3);
  node_file("other", 195, 4);
  node_file("control", 195, 255);
  // Nothing drives them here: what is allowed ends with ENXIO.
  const StartOrder start =
      with_gpu(shell(1, try_open("own") + try_open("other") + try_open("control")), 3);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start),
            "No such device or address\nOperation not permitted\nNo such device or address\n");
}

TEST_F(Confinement, JobWithoutGpusOpensNone) {
  if (!holds(node::Guard::kDevices)) GTEST_SKIP() << "advisory on this host";
  node_file("gpu", 195, 0);
  node_file("control", 195, 255);
  const StartOrder start = shell(1, try_open("gpu") + try_open("control"));
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "Operation not permitted\nOperation not permitted\n");
}

TEST_F(Confinement, OrdinaryDevicesWorkDisksAndMemoryDoNot) {
  if (!holds(node::Guard::kDevices)) GTEST_SKIP() << "advisory on this host";
  node_file("disk", 7, 0, S_IFBLK);
  node_file("memory", 1, 1);
  node_file("mine", 1, 3);
  const StartOrder start =
      shell(1, "head -c 8 /dev/urandom > /dev/null && [ -c /dev/full ]; " + try_open("disk") +
                   try_open("memory") + try_open("mine") + "mknod made c 1 3 2>&1");
  EXPECT_EQ(run(start).exit.code, 1);
  EXPECT_THAT(output(start),
              HasSubstr("Operation not permitted\nOperation not permitted\nopened\n"));
  EXPECT_THAT(output(start), HasSubstr("mknod: made: Operation not permitted"));
}

TEST_F(Confinement, MemoryHogEndsOutOfMemory) {
  if (!holds(node::Guard::kMemory)) GTEST_SKIP() << "advisory on this host";
  const Ended ended =
      run(with_memory(shell(1, "exec head -c 1G /dev/zero | tail"), base::kMiB * 64));
  EXPECT_EQ(ended.reason, EndReason::kOutOfMemory);
}

TEST_F(Confinement, JobThatStaysWithinItsMemoryEndsWell) {
  const Ended ended = run(
      with_memory(shell(1, "head -c 16M /dev/zero | tail -c 16M > /dev/null"), base::kMiB * 64));
  EXPECT_EQ(ended.reason, EndReason::kNone);
  EXPECT_EQ(ended.exit.code, 0);
  EXPECT_GT(ended.usage.peak_memory, base::kMiB * 8);
}

TEST_F(Confinement, ForkBombIsContained) {
  if (!holds(node::Guard::kProcesses)) GTEST_SKIP() << "advisory on this host";
  options_.max_processes = 40;
  open_engine();
  const StartOrder start = as_user(
      shell(1, "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done; echo all"), kUser);
  StartOrder impatient = start;
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  impatient.stop_grace = base::milliseconds(1);
  EXPECT_NE(run(impatient).exit.code, 0);
  EXPECT_THAT(output(start), Not(HasSubstr("all")));
  EXPECT_THAT(output(start), HasSubstr("fork"));
}

TEST_F(Confinement, EveryJobHasItsOwnTmpAndShm) {
  if (!holds(node::Guard::kFolders)) GTEST_SKIP() << "advisory on this host";
  const std::string name = "gp-confinement-" + std::to_string(getpid());
  const StartOrder first = as_user(shell(1, "touch /tmp/" + name + " /dev/shm/" + name +
                                                "; ls /tmp; touch there; "
                                                "while [ ! -e go ]; do sleep 0.01; done"),
                                   kUser);
  engine_->start(first);
  ASSERT_TRUE(wait_for_file(path("there")));
  const StartOrder second =
      as_user(shell(2, "ls /tmp /dev/shm | grep " + name + "; id -u; stat -c %a:%u /tmp"), kUser);
  EXPECT_EQ(run(second).exit.code, 0);
  EXPECT_EQ(output(second), "34\n700:34\n");
  EXPECT_NE(access(("/tmp/" + name).c_str(), F_OK), 0);
  EXPECT_NE(access(("/dev/shm/" + name).c_str(), F_OK), 0);
  std::ofstream(path("go")).flush();
  ASSERT_TRUE(observed_->wait_cleaned(first.attempt));
  EXPECT_TRUE(eventually([&] { return left_in(folder() + "/tmp").empty(); }));
}

// The working directory of these tests lies below /tmp.
TEST_F(Confinement, WorkingDirectoryBelowTmpIsInItsPlace) {
  if (!holds(node::Guard::kFolders)) GTEST_SKIP() << "advisory on this host";
  const StartOrder start = as_user(shell(1, "pwd; echo here > result; ls -A /tmp"), kUser);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), work_ + "\n" + root_.substr(5) + "\n");
  EXPECT_EQ(read(path("result")), "here\n");
}

TEST_F(Confinement, NamesOfEmulatedNodesAreThisHostInAFileThatTheJobCannotChange) {
  if (!holds(node::Guard::kFolders)) GTEST_SKIP() << "advisory on this host";
  close_engine();
  options_.board_places = {work_ + "/boards", work_};
  open_engine();
  StartOrder start = as_user(shell(1,
                                   "tail -n 1 /etc/hosts 2>/dev/null; ls -A /tmp | grep hosts; "
                                   "echo x 2>/dev/null >> /etc/hosts || echo kept"),
                             kUser);
  start.nodes.front().emulated = true;
  start.nodes.front().node_name = "gp-emulated-7";
  EXPECT_EQ(run(start).exit.code, 0);
  const bool has_hosts = access("/etc/hosts", F_OK) == 0;
  EXPECT_EQ(output(start), (has_hosts ? "127.0.0.1 gp-emulated-7\n" : "") + std::string("kept\n"));
  EXPECT_EQ(read("/etc/hosts").find("gp-emulated-7"), std::string::npos);
}

TEST_F(Confinement, LinkInThePlaceOfAFolderOfOursIsNotFollowed) {
  // A launcher answers within milliseconds or, as here, not at all.
  ProcessEngineOptions impatient = options_;
  impatient.open_timeout_ms = 2000;
  for (const char* name : {"tmp", "attempts", "output", "run"}) {
    close_engine();
    std::filesystem::remove_all(folder() + "/" + name);
    std::filesystem::create_directory_symlink(work_, folder() + "/" + name);
    EXPECT_FALSE(ProcessEngine::open(impatient, environments_, *observed_)) << name;
    EXPECT_THAT(left_in(work_), IsEmpty()) << name;
    std::filesystem::remove(folder() + "/" + name);
  }
  open_engine();
}

TEST_F(Confinement, DirectoryThatTheUserMayNotEnterIsNotShown) {
  const std::string secret = root_ + "/secret";
  mkdir(secret.c_str(), 0700);
  mkdir((secret + "/inner").c_str(), 0755);
  StartOrder start = as_user(shell(1, "ls"), kUser);
  model::JobSpec spec = *start.spec;
  spec.workdir = secret + "/inner";
  start.spec = std::make_shared<model::JobSpec>(spec);
  const Ended ended = run(start);
  EXPECT_EQ(ended.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(ended.exit.code, 126);
  EXPECT_THAT(ended.detail, HasSubstr("change to directory"));
}

TEST_F(Confinement, LinkToAForeignFileIsNoWayToWriteIt) {
  const std::string victim = root_ + "/victim";
  std::ofstream(victim) << "untouched";
  chmod(victim.c_str(), 0644);
  std::filesystem::create_symlink(victim, path("out"));
  StartOrder start = as_user(shell(1, "echo overwritten"), kUser);
  model::JobSpec spec = *start.spec;
  spec.output = path("out");
  start.spec = std::make_shared<model::JobSpec>(spec);
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 126);
  EXPECT_THAT(ended.detail, HasSubstr("open output file"));
  EXPECT_EQ(read(victim), "untouched");
}

TEST_F(Confinement, NothingGainsRights) {
  const std::string gain = path("id");
  std::filesystem::copy_file("/usr/bin/id", gain);
  chmod(gain.c_str(), 04755);
  const StartOrder start = as_user(shell(1, "./id -u; grep NoNewPrivs /proc/self/status"), kUser);
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "34\nNoNewPrivs:\t1\n");
}

TEST_F(Confinement, JobRunsNearItsGpus) {
  StartOrder start = with_gpu(shell(1, "grep Cpus_allowed_list /proc/self/status"), 0);
  start.nodes.front().near = {model::NumaNode{0, 0, "0", base::Bytes()}};
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "Cpus_allowed_list:\t0\n");
}

TEST_F(Confinement, JobCannotLeaveTheCoresNearItsGpus) {
  if (!holds(node::Guard::kCores)) GTEST_SKIP() << "advisory on this host";
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one core";
  StartOrder start = with_gpu(
      shell(1, "taskset -cp 0-1 $$ > /dev/null; grep Cpus_allowed_list /proc/self/status"), 0);
  start.nodes.front().near = {model::NumaNode{0, 0, "1", base::Bytes()}};
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "Cpus_allowed_list:\t1\n");
}

TEST_F(Confinement, CoresThatAreNotOursAreNoReasonNotToRun) {
  StartOrder start = with_gpu(shell(1, "echo ran"), 0);
  start.nodes.front().near = {model::NumaNode{0, 0, "8000-8001", base::Bytes()}};
  EXPECT_EQ(run(start).exit.code, 0);
  EXPECT_EQ(output(start), "ran\n");
}

// The cgroups, of all controllers, whose paths have the text. Those of others come and go
// meanwhile, which is no error.
std::vector<std::string> groups_of(const std::string& text,
                                   const std::filesystem::path& folder = "/sys/fs/cgroup") {
  std::vector<std::string> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) || entry->is_symlink(ignored)) continue;
    if (entry->path().string().find(text) != std::string::npos) found.push_back(entry->path());
    const auto below = groups_of(text, entry->path());
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

TEST_F(Confinement, NothingIsLeftOfAJobWhoseSupervisorWasKilled) {
  StartOrder start = with_gpu(
      with_memory(shell(1, "touch /tmp/file; touch there; exec sleep 1000"), base::kMiB * 64), 0);
  start.nodes.front().near = {model::NumaNode{0, 0, "0", base::Bytes()}};
  engine_->start(start);
  ASSERT_TRUE(wait_for_file(path("there")));
  const std::string cgroup = cgroup_of(start.attempt);
  const std::string base = engine_->node_part().detail;
  const std::string of_job = base.substr(base.rfind('/')) + "/1-1";
  ASSERT_THAT(groups_of(of_job), Not(IsEmpty()));
  kill(static_cast<pid_t>(supervisor_pid(start.attempt)), SIGKILL);
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  EXPECT_NE(access(cgroup.c_str(), F_OK), 0);
  EXPECT_TRUE(eventually([&] { return left_in(folder() + "/tmp").empty(); }));
  EXPECT_THAT(groups_of(of_job), IsEmpty());
}

TEST_F(Confinement, ManyJobsLeaveNothing) {
  constexpr std::uint64_t kJobs = 60;
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    engine_->start(with_memory(shell(job, "touch /tmp/a /dev/shm/b"), base::kMiB * 64));
  }
  for (std::uint64_t job = 1; job <= kJobs; ++job) {
    ASSERT_TRUE(observed_->wait_cleaned({model::JobId(job), 1}));
  }
  EXPECT_TRUE(eventually([&] { return left_in(folder() + "/tmp").empty(); }));
}

}  // namespace
}  // namespace gpu_platform::execution::testing
