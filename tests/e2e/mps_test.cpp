// Jobs that share a GPU as clients of an MPS server (docs/sharing.md#mps-servers).

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "several_users.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;

constexpr const char* kConfig =
    "monitoring:\n  interval_seconds: 1\n"
    "policies:\n  stop_grace: 5s\n"
    "sharing:\n  modes: [mps]\n  weakest_rung: advisory\n";

// What of /proc/PID/environ of a process begins with this; empty: nothing does.
std::string variable_of(const std::filesystem::path& process, const std::string& begin) {
  std::ifstream file(process / "environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(begin)) return entry.substr(begin.size());
  }
  return {};
}

// Returns whether the program was started without an option: it only asks a daemon.
bool is_front_end(const std::filesystem::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  std::string words;
  std::getline(file, words);
  return words.ends_with(std::string("nvidia-cuda-mps-control") + '\0');
}

// The control daemons and servers whose pipes are in this folder.
std::vector<pid_t> mps_processes(const std::string& pipes, const std::string& name) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string program = std::filesystem::read_symlink(entry.path() / "exe", error).filename();
    if (program != name || is_front_end(entry.path())) continue;
    if (variable_of(entry.path(), "CUDA_MPS_PIPE_DIRECTORY=") == pipes) {
      found.push_back(std::stoi(pid));
    }
  }
  return found;
}

class Mps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: MPS daemons of users";
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
  }

  std::string submit(const std::string& gpus, std::vector<std::string> command,
                     std::vector<std::string> words = {}) {
    words.insert(words.end(), {"--gpus", gpus, "--share", "mps", "--"});
    words.insert(words.end(), command.begin(), command.end());
    return daemon_.submit(words);
  }
  std::string running(const std::string& gpus, std::vector<std::string> command) {
    const std::string id = submit(gpus, std::move(command));
    EXPECT_TRUE(daemon_.reaches(id, "RUNNING")) << daemon_.job(id).dump(2) << daemon_.log();
    return id;
  }
  std::string output(const std::string& id) { return daemon_.cli({"jobs", "logs", id}).out; }
  bool prints(const std::string& id, const std::string& text) {
    return eventually([&] { return output(id).find(text) != std::string::npos; });
  }
  // The pipes of the server whose client the running job is.
  std::string pipes_of(const std::string& id) {
    std::string pipes;
    EXPECT_TRUE(eventually([&] {
      const nlohmann::json attempt = daemon_.job(id)["attempts"].back();
      if (!attempt.contains("pid")) return false;
      pipes = variable_of("/proc/" + std::to_string(attempt["pid"].get<int>()),
                          "CUDA_MPS_PIPE_DIRECTORY=");
      return !pipes.empty();
    })) << daemon_.job(id).dump(2);
    return pipes;
  }
  bool reaches_load(std::size_t index, int percent) {
    return eventually([&] {
      const nlohmann::json gpus = daemon_.json({"status"})["gpus"];
      return std::ranges::any_of(gpus, [&](const nlohmann::json& gpu) {
        return gpu["index"] == index && gpu["utilization_percent"] == percent;
      });
    });
  }
  bool is_all_free() {
    return eventually([&] { return daemon_.json({"status"})["available_gpus"] == 8; });
  }
  bool has_left_nothing(const std::string& pipes) {
    return eventually([&] {
      return mps_processes(pipes, "nvidia-cuda-mps-control").empty() &&
             mps_processes(pipes, "nvidia-cuda-mps-server").empty() &&
             !std::filesystem::exists(pipes);
    });
  }

  // NVIDIA's own, where scripts/check_mps has it.
  static std::string control() {
    const char* const nvidias = getenv("GP_MPS_CONTROL");
    return nvidias != nullptr ? nvidias : program("emulator/bin/nvidia-cuda-mps-control");
  }
  static std::string config() {
    const char* const nvidias = getenv("GP_MPS_CONTROL");
    return kConfig + (nvidias != nullptr ? "  mps_control: " + std::string(nvidias) + "\n" : "");
  }

  Daemon daemon_{{.emulate = "dgx-h100", .config = config()}};
};

TEST_F(Mps, JobsOfOneGpuRunAtOnceEachWithinItsLimits) {
  const std::string first = running(
      "0.25", {"/bin/sh", "-c",
               "echo limits $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT;"
               "exec " +
                   program("gpu-workload") + " --memory 1G --utilization 90"});
  const std::string second =
      running("0.5", {program("gpu-workload"), "--memory", "1G", "--utilization", "90"});
  EXPECT_TRUE(prints(first, "limits 25 0=20389M")) << output(first);
  const nlohmann::json gpu = daemon_.job(first)["gpus"][0];
  EXPECT_EQ(gpu["mode"], "MPS") << gpu;
  EXPECT_EQ(gpu["index"], daemon_.job(second)["gpus"][0]["index"]);
  const std::size_t index = gpu["index"];
  EXPECT_TRUE(reaches_load(index, 75)) << daemon_.json({"status"})["gpus"];

  const std::string pipes = pipes_of(first);
  EXPECT_EQ(pipes_of(second), pipes) << "one server for both";
  EXPECT_EQ(mps_processes(pipes, "nvidia-cuda-mps-control").size(), 1U);
  EXPECT_EQ(std::filesystem::status(pipes).permissions(), std::filesystem::perms::owner_all);
  for (const std::string& id : {first, second}) daemon_.cli({"jobs", "cancel", id});
  EXPECT_TRUE(has_left_nothing(pipes));
  EXPECT_TRUE(is_all_free());
}

