// GPUs of an emulated board as the whole platform sees them: jobs on them, unmanaged processes,
// leftovers, and what operators do.

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "harness.h"
#include "unmanaged_process.h"

namespace gpu_platform::e2e {
namespace {

constexpr const char* kGpu = "dgx-h100-1:0";
constexpr const char* kLost = "dgx-h100-1:5";

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.log(); }

  Finished emulator(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program("gpu-emulator"));
    arguments.insert(arguments.end(), {"--data-dir", daemon_.data_dir()});
    return run_command(arguments);
  }
  nlohmann::json gpu(std::size_t index) { return daemon_.json({"status", "--all"})["gpus"][index]; }
  // A job on GPU 0 that runs until `release_job()`; its first process.
  std::string start_job() {
    const Finished submitted = daemon_.cli({"submit", "--gpus", "1", "--", "/bin/sh", "-c",
                                            "until [ -e " + flag() + " ]; do sleep 0.2; done"});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
    EXPECT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "RUNNING"; }));
    return id;
  }
  void release_job() { std::ofstream(flag()).flush(); }
  std::string flag() const { return daemon_.directory() + "/flag"; }
  // GPU 5 falls off the bus, or is there again, and the node is described anew.
  void lose() {
    ASSERT_EQ(emulator({"inject", "lost", "--gpu", kLost}).exit_code, 0);
    end_probe();
    ASSERT_TRUE(becomes(5, "OFFLINE"));
  }
  void find_again() {
    ASSERT_EQ(emulator({"clear", "--gpu", kLost}).exit_code, 0);
    end_probe();
  }
  void end_probe() {
    ASSERT_TRUE(eventually([&] { return !daemon_.processes("probe").empty(); }));
    for (const pid_t probe : daemon_.processes("probe")) kill(probe, SIGKILL);
  }
  bool becomes(std::size_t index, const std::string& state) {
    return eventually([&] { return gpu(index)["state"] == state; });
  }
  bool reason_becomes(std::size_t index, const std::string& part) {
    return eventually([&] {
      const auto reason = gpu(index)["reason"];
      return reason.is_string() && reason.get<std::string>().find(part) != std::string::npos;
    });
  }

  Daemon daemon_{{.emulate = "dgx-h100", .config = "monitoring:\n  interval_seconds: 1\n"}};
};

TEST_F(GpuTest, TheBoardShowsTheProcessOfAJobAndNoUnmanagedProcess) {
  const std::string id = start_job();
  EXPECT_TRUE(eventually([&] {
    const auto health = daemon_.json({"health", "--gpu", kGpu});
    return health.is_object() && health["processes"].size() == 1 &&
           health["processes"][0]["job"] == id;
  }));
  EXPECT_EQ(gpu(0)["unmanaged_processes"].size(), 0U);
  release_job();
  EXPECT_TRUE(becomes(0, "AVAILABLE"));
}

TEST_F(GpuTest, AnUnmanagedProcessKeepsWorkAwayWhileItIsThere) {
  UnmanagedProcess unmanaged_process;
  const std::string pid = std::to_string(unmanaged_process.pid());
  const Finished loaded =
      emulator({"load", "--gpu", kGpu, "--pid", pid, "--memory", "2G", "--utilization", "50"});
  ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
  ASSERT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 7; }));
  const auto shown = gpu(0);
  ASSERT_EQ(shown["unmanaged_processes"].size(), 1U) << shown;
  EXPECT_EQ(shown["unmanaged_processes"][0]["pid"], unmanaged_process.pid());
  EXPECT_EQ(shown["unmanaged_processes"][0]["command"], "sleep");
  EXPECT_NE(shown["reason"].get<std::string>().find(pid), std::string::npos);
  unmanaged_process.end();
  EXPECT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 8; }));
}

TEST_F(GpuTest, AnUnmanagedProcessThatEndsWhileTheDaemonIsAwayKeepsNoWorkAway) {
  UnmanagedProcess unmanaged_process;
  const std::string pid = std::to_string(unmanaged_process.pid());
  ASSERT_EQ(emulator({"load", "--gpu", kGpu, "--pid", pid, "--memory", "2G"}).exit_code, 0);
  ASSERT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 7; }));
  daemon_.kill_now();
  unmanaged_process.end();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 8; }))
      << gpu(0);
}

