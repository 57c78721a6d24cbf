// Attacks on the neighbours and the host, by jobs, through the whole platform: what a job tries
// must fail wherever this host can make it fail. At the end the program prints what was held and
// what this host leaves to the job's good will.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// ---- what this host could hold, asked without the program under test

bool may_load_device_programs() {
  bpf_insn program[2] = {};
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  program[1].code = BPF_JMP | BPF_EXIT;
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = reinterpret_cast<__u64>(program);
  attributes.insn_cnt = 2;
  attributes.license = reinterpret_cast<__u64>("");
  const long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd >= 0;
}

bool has_controller(const std::string& name) {
  for (const std::string& line : lines_of(read_file("/proc/self/mountinfo"))) {
    if (line.find(" - cgroup ") != std::string::npos && line.ends_with("," + name)) return true;
  }
  const std::string unified = " " + read_file("/sys/fs/cgroup/cgroup.controllers");
  return unified.find(" " + name) != std::string::npos;
}

bool host_can_hold(const std::string& guard) {
  if (geteuid() != 0) return false;
  if (guard == "devices") return may_load_device_programs();
  if (guard == "memory") return has_controller("memory");
  if (guard == "process-count") return has_controller("pids");
  if (guard == "cpu") return has_controller("cpu");
  if (guard == "cores") return has_controller("cpuset");
  if (guard == "folders") return may_have_private_mounts();
  return true;
}

// The file in which the kernel keeps a process's weight on CPUs: cpu.shares of a v1 hierarchy that
// has the controller, else cpu.weight. Empty: not found.
std::string cpu_weight_file(const std::string& pid) {
  std::string v1;
  std::string v2;
  for (const std::string& line : lines_of(read_file("/proc/" + pid + "/cgroup"))) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find(",cpu,") != std::string::npos) v1 = line.substr(second + 1);
    if (line.starts_with("0::")) v2 = line.substr(3);
  }
  for (const std::string& line : lines_of(read_file("/proc/self/mountinfo"))) {
    std::istringstream words(line);
    std::string skipped, root, point;
    words >> skipped >> skipped >> skipped >> root >> point;
    const bool is_v1 = line.find(" - cgroup ") != std::string::npos &&
                       (line + ",").find(",cpu,") != std::string::npos;
    if (is_v1 == v1.empty() || (!is_v1 && line.find(" - cgroup2 ") == std::string::npos)) continue;
    const std::string& path = is_v1 ? v1 : v2;
    const std::size_t above = root == "/" ? 0 : root.size();
    if (path.size() > above)
      return point + path.substr(above) + (is_v1 ? "/cpu.shares" : "/cpu.weight");
  }
  return {};
}

// ---- the table that is printed at the end

class Verdicts : public ::testing::Environment {
 public:
  static std::map<std::string, std::string>& table() {
    static std::map<std::string, std::string> verdicts;
    return verdicts;
  }
  void TearDown() override {
    for (const auto& [guard, verdict] : table()) {
      std::printf("isolation: %-14s %s\n", guard.c_str(), verdict.c_str());
    }
  }
};
const auto* const kVerdicts = ::testing::AddGlobalTestEnvironment(new Verdicts);

// ---- jobs

constexpr const char* kVictim = "backup";

class Isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: other users, device nodes";
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
    chmod(daemon_.directory().c_str(), 0755);
    std::filesystem::create_directory(open_folder());
    chmod(open_folder().c_str(), 01777);
    const Finished reaches =
        run_command(as_account({kVictim}, {"/usr/bin/test", "-w", open_folder()}));
    if (reaches.exit_code != 0) GTEST_SKIP() << "closed to other users: " << open_folder();
  }

  // Returns whether the daemon holds the guard, so that the attack must fail. If it does not
  // although this host could, that alone is a failure.
  bool is_held(const std::string& guard) {
    bool held = false;
    const nlohmann::json status = daemon_.json({"status"});
    for (const auto& state : status["isolation"]) {
      if (state["guard"] == guard) held = state["held"].get<bool>();
    }
    EXPECT_TRUE(held || !host_can_hold(guard)) << guard << " is advisory:\n" << daemon_.log();
    Verdicts::table()[guard] = held ? "held" : "advisory";
    return held;
  }

  // A place that every user may use.
  std::string open_folder() const { return daemon_.directory() + "/room"; }
  std::string in_open_folder(const std::string& name) const { return open_folder() + "/" + name; }

  std::string submit(const std::string& script, std::vector<std::string> options = {}) {
    std::vector<std::string> arguments{"submit", "--workdir", open_folder()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
    const Finished submitted = daemon_.cli(arguments);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    return submitted.out.substr(0, submitted.out.find('\n'));
  }
  std::string submit_as_user(const std::string& script, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--user", kVictim});
    return submit(script, std::move(options));
  }
  nlohmann::json ended(const std::string& id) {
    daemon_.cli({"jobs", "wait", id});
    return daemon_.job(id);
  }
  // Returns what the job wrote, on both streams.
  std::string output(const std::string& id) { return daemon_.cli({"jobs", "logs", id}).out; }

  std::string make_node(const std::string& name, unsigned minor) {
    const std::string path = in_open_folder(name);
    EXPECT_EQ(mknod(path.c_str(), S_IFCHR | 0666, makedev(195, minor)), 0) << path;
    chmod(path.c_str(), 0666);
    return path;
  }
  // One line for each node: how opening it ends.
  static std::string open_nodes(const std::vector<std::string>& names) {
    std::string script;
    for (const std::string& name : names) {
      script += "dd if=" + name +
                " of=/dev/null count=0 2>&1 | grep -o 'Operation not permitted\\|" +
                "No such device or address' || echo opened; ";
    }
    return script;
  }
  // The driver's minor numbers of a job's GPUs on the emulated board are their indices.
  unsigned minor_of(const std::string& id) {
    unsigned minor = 0;
    EXPECT_TRUE(eventually([&] {
      const auto job = daemon_.job(id);
      if (!job.is_object() || job["gpus"].empty()) return false;
      minor = job["gpus"][0]["index"].get<unsigned>();
      return true;
    }));
    return minor;
  }
  bool wait_for(const std::string& name) {
    return eventually([&] { return access(in_open_folder(name).c_str(), F_OK) == 0; });
  }
  void allow(const std::string& name) { std::ofstream(in_open_folder(name)).flush(); }

  Daemon daemon_{{.emulate = "dgx-h100",
                  .config = "execution:\n  max_processes: 64\npolicies:\n  stop_grace: 1s\n"}};
};

constexpr const char* kOwnThenOthers =
    "No such device or address\nOperation not permitted\nNo such device or address\n";

TEST_F(Isolation, GpuOfANeighbourCannotBeOpened) {
  if (!is_held("devices")) GTEST_SKIP() << "advisory on this host";
  const std::string wait = "until [ -e go ]; do sleep 0.2; done; ";
  for (const char* user : {kVictim, "root"}) {
    const std::string name = user;
    const std::string id =
        submit("until [ -e go ]; do sleep 0.2; done; " + open_nodes({"own", "other", "control"}) +
                   "(" + open_nodes({"own", "other", "control"}) + ") & wait; " +
                   "export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7; " +
                   "setsid sh -c \"$OPEN\"; touch done-1; until [ -e go-2 ]; do sleep 0.2; done; " +
                   open_nodes({"own", "other", "control"}),
               {"--gpus", "1", "--user", name, "--env",
                "OPEN=" + open_nodes({"own", "other", "control"})});
    const unsigned own = minor_of(id);
    make_node("own", own);
    make_node("other", (own + 1) % 8);
    make_node("control", 255);
    allow("go");
    ASSERT_TRUE(wait_for("done-1")) << output(id);

    daemon_.kill_now();
    ASSERT_TRUE(daemon_.start());
    allow("go-2");
    EXPECT_EQ(ended(id)["state"], "COMPLETED");
    std::string expected;
    for (int round = 0; round < 4; ++round) expected += kOwnThenOthers;
    EXPECT_EQ(output(id), expected) << user;
    for (const auto& entry : std::filesystem::directory_iterator(open_folder())) {
      std::filesystem::remove(entry.path());
    }
  }
}