// It answers each process that reaches its folder, so its jobs, too.
TEST_F(Mps, TheControlDaemonHasTheLimitsOfItsJobs) {
  const std::string id = submit("0.25", {"/bin/sh", "-c",
                                         "printf 'get_default_active_thread_percentage\\n"
                                         "get_default_device_pinned_mem_limit 0\\n' | " +
                                             control()});
  ASSERT_TRUE(daemon_.reaches(id, "COMPLETED")) << daemon_.job(id).dump(2) << daemon_.log();
  EXPECT_EQ(output(id), "25.0\n19G\n");
}

TEST_F(Mps, AClientGetsNoMoreMemoryThanItsPart) {
  const std::string id = submit("0.5", {program("gpu-workload"), "--memory", "5G"},
                                {"--gpu-memory", "4G", "--retries", "0"});
  ASSERT_TRUE(daemon_.reaches(id, "FAILED")) << daemon_.job(id).dump(2);
  EXPECT_EQ(daemon_.job(id)["exit_code"], 4);
  EXPECT_THAT(output(id), HasSubstr("out of memory"));
}

TEST_F(Mps, AFaultOfOneEndsAllAndOnlyThatOnePays) {
  const std::string innocent = running("0.25", {program("gpu-workload"), "--memory", "1G"});
  const std::string flag = daemon_.directory() + "/begin";
  const std::string guilty = submit("0.25",
                                    {"/bin/sh", "-c",
                                     "until [ -e " + flag + " ]; do sleep 0.1; done; exec " +
                                         program("gpu-workload") + " --memory 1G --fault-after 1s"},
                                    {"--retries", "0"});
  ASSERT_TRUE(daemon_.reaches(guilty, "RUNNING")) << daemon_.job(guilty).dump(2);
  std::ofstream(flag).flush();
  ASSERT_TRUE(eventually([&] { return daemon_.job(innocent)["attempts"].size() == 2; }))
      << daemon_.job(innocent).dump(2);
  const nlohmann::json first = daemon_.job(innocent)["attempts"][0];
  EXPECT_EQ(first["exit_code"], 6) << "the true exit code stays";
  EXPECT_THAT(std::string(first["detail"]), HasSubstr("no retry is used")) << first;
  ASSERT_TRUE(daemon_.reaches(innocent, "RUNNING")) << daemon_.job(innocent).dump(2);
}

// The server of a client that was killed inside a kernel, and had no other, takes no client any
// more.
TEST_F(Mps, AJobThatIsKilledInsideAKernelLeavesNoServerAtWhichTheNextOneHangs) {
  const std::string keeper = running("0.25", {"/bin/sleep", "600"});
  for (int i = 0; i < 5; ++i) {
    const std::string id =
        running("0.5", {"/bin/sh", "-c",
                        program("gpu-workload") + " --memory 1G & "
                                                  "echo pid $!; trap '' TERM; wait; sleep 600"});
    ASSERT_TRUE(reaches_load(daemon_.job(id)["gpus"][0]["index"], 50));
    daemon_.cli({"jobs", "kill", id});
    ASSERT_TRUE(daemon_.reaches(id, "CANCELLED")) << daemon_.job(id).dump(2);
  }
  const std::string later = submit("0.5", {program("gpu-workload"), "--duration", "1s"});
  EXPECT_TRUE(daemon_.reaches(later, "COMPLETED")) << daemon_.job(later).dump(2);
  EXPECT_EQ(daemon_.job(keeper)["state"], "RUNNING");
}

TEST_F(Mps, ADaemonThatIsKilledIsStartedAgain) {
  const std::string first = running("0.25", {"/bin/sleep", "600"});
  const std::string pipes = pipes_of(first);
  const std::vector<pid_t> before = mps_processes(pipes, "nvidia-cuda-mps-control");
  ASSERT_EQ(before.size(), 1U);
  kill(before[0], SIGKILL);
  EXPECT_TRUE(eventually([&] {
    const std::vector<pid_t> now = mps_processes(pipes, "nvidia-cuda-mps-control");
    return now.size() == 1 && now != before;
  }));
  const std::string second = submit("0.25", {program("gpu-workload"), "--duration", "1s"});
  EXPECT_TRUE(daemon_.reaches(second, "COMPLETED")) << daemon_.job(second).dump(2);
  EXPECT_EQ(daemon_.job(first)["state"], "RUNNING");
}