TEST_F(GpuTest, AGpuComesFreeOnlyWhenNothingIsLeftOnIt) {
  const std::string id = start_job();
  const std::string pid = std::to_string(daemon_.job(id)["attempts"][0]["pid"].get<int>());
  ASSERT_EQ(emulator({"inject", "linger", "--gpu", kGpu, "--pid", pid, "--memory", "1G"}).exit_code,
            0);
  release_job();
  ASSERT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "COMPLETED"; }));
  ASSERT_TRUE(eventually([&] {
    const auto reason = gpu(0)["reason"];
    return reason.is_string() && reason.get<std::string>().find(pid) != std::string::npos;
  }));
  EXPECT_EQ(gpu(0)["state"], "CLEANING");
  EXPECT_EQ(daemon_.json({"status"})["available_gpus"], 7);
  ASSERT_EQ(emulator({"clear", "--gpu", kGpu}).exit_code, 0);
  EXPECT_TRUE(becomes(0, "AVAILABLE"));
}

TEST_F(GpuTest, ADrainedGpuFinishesItsJobAndComesBackOnline) {
  const std::string id = start_job();
  const Finished drained =
      daemon_.cli({"drain", "--gpu", kGpu, "--reason", "a fan is loud", "--json"});
  ASSERT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(gpu(0)["state"], "DRAINING");
  EXPECT_NE(gpu(0)["reason"].get<std::string>().find("a fan is loud"), std::string::npos);
  EXPECT_EQ(daemon_.cli({"offline", "--gpu", kGpu}).exit_code, 4) << "a job holds it";
  EXPECT_EQ(daemon_.job(id)["state"], "RUNNING");
  release_job();
  ASSERT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "COMPLETED"; }));
  EXPECT_EQ(daemon_.json({"status"})["available_gpus"], 7);
  ASSERT_EQ(daemon_.cli({"online", "--gpu", kGpu}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return daemon_.json({"status"})["available_gpus"] == 8; }));
  EXPECT_EQ(daemon_.cli({"online", "--gpu", kGpu}).exit_code, 0) << "it is so already";
  EXPECT_EQ(daemon_.cli({"drain", "--gpu", "dgx-h100-1:8"}).exit_code, 3);
  EXPECT_EQ(daemon_.cli({"drain"}).exit_code, 2);
}

TEST_F(GpuTest, ADrainWithAnEndIsLiftedByItself) {
  const Finished past = daemon_.cli({"drain", "--gpu", kGpu, "--until", "2020-01-01T00:00:00Z"});
  EXPECT_EQ(past.exit_code, 2);
  EXPECT_NE(past.err.find("has passed; give a future time"), std::string::npos) << past.err;
  ASSERT_EQ(daemon_.cli({"drain", "--gpu", kGpu, "--until", "1h", "--reason", "a fan"}).exit_code,
            0);
  EXPECT_EQ(gpu(0)["state"], "DRAINING");
  EXPECT_TRUE(gpu(0)["changed_until"].is_string());
  EXPECT_NE(gpu(0)["reason"].get<std::string>().find("a fan (until 20"), std::string::npos);
  ASSERT_EQ(daemon_.cli({"drain", "--gpu", kGpu, "--until", "3s"}).exit_code, 0);
  EXPECT_TRUE(becomes(0, "AVAILABLE"));
  EXPECT_TRUE(gpu(0)["changed_until"].is_null());
}

TEST_F(GpuTest, AGpuTakenOutByForceGivesItsJobToAnother) {
  const std::string id = start_job();
  ASSERT_EQ(daemon_.cli({"offline", "--gpu", kGpu, "--force"}).exit_code, 0);
  EXPECT_EQ(gpu(0)["state"], "OFFLINE");
  EXPECT_TRUE(eventually(
      [&] {
        const auto job = daemon_.job(id);
        return job["attempts"].size() == 2 && job["state"] == "RUNNING" &&
               job["gpus"][0]["index"] != 0;
      },
      std::chrono::seconds(40)));
  release_job();
  EXPECT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "COMPLETED"; }));
}

TEST_F(GpuTest, WhatAnOperatorTookOutStaysOutOverARestart) {
  ASSERT_EQ(daemon_.cli({"offline", "--gpu", kGpu, "--reason", "sent back"}).exit_code, 0);
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(gpu(0)["state"], "OFFLINE");
  EXPECT_NE(gpu(0)["reason"].get<std::string>().find("sent back"), std::string::npos);
}