TEST_F(Isolation, FreshNodeOfANeighboursGpuCannotBeMade) {
  if (!is_held("devices")) GTEST_SKIP() << "advisory on this host";
  for (const char* user : {kVictim, "root"}) {
    const std::string id = submit("mknod fresh c 195 7; mknod disk b 7 0; ls; exit 0",
                                  {"--gpus", "1", "--user", user});
    EXPECT_EQ(ended(id)["state"], "COMPLETED");
    EXPECT_THAT(output(id), HasSubstr("mknod: fresh: Operation not permitted"));
    EXPECT_THAT(output(id), HasSubstr("mknod: disk: Operation not permitted"));
    EXPECT_NE(access(in_open_folder("fresh").c_str(), F_OK), 0);
  }
}

TEST_F(Isolation, ForkBombIsContained) {
  if (!is_held("process-count")) GTEST_SKIP() << "advisory on this host";
  const std::string bomb = submit_as_user(
      "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; touch all-of-them");
  const auto job = ended(bomb);
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_THAT(output(bomb), HasSubstr("fork"));
  EXPECT_NE(access(in_open_folder("all-of-them").c_str(), F_OK), 0);
  EXPECT_EQ(ended(submit_as_user("/bin/true"))["state"], "COMPLETED");
}

// Weights tell the kernel how to share CPUs that are short: twice the CPUs, twice the time.
TEST_F(Isolation, CpuTimeIsSharedByTheJobsCpusAndNotByWhatTheyWrite) {
  if (!is_held("cpu")) GTEST_SKIP() << "advisory on this host";
  std::map<std::string, long> weights;
  for (const char* cpus : {"10", "20"}) {
    const std::string id = submit_as_user(
        "until [ -e go ]; do sleep 0.2; done; echo 9999 > \"$(cat file)\"; "
        "touch tried; until [ -e end ]; do sleep 0.2; done",
        {"--cpus", cpus});
    ASSERT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "RUNNING"; }));
    const std::string file =
        cpu_weight_file(std::to_string(daemon_.job(id)["attempts"][0]["pid"].get<long>()));
    ASSERT_THAT(file, HasSubstr(id + "-1/cpu."));
    std::ofstream(in_open_folder("file")) << file;
    allow("go");
    ASSERT_TRUE(wait_for("tried"));
    weights[cpus] = std::atol(read_file(file).c_str());
    allow("end");
    EXPECT_EQ(ended(id)["state"], "COMPLETED");
    for (const char* name : {"go", "tried", "end"}) std::filesystem::remove(in_open_folder(name));
  }
  EXPECT_GT(weights["10"], 0);
  EXPECT_EQ(weights["20"], 2 * weights["10"]);
}

TEST_F(Isolation, MemoryHogEndsAlone) {
  if (!is_held("memory")) GTEST_SKIP() << "advisory on this host";
  const std::string neighbour = submit_as_user("until [ -e go ]; do sleep 0.2; done");
  const std::string hog = submit_as_user("exec tail /dev/zero", {"--memory", "64M"});
  const auto job = ended(hog);
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_EQ(job["reason"], "OUT_OF_MEMORY");
  allow("go");
  EXPECT_EQ(ended(neighbour)["state"], "COMPLETED");
}

