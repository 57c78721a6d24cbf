// GPUs of an emulated board in containers: which the container has, and that it has no others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "containers_fixture.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ContainerGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    for (const char* const name : {"nvml_list", "gpu-workload"}) {
      std::filesystem::copy_file(program(name), site_.path() + "/" + name);
    }
    const std::string rules = site_.path() + "/rules";
    std::ofstream(rules) << "socket " << engine_.socket()
                         << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/gp-test:*\n"
                         << "mount /usr ro\nmount " << site_.path() << " ro\n";
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .emulate = "dgx-h100",
        // The jobs are root's.
        .config =
            "execution:\n  containers: " + rules +
            "\nsharing:\n  modes: [time-slice, mps]\n  slice: 300ms\n  weakest_rung: advisory\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  std::string submit(const std::string& gpus, const std::string& script) {
    return daemon_->submit({"--gpus", gpus, "--image", kImage, "--mount", "/usr:/usr:ro", "--mount",
                            site_.path() + ":/site:ro", "--", "sh", "-c", script});
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  std::string output(const std::string& id) { return daemon_->cli({"jobs", "logs", id}).out; }

  Engine engine_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(ContainerGpus, AnNvmlProgramSeesTheJobsGpusAndNoOthers) {
  // The job after a first one gets others than the board's first.
  const std::string first = submit("3", "until [ -e /site/flag ]; do sleep 0.2; done");
  ASSERT_TRUE(eventually([&] { return daemon_->job(first)["state"] == "RUNNING"; }))
      << daemon_->job(first).dump(2);
  const std::string id = submit("2", "/site/nvml_list; ls /dev; env");
  const nlohmann::json job = ended(id);
  ASSERT_EQ(job["state"], "COMPLETED") << job.dump(2) << output(id);
  const std::string text = output(id);
  EXPECT_THAT(text, HasSubstr("2 GPUs\n"));
  ASSERT_EQ(job["gpus"].size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string uuid = job["gpus"][i]["uuid"];
    EXPECT_THAT(text, HasSubstr(std::to_string(i) + " " + uuid + "\n"));
    const auto index = job["gpus"][i]["index"].get<int>();
    EXPECT_THAT(text, HasSubstr("\nnvidia" + std::to_string(index) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("nvidia0\n"))) << "the first job's";
  EXPECT_THAT(text, AllOf(HasSubstr("CUDA_VISIBLE_DEVICES=0,1\n"),
                          HasSubstr("NVIDIA_VISIBLE_DEVICES=void\n")));
  std::ofstream(site_.path() + "/flag").flush();
  EXPECT_EQ(ended(first)["state"], "COMPLETED");
  EXPECT_TRUE(eventually([&] { return engine_.containers().empty(); }));
}

// Each prints the time again and again. What is frozen prints nothing for the turns of the other.
TEST_F(ContainerGpus, ContainersThatShareAGpuTakeTurns) {
  const std::string script =
      "until [ -e /site/flag ]; do read up idle < /proc/uptime; echo $up; sleep 0.02; done";
  const std::string first = submit("0.5", script);
  const std::string second = submit("0.5", script);
  for (const std::string& id : {first, second}) {
    ASSERT_TRUE(eventually([&] { return daemon_->job(id)["state"] == "RUNNING"; }))
        << daemon_->job(id).dump(2);
  }
  EXPECT_EQ(daemon_->job(second)["gpus"][0]["mode"], "TIME_SLICE") << daemon_->job(second);
  const auto long_gaps = [&](const std::string& id) {
    std::istringstream lines(output(id));
    std::size_t gaps = 0;
    double last = 0;
    for (double at = 0; lines >> at; last = at) gaps += last > 0 && at - last > 0.2 ? 1U : 0U;
    return gaps;
  };
  EXPECT_TRUE(eventually([&] { return long_gaps(first) >= 5 && long_gaps(second) >= 5; }))
      << long_gaps(first) << " " << long_gaps(second);
  std::ofstream(site_.path() + "/flag").flush();
  EXPECT_EQ(ended(first)["state"], "COMPLETED") << output(first);
  EXPECT_EQ(ended(second)["state"], "COMPLETED") << output(second);
}

TEST_F(ContainerGpus, ContainersAreClientsOfTheirUsersMpsServer) {
  const auto submit_client = [&](const std::string& script) {
    return daemon_->submit({"--gpus", "0.5", "--share", "mps", "--image", kImage, "--mount",
                            "/usr:/usr:ro", "--mount", site_.path() + ":/site:ro", "--", "sh", "-c",
                            script});
  };
  const std::string first =
      submit_client("echo x >/dev/shm/seen; until [ -e /site/flag ]; do sleep 0.1; done");
  const std::string second = submit_client(
      "until [ -e /dev/shm/seen ]; do sleep 0.1; done; /site/gpu-workload --memory 50G; "
      "echo code $?; exec /site/gpu-workload --memory 1G --duration 1s");
  const nlohmann::json job = ended(second);
  EXPECT_EQ(job["state"], "COMPLETED") << job.dump(2) << output(second);
  EXPECT_EQ(job["gpus"][0]["mode"], "MPS") << job["gpus"];
  EXPECT_THAT(output(second), AllOf(HasSubstr("out of memory"), HasSubstr("code 4\n")));
  std::ofstream(site_.path() + "/flag").flush();
  EXPECT_EQ(ended(first)["state"], "COMPLETED") << output(first);
}

TEST_F(ContainerGpus, AContainerWithoutGpusHasNoneAndNvmlNoDriver) {
  const std::string id =
      daemon_->submit({"--gpus", "0", "--image", kImage, "--mount", "/usr:/usr:ro", "--mount",
                       site_.path() + ":/site:ro", "--", "sh", "-c", "ls /dev; /site/nvml_list"});
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "FAILED") << output(id);
  EXPECT_THAT(output(id), AllOf(HasSubstr("libnvidia-ml.so.1: cannot open"), HasSubstr("zero\n"),
                                Not(HasSubstr("nvidia0\n"))));
}

}  // namespace
}  // namespace gpu_platform::e2e