TEST_F(GpuTest, ALostGpuIsTakenOutAndTheDaemonGoesOn) {
  ASSERT_EQ(emulator({"inject", "lost", "--gpu", "dgx-h100-1:5"}).exit_code, 0);
  EXPECT_TRUE(becomes(5, "OFFLINE"));
  EXPECT_EQ(daemon_.cli({"run", "--gpus", "4", "--", "/bin/true"}).exit_code, 0);
  ASSERT_EQ(emulator({"clear", "--gpu", "dgx-h100-1:5"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return gpu(5)["state"] == "AVAILABLE"; }, std::chrono::seconds(90)));
}

TEST_F(GpuTest, ADrainOutlivesAGpuThatFallsOffTheBus) {
  ASSERT_EQ(daemon_.cli({"drain", "--gpu", kLost, "--reason", "a fan is loud"}).exit_code, 0);
  lose();
  EXPECT_FALSE(daemon_.json({"drain", "--gpu", kLost})["changed"]) << "it is drained";
  find_again();
  ASSERT_TRUE(becomes(5, "DRAINING")) << gpu(5).dump();
  EXPECT_EQ(gpu(5)["reason"], "a fan is loud");
  EXPECT_EQ(daemon_.json({"status"})["available_gpus"], 7);
  ASSERT_EQ(daemon_.cli({"online", "--gpu", kLost}).exit_code, 0);
  EXPECT_TRUE(becomes(5, "AVAILABLE"));
}

TEST_F(GpuTest, WhatIsSaidOfAGpuThatFellOffTheBusHoldsWhenItIsBack) {
  for (const auto& [action, state] : {std::pair("offline", "OFFLINE"), {"drain", "DRAINING"}}) {
    lose();
    EXPECT_TRUE(daemon_.json({action, "--gpu", kLost, "--reason", "sent back"})["changed"]);
    EXPECT_EQ(gpu(5)["state"], "OFFLINE");
    find_again();
    ASSERT_TRUE(eventually([&] { return gpu(5)["reason"] == "sent back"; })) << gpu(5).dump();
    EXPECT_EQ(gpu(5)["state"], state);
    ASSERT_EQ(daemon_.cli({"online", "--gpu", kLost}).exit_code, 0);
    EXPECT_TRUE(becomes(5, "AVAILABLE"));
  }
}

TEST_F(GpuTest, AJobWhoseGpuIsLostRunsElsewhereAndTheGpuGetsNoOtherUntilItAnswersAgain) {
  const std::string id = start_job();
  ASSERT_EQ(emulator({"inject", "lost", "--gpu", kGpu}).exit_code, 0);
  ASSERT_TRUE(becomes(0, "OFFLINE"));
  EXPECT_EQ(gpu(0)["changed_by"], "health") << gpu(0).dump();
  ASSERT_TRUE(eventually([&] { return daemon_.job(id)["attempts"].size() == 2; }));
  ASSERT_TRUE(daemon_.reaches(id, "RUNNING")) << daemon_.job(id);
  const auto moved = daemon_.job(id);
  EXPECT_EQ(moved["attempts"][0]["reason"], "GPU_FAULT") << moved;
  EXPECT_NE(moved["attempts"][1]["gpus"][0]["index"], 0) << moved;
  const Finished refused = daemon_.cli({"online", "--gpu", kGpu});
  EXPECT_EQ(refused.exit_code, 4) << refused.err;
  release_job();
  ASSERT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "COMPLETED"; }));
  EXPECT_EQ(daemon_.cli({"run", "--gpus", "7", "--", "/bin/true"}).exit_code, 0);
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(gpu(0)["state"], "OFFLINE") << "a restart forgets nothing";
  ASSERT_EQ(emulator({"clear", "--gpu", kGpu}).exit_code, 0);
  end_probe();
  EXPECT_TRUE(becomes(0, "AVAILABLE")) << gpu(0).dump();
}

TEST_F(GpuTest, AGpuWithAHardwareFaultIsDrainedUntilAnOperatorBringsItOnline) {
  const std::string id = start_job();
  ASSERT_EQ(emulator({"inject", "xid", "31", "--gpu", kGpu}).exit_code, 0);
  ASSERT_EQ(emulator({"inject", "xid", "48", "--gpu", kGpu}).exit_code, 0);
  ASSERT_TRUE(reason_becomes(0, "XID 48 (uncorrectable memory error)"));
  EXPECT_EQ(gpu(0)["state"], "DRAINING");
  EXPECT_EQ(daemon_.job(id)["state"], "RUNNING");
  ASSERT_EQ(emulator({"clear", "--gpu", kGpu}).exit_code, 0);
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  release_job();
  ASSERT_TRUE(eventually([&] { return daemon_.job(id)["state"] == "COMPLETED"; }));
  EXPECT_EQ(gpu(0)["state"], "DRAINING") << "only an operator lifts it";
  ASSERT_EQ(daemon_.cli({"online", "--gpu", kGpu}).exit_code, 0);
  EXPECT_TRUE(becomes(0, "AVAILABLE")) << gpu(0).dump();
}