TEST_F(Isolation, NoProcessLeavesItsJob) {
  if (!is_held("processes")) GTEST_SKIP() << "advisory on this host";
  const std::string escape =
      "trap '' TERM HUP INT; echo $$ > escaped; "
      "for g in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs); do echo 0 > $g; done; "
      "touch tried; while :; do sleep 0.2; done";
  const std::string id = submit_as_user(
      "setsid sh -c 'setsid sh -c \"$ESCAPE\" &' & until [ -e tried ]; do sleep "
      "0.02; done",
      {"--env", "ESCAPE=" + escape});
  ASSERT_TRUE(wait_for("tried"));
  const std::string pid = lines_of(read_file(in_open_folder("escaped"))).front();
  daemon_.cli({"jobs", "kill", id});
  ended(id);
  EXPECT_TRUE(eventually([&] { return access(("/proc/" + pid).c_str(), F_OK) != 0; }));
}

TEST_F(Isolation, JobThatIgnoresEverySignalEnds) {
  is_held("processes");
  const std::string id = submit_as_user(
      "for s in 1 2 3 10 12 13 14 15 17 18 20 21 22; do trap '' $s; done; touch ready; "
      "while :; do sleep 0.2; done");
  ASSERT_TRUE(wait_for("ready"));
  daemon_.cli({"jobs", "kill", id});
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
}

TEST_F(Isolation, OutputIsNoWayToWriteAFileOfRoot) {
  is_held("user");
  const std::string victim = daemon_.directory() + "/of-root";
  std::ofstream(victim) << "untouched";
  chmod(victim.c_str(), 0644);
  std::filesystem::create_symlink(victim, in_open_folder("out"));
  const auto job = ended(submit_as_user("echo overwritten", {"--output", in_open_folder("out")}));
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_EQ(job["reason"], "LAUNCH_FAILED");
  EXPECT_EQ(read_file(victim), "untouched");
}

TEST_F(Isolation, SetUserIdProgramsGainNothing) {
  is_held("user");
  std::filesystem::copy_file("/usr/bin/id", in_open_folder("id"));
  chmod(in_open_folder("id").c_str(), 04755);
  const std::string id = submit_as_user("./id -u; ./id -G; id -u backup");
  EXPECT_EQ(ended(id)["state"], "COMPLETED");
  const std::vector<std::string> lines = lines_of(output(id));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], lines[2]);
  EXPECT_THAT(" " + lines[1] + " ", Not(HasSubstr(" 0 ")));
}

TEST_F(Isolation, AFolderForTemporaryFilesIsThereInATmpOfItsOwn) {
  if (!is_held("folders")) GTEST_SKIP() << "advisory on this host";
  const std::string id = submit_as_user("echo $TMPDIR; mktemp > /dev/null && ls -A $TMPDIR | wc -l",
                                        {"--env", "TMPDIR=/tmp/of/mine"});
  EXPECT_EQ(ended(id)["state"], "COMPLETED");
  EXPECT_EQ(output(id), "/tmp/of/mine\n1\n");
}

TEST_F(Isolation, TmpOfAnotherJobIsOutOfSight) {
  if (!is_held("folders")) GTEST_SKIP() << "advisory on this host";
  const std::string name = "secret-" + std::to_string(getpid());
  const std::string first = submit_as_user("echo x | tee /tmp/" + name + " > /dev/shm/" + name +
                                           "; touch there; until [ -e go ]; do sleep 0.2; done");
  ASSERT_TRUE(wait_for("there"));
  const std::string second = submit_as_user("ls /tmp /dev/shm | grep secret; exit 0");
  EXPECT_EQ(ended(second)["state"], "COMPLETED");
  EXPECT_EQ(output(second), "");
  allow("go");
  EXPECT_EQ(ended(first)["state"], "COMPLETED");
  EXPECT_TRUE(
      eventually([&] { return std::filesystem::is_empty(daemon_.node_folder() + "/tmp"); }));
}

}  // namespace
}  // namespace gpu_platform::e2e
