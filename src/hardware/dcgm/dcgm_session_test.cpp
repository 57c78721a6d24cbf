#include "hardware/dcgm/dcgm_session.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

// The emulated library, opened as NVIDIA's is.
class EmulatedDcgm : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/dcgm_session_test.XXXXXX";
    folder_ = mkdtemp(path);
    run(fmt::format("create --board dgx-a100 --node-name n1 --dir {}/emulated/n1", folder_));
    setenv("GPU_EMULATOR_STATE", fmt::format("{}/emulated/n1/state", folder_).c_str(), 1);
  }
  void TearDown() override {
    session_.reset();
    unsetenv("GPU_EMULATOR_STATE");
    unsetenv("GPU_EMULATOR_DCGM");
    std::filesystem::remove_all(folder_);
  }

  static void run(const std::string& arguments) {
    ASSERT_EQ(std::system(fmt::format("{} {} > /dev/null", GPU_EMULATOR, arguments).c_str()), 0);
  }
  void run_on_board(const std::string& arguments) {
    run(fmt::format("{} --data-dir {}", arguments, folder_));
  }

  static DcgmSource source() { return {{EMULATED_DCGM}, "localhost:5555"}; }

  void open() {
    auto opened = DcgmSession::open(source());
    ASSERT_TRUE(opened) << opened.error().message;
    session_ = std::move(*opened);
  }

  // The UUIDs of the board, in the driver's order.
  std::vector<std::string> uuids() const {
    const std::string shown = folder_ + "/uuids";
    const std::string command = fmt::format(
        "LD_LIBRARY_PATH={} {} --query-gpu=uuid --format=csv,noheader > {}",
        std::filesystem::path(EMULATED_NVML).parent_path().string(), EMULATED_SMI, shown);
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(shown);
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);) found.push_back(line);
    return found;
  }

  // Has all GPUs watched, and returns the values of each in the driver's order.
  std::vector<model::GpuMetrics> watched(bool wants_activity) {
    const std::vector<std::string> all = uuids();
    std::vector<DcgmGpu> gpus;
    for (const std::string& uuid : all) gpus.push_back({uuid, wants_activity});
    const auto watching = session_->watch(gpus, base::minutes(1));
    EXPECT_TRUE(watching) << (watching ? "" : watching.error().message);
    const auto values = session_->read();
    EXPECT_TRUE(values) << (values ? "" : values.error().message);
    if (!values) return {};
    std::vector<model::GpuMetrics> in_order;
    for (const std::string& uuid : all) {
      EXPECT_TRUE(values->contains(uuid)) << uuid;
      in_order.push_back(values->contains(uuid) ? values->at(uuid) : model::GpuMetrics{});
    }
    return in_order;
  }

  std::string folder_;
  std::unique_ptr<DcgmSession> session_;
};

TEST(Dcgm, ThatIsNotThereIsNoLibrary) {
  const auto session = DcgmSession::open({{"/nonexistent/a.so", "/nonexistent/b.so"}, ""});

  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ProblemKind::kNoLibrary);
}

TEST(Dcgm, ThatHasOtherFunctionsIsRefused) {
  const auto session = DcgmSession::open({{NOT_NVML}, ""});

  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ProblemKind::kOther);
  EXPECT_NE(session.error().message.find("no dcgmInit"), std::string::npos)
      << session.error().message;
}

TEST_F(EmulatedDcgm, IsFoundAsTheFirstThatIsThere) {
  const auto session = DcgmSession::open({{"/nonexistent/a.so", EMULATED_DCGM}, ""});

  EXPECT_TRUE(session) << session.error().message;
}

