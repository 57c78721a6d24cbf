#include "hardware/nvidia_smi/nvidia_smi_library.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "hardware/nvidia_smi/run_tool.h"

namespace gpu_platform::hardware {
namespace {

// A folder with programs that stand for nvidia-smi.
class FakeTool : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/nvidia_smi_test.XXXXXX";
    folder_ = mkdtemp(path);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string program(const std::string& body) {
    const std::string path = folder_ + "/nvidia-smi";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }

  // One that answers as the fixtures do; `before` is run first.
  std::string answering(const std::string& before = "") {
    return program(fmt::format(
        "{}\ncase $1 in -q) cat {}/report.xml;;\n--query-gpu=index,uuid,name*) cat {}/gpus.csv;;\n"
        "--query-gpu=*) echo x >> {}/asked; cat {}/readings.csv;;\n"
        "--query-compute-apps=*) cat {}/processes.csv;;\nesac",
        before, SMI_FIXTURES, SMI_FIXTURES, folder_, SMI_FIXTURES, SMI_FIXTURES));
  }

  std::string folder_;
};

TEST_F(FakeTool, GivesGpusTheirReadingsAndProcesses) {
  const auto library = open_nvidia_smi(answering());
  ASSERT_TRUE(library) << library.error().message;

  const auto gpus = (*library)->list_gpus();
  const GpuReading reading = (*library)->read(0);
  const model::GpuSlowMetrics slow = (*library)->read_slow(0);

  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ(gpus->at(0).minor, 3u) << "which only the report has";
  EXPECT_EQ(gpus->at(1).serial, "0323618000002");
  EXPECT_EQ((*library)->describe_driver().driver_version, "550.90.07");
  EXPECT_EQ(reading.utilization_percent, 97u);
  EXPECT_EQ(reading.processes->size(), 2u);
  EXPECT_EQ(slow.pcie_replays, 7u);
  EXPECT_TRUE((*library)->links().empty());
}

TEST_F(FakeTool, IsRunOnceForARoundOverAllGpus) {
  const auto library = open_nvidia_smi(answering());
  ASSERT_TRUE(library);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 2; ++i) (void)(*library)->read(i);
  }

  EXPECT_EQ(std::filesystem::file_size(folder_ + "/asked"), 6u) << "two bytes for each run";
}

TEST_F(FakeTool, OfAnOlderVersionIsAskedForLess) {
  const auto library = open_nvidia_smi(answering(
      "case $1 in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.';"
      " exit 2;; esac"));

  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ((*library)->list_gpus()->size(), 2u);
}

TEST_F(FakeTool, ThatFailsIsQuoted) {
  const auto library = open_nvidia_smi(
      program("echo 'NVIDIA-SMI has failed because it could not talk to the driver.'; exit 9"));

  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ProblemKind::kOther);
  EXPECT_NE(library.error().message.find("exit code 9: NVIDIA-SMI has failed"), std::string::npos)
      << library.error().message;
}

TEST_F(FakeTool, ThatListsNothingIsAMachineWithoutGpus) {
  const auto library = open_nvidia_smi(program("echo 'index, uuid'"));

  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ProblemKind::kNoGpu);
}

TEST_F(FakeTool, ThatBreaksLaterIsToldForEachGpu) {
  const std::string path = answering();
  const auto library = open_nvidia_smi(path);
  ASSERT_TRUE(library);
  program("exit 15");

  const GpuReading reading = (*library)->read(1);

  EXPECT_EQ(reading.condition, GpuCondition::kNotAnswering);
  EXPECT_NE(reading.problem.find("exit code 15"), std::string::npos) << reading.problem;
}

// Another program that writes what this library reads, in the form of a real driver's.
TEST_F(FakeTool, EmulatedProgramIsReadAsNvidiasIs) {
  const std::string node = folder_ + "/emulated/n1";
  const std::string create =
      fmt::format("{} create --board dgx-h100 --node-name n1 --dir {}", GPU_EMULATOR, node);
  ASSERT_EQ(std::system(create.c_str()), 0);
  setenv("GPU_EMULATOR_STATE", (node + "/state").c_str(), 1);
  setenv("LD_LIBRARY_PATH", std::filesystem::path(EMULATED_NVML).parent_path().c_str(), 1);

  const auto library = open_nvidia_smi(EMULATED_SMI);
  ASSERT_TRUE(library) << library.error().message;
  const auto gpus = (*library)->list_gpus();
  const GpuReading reading = (*library)->read(4);
  const model::GpuSlowMetrics slow = (*library)->read_slow(4);
  const auto driver = (*library)->describe_driver().driver_version;
  unsetenv("GPU_EMULATOR_STATE");
  unsetenv("LD_LIBRARY_PATH");

  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 8u);
  EXPECT_EQ(gpus->at(4).pci_address, "00000000:9D:00.0");
  EXPECT_EQ(gpus->at(4).minor, 4u);
  EXPECT_EQ(gpus->at(4).memory, base::kMiB * 81'559);
  EXPECT_EQ(driver, "550.90.07");
  EXPECT_EQ(reading.utilization_percent, 0u);
  EXPECT_GT(reading.temperature_c, 0);
  EXPECT_EQ(slow.pcie_generation, 5u);
  EXPECT_EQ(slow.remap_pending, false);
}

TEST(NvidiaSmi, ThatIsNotThereIsNoLibrary) {
  const auto library = open_nvidia_smi("/nonexistent/nvidia-smi");

  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ProblemKind::kNoLibrary);
}

TEST_F(FakeTool, ThatHangsIsEnded) {
  const auto output =
      run_tool({program("while :; do read line </dev/zero; done")}, {base::milliseconds(50), 1000});

  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("did not answer within 50 ms"), std::string::npos)
      << output.error().message;
}

TEST_F(FakeTool, ThatSaysTooMuchIsEnded) {
  const auto output = run_tool({program("while :; do echo line; done")}, {base::seconds(30), 1000});

  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("more than 1000 bytes"), std::string::npos);
}

TEST_F(FakeTool, GetsItsWordsWithoutAShell) {
  const auto output = run_tool({program("echo \"$1\""), "$(touch /tmp/never); *"});

  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "$(touch /tmp/never); *\n");
}

}  // namespace
}  // namespace gpu_platform::hardware