TEST_F(Mps, ServersOutliveTheDaemonAndItsLauncher) {
  const std::string id = running("0.5", {program("gpu-workload"), "--memory", "1G"});
  const std::string pipes = pipes_of(id);
  const std::vector<pid_t> before = mps_processes(pipes, "nvidia-cuda-mps-control");
  for (const pid_t launcher : daemon_.processes("launcher")) kill(launcher, SIGKILL);
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  ASSERT_TRUE(daemon_.reaches(id, "RUNNING")) << daemon_.job(id).dump(2);
  EXPECT_EQ(daemon_.job(id)["attempts"].size(), 1U) << "it runs on";
  const std::string second = submit("0.25", {program("gpu-workload"), "--duration", "1s"});
  EXPECT_TRUE(daemon_.reaches(second, "COMPLETED")) << daemon_.job(second).dump(2);
  EXPECT_EQ(mps_processes(pipes, "nvidia-cuda-mps-control"), before) << "the same daemon";
  daemon_.cli({"jobs", "cancel", id});
  EXPECT_TRUE(has_left_nothing(pipes));
}

TEST_F(Mps, JobsOfOneServerHaveOneSharedMemory) {
  const std::string first =
      running("0.25", {"/bin/sh", "-c", "echo x >/dev/shm/gp-mps-test; sleep 600"});
  const std::string second =
      submit("0.25",
             {"/bin/sh", "-c", "until [ -e /dev/shm/gp-mps-test ]; do sleep 0.1; done; echo seen"});
  EXPECT_TRUE(daemon_.reaches(second, "COMPLETED")) << daemon_.job(second).dump(2);
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/gp-mps-test")) << "nor is it the host's";
  const std::string whole =
      daemon_.submit({"--gpus", "1", "--", "/bin/sh", "-c", "[ ! -e /dev/shm/gp-mps-test ]"});
  EXPECT_TRUE(daemon_.reaches(whole, "COMPLETED")) << daemon_.job(whole).dump(2);
  EXPECT_EQ(daemon_.job(first)["state"], "RUNNING");
}

// Client and server must have the same shared memory there, too.
TEST(MpsWithoutPrivateFolders, ServesJobsWithTheHostsSharedMemory) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: MPS daemons of users";
  Daemon daemon({.emulate = "dgx-h100",
                 .config = "execution:\n  private_tmp: false\nsharing:\n  modes: [mps]\n"
                           "  weakest_rung: advisory\n"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string id = daemon.submit(
      {"--gpus", "0.5", "--share", "mps", "--", program("gpu-workload"), "--duration", "1s"});
  EXPECT_TRUE(daemon.reaches(id, "COMPLETED")) << daemon.job(id).dump(2) << daemon.log();
}

class MpsOfSeveralUsers : public SeveralUsers {
 protected:
  MpsOfSeveralUsers()
      : SeveralUsers({.config = "sharing:\n  modes: [mps]\n  between_users: all\n"
                                "  weakest_rung: watchdog\n"}) {}
};

TEST_F(MpsOfSeveralUsers, EachHasServersThatTheOtherCannotReach) {
  const std::vector<std::string> part = {"submit",  "--json", "--gpus", "0.25",
                                         "--share", "mps",    "--"};
  const auto submitted = [&](const char* user) {
    std::vector<std::string> words = part;
    words.insert(words.end(), {"/bin/sh", "-c", "echo $CUDA_MPS_PIPE_DIRECTORY; sleep 600"});
    const Finished finished = by(user, words);
    const nlohmann::json answer = nlohmann::json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(answer.contains("id")) << finished.out << finished.err;
    return answer.value("id", std::string());
  };
  const std::string of_ann = submitted(kAnn);
  const std::string of_bob = submitted(kBob);
  for (const std::string& id : {of_ann, of_bob}) {
    ASSERT_TRUE(daemon_.reaches(id, "RUNNING")) << daemon_.job(id).dump(2) << daemon_.log();
  }
  EXPECT_NE(daemon_.job(of_ann)["gpus"][0]["index"], daemon_.job(of_bob)["gpus"][0]["index"])
      << "a server has one user, whatever the site allows";
  std::string pipes;
  ASSERT_TRUE(eventually([&] {
    pipes = daemon_.cli({"jobs", "logs", of_ann}).out;
    return pipes.ends_with("\n");
  }));
  pipes.pop_back();
  EXPECT_EQ(as(kAnn, {"/usr/bin/test", "-w", pipes + "/control"}).exit_code, 0);
  EXPECT_NE(as(kBob, {"/usr/bin/test", "-e", pipes + "/control"}).exit_code, 0);
}

}  // namespace
}  // namespace gpu_platform::e2e