TEST_F(EmulatedDcgm, TellsTheActivityOfEachGpu) {
  run_on_board(fmt::format("load --gpu n1:2 --pid {} --utilization 80", getpid()));
  open();

  const auto gpus = watched(true);

  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_EQ(gpus[2].graphics_active, 800U);
  EXPECT_EQ(gpus[2].sm_active, 720U);
  EXPECT_EQ(gpus[2].sm_occupancy, 400U);
  EXPECT_EQ(gpus[2].tensor_active, 400U);
  EXPECT_EQ(gpus[2].dram_active, 400U);
  EXPECT_EQ(gpus[2].fp64_active, 0U);
  EXPECT_EQ(gpus[2].fp32_active, 160U);
  EXPECT_EQ(gpus[2].fp16_active, 80U);
  EXPECT_EQ(gpus[1].graphics_active, 0U) << "another GPU";
}

TEST_F(EmulatedDcgm, TakesNoCountersThatAreNotWanted) {
  open();

  const auto gpus = watched(false);

  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_EQ(gpus[0].graphics_active, std::nullopt);
  EXPECT_GT(gpus[0].memory_temperature_c, 0);
  ASSERT_TRUE(gpus[0].slow);
  EXPECT_TRUE(gpus[0].slow->energy_mj);
}

TEST_F(EmulatedDcgm, TellsAPartWhereAGpuCannotCountAllAtOnce) {
  setenv("GPU_EMULATOR_DCGM", "single-pass", 1);
  open();

  const auto gpus = watched(true);

  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_EQ(gpus[0].graphics_active, 0U);
  EXPECT_EQ(gpus[0].dram_active, 0U);
  EXPECT_EQ(gpus[0].fp64_active, std::nullopt);
}

TEST_F(EmulatedDcgm, IsAskedThroughTheHostEngineThatRuns) {
  setenv("GPU_EMULATOR_DCGM", "host-engine", 1);
  open();

  EXPECT_EQ(watched(true).size(), 8U);
}

TEST_F(EmulatedDcgm, SaysThatTheHostEngineIsOfAnotherVersion) {
  setenv("GPU_EMULATOR_DCGM", "mismatch", 1);

  const auto session = DcgmSession::open(source());

  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ProblemKind::kDriverMismatch);
  EXPECT_NE(session.error().message.find("different versions"), std::string::npos)
      << session.error().message;
}

TEST_F(EmulatedDcgm, StartsItsOwnEngineWhereNoneIsToBeAsked) {
  setenv("GPU_EMULATOR_DCGM", "mismatch", 1);  // of the engine that runs

  const auto session = DcgmSession::open({{EMULATED_DCGM}, ""});

  EXPECT_TRUE(session) << session.error().message;
}

TEST_F(EmulatedDcgm, SaysThatThereIsNoDriver) {
  unsetenv("GPU_EMULATOR_STATE");

  const auto session = DcgmSession::open(source());

  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ProblemKind::kOther);
  EXPECT_NE(session.error().message.find("cannot be initialised"), std::string::npos)
      << session.error().message;
}

TEST_F(EmulatedDcgm, TellsNothingOfAGpuThatFellOffTheBus) {
  open();
  const std::vector<std::string> all = uuids();
  ASSERT_EQ(all.size(), 8U);
  ASSERT_TRUE(session_->watch({{all[1], true}, {all[2], true}}, base::minutes(1)));

  run_on_board("inject lost --gpu n1:1");
  const auto values = session_->read();

  ASSERT_TRUE(values);
  EXPECT_EQ(values->at(all[1]), model::GpuMetrics{});
  EXPECT_EQ(values->at(all[2]).graphics_active, 0U);
}

TEST_F(EmulatedDcgm, WatchesNoGpuThatItDoesNotKnow) {
  open();

  ASSERT_TRUE(session_->watch({{"GPU-of-another-host", true}}, base::minutes(1)));
  const auto values = session_->read();

  ASSERT_TRUE(values);
  EXPECT_TRUE(values->empty());
}

TEST_F(EmulatedDcgm, CanBeOpenedAgain) {
  open();
  EXPECT_EQ(watched(true).size(), 8U);
  session_.reset();

  open();

  EXPECT_EQ(watched(true).size(), 8U);
}

}  // namespace
}  // namespace gpu_platform::hardware