TEST_F(GpuTest, AGpuOffTheBusComesBackOnlyByAnOperator) {
  ASSERT_EQ(emulator({"inject", "xid", "79", "--gpu", kLost}).exit_code, 0);
  ASSERT_TRUE(reason_becomes(5, "XID 79 (fallen off the bus)"));
  ASSERT_TRUE(becomes(5, "OFFLINE"));
  find_again();
  ASSERT_TRUE(eventually([&] {
    const auto health = daemon_.json({"health", "--gpu", kLost});
    return health.is_object() && health["problem"].is_null();
  }));
  ASSERT_TRUE(becomes(5, "OFFLINE")) << gpu(5).dump();
  ASSERT_TRUE(eventually([&] { return daemon_.cli({"online", "--gpu", kLost}).exit_code == 0; }));
  EXPECT_TRUE(becomes(5, "AVAILABLE")) << gpu(5).dump();
}

TEST_F(GpuTest, AnErrorOfAProgramKeepsNoWorkAway) {
  ASSERT_EQ(emulator({"inject", "xid", "31", "--gpu", kGpu}).exit_code, 0);
  ASSERT_TRUE(eventually([&] {
    const auto health = daemon_.json({"health", "--gpu", kGpu});
    return health.is_object() && health["xids"].size() == 1;
  }));
  EXPECT_EQ(gpu(0)["state"], "AVAILABLE");
}

TEST_F(GpuTest, AJobSeesItsBoardWithoutOptions) {
  const Finished worked = daemon_.cli(
      {"run", "--gpus", "2", "--", program("gpu-workload"), "--memory", "1G", "--duration", "0s"});
  EXPECT_EQ(worked.exit_code, 0) << worked.err;
  const Finished found = daemon_.cli(
      {"run", "--gpus", "1", "--", "/bin/sh", "-c",
       "test -r $GPU_EMULATOR_STATE && test -e ${LD_LIBRARY_PATH%%:*}/libnvidia-ml.so.1 && "
       "nvidia-smi --query-gpu=uuid --format=csv,noheader -i $CUDA_VISIBLE_DEVICES && "
       "ls ${PATH%%:*}"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(found.out.find("GPU-"), 0U) << found.out;
  EXPECT_EQ(found.out.substr(found.out.find('\n')),
            "\nnvidia-cuda-mps-control\nnvidia-cuda-mps-server\nnvidia-smi\n")
      << "and no other program";
}

TEST_F(GpuTest, AJobOfAnotherUserReadsItsBoardAndCannotChangeIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  chmod(daemon_.directory().c_str(), 0755);
  const Finished tried = daemon_.cli({"run", "--user", "backup", "--workdir", "/", "--gpus", "1",
                                      "--", "/bin/sh", "-c",
                                      "cat $GPU_EMULATOR_STATE > /dev/null || exit 3; "
                                      "! (: >> $GPU_EMULATOR_STATE)"});
  EXPECT_EQ(tried.exit_code, 0) << tried.err;
}

mode_t mode_of(const std::string& path) {
  struct stat about{};
  EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
  return about.st_mode & 07777;
}

TEST(DataDirectory, IsForItsOwnerAloneWhateverTheUmaskIs) {
  Daemon daemon;
  const mode_t before = umask(0);
  const bool is_started = daemon.start();
  umask(before);
  ASSERT_TRUE(is_started) << daemon.log();
  EXPECT_EQ(mode_of(daemon.data_dir()), mode_t{0711}) << "others pass to the boards";
  EXPECT_EQ(mode_of(daemon.data_dir() + "/store.db"), mode_t{0600});
  EXPECT_EQ(mode_of(daemon.data_dir() + "/emulated") & 022, 0U);
  EXPECT_EQ(mode_of(daemon.data_dir() + "/emulated/dgx-h100-1") & 022, 0U);
  EXPECT_EQ(mode_of(daemon.data_dir() + "/emulated/dgx-h100-1/state"), mode_t{0644});
}

}  // namespace
}  // namespace gpu_platform::e2e
