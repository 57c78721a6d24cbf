#include "tool/commands.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include <nlohmann/json.hpp>

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;

class Commands : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/commands_test.XXXXXX";
    data_ = mkdtemp(path);
    ASSERT_TRUE(create(BOARDS_DIR, {"dgx-h100", "n1", data_ + "/emulated/n1"}));
  }
  void TearDown() override { std::filesystem::remove_all(data_); }

  nlohmann::json shown() {
    const auto text = show(data_, "", ShowAs::kJson);
    EXPECT_TRUE(text);
    return nlohmann::json::parse(*text);
  }

  std::string data_;
};

TEST_F(Commands, ListTheBoards) {
  const auto boards = list_boards(BOARDS_DIR, ShowAs::kTable);

  ASSERT_TRUE(boards);
  EXPECT_NE(boards->find("dgx-h100 "), std::string::npos);
}

TEST_F(Commands, NameTheBoardsThereAreWhenOneIsUnknown) {
  const auto made = create(BOARDS_DIR, {"dgx-9000", "n1", data_ + "/x"});

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound);
  EXPECT_NE(made.error().message.find("dgx-h100"), std::string::npos);
  EXPECT_FALSE(create(BOARDS_DIR, {"../boards/dgx-h100", "n1", data_ + "/x"}));
}

TEST_F(Commands, LoadAndShowAndClear) {
  ASSERT_TRUE(load(data_, {"n1:5", 4'194'303, "16GB", 30}));
  const auto gpu = shown()["nodes"][0]["gpus"][5];
  EXPECT_EQ(gpu["memory_used_bytes"], 16'000'000'000);
  EXPECT_EQ(gpu["utilization_percent"], 30);
  EXPECT_EQ(gpu["processes"][0]["pid"], 4'194'303);

  ASSERT_TRUE(clear(data_, {"", "", 0}));
  EXPECT_TRUE(shown()["nodes"][0]["gpus"][5]["processes"].empty());
}

TEST_F(Commands, InjectFaultsAndShowThemAndClearThem) {
  ASSERT_TRUE(inject(data_, {Fault::kXid, "n1:2", 94, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kEcc, "n1:2", 5, {"corrected"}}));
  ASSERT_TRUE(inject(data_, {Fault::kThrottle, "n1:2", 0, {"hw-power-brake", "sync-boost"}}));
  ASSERT_TRUE(inject(data_, {Fault::kReplays, "n1:2", 3, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kSlow, "n1:2", 20, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kWork, "n1:2", 5, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kLost, "n1:2", 0, {}}));

  const auto gpu = shown()["nodes"][0]["gpus"][2];
  EXPECT_EQ(gpu["faults"]["last_xid"], 94);
  EXPECT_EQ(gpu["faults"]["recovery_action"], "drain-and-reset");
  EXPECT_EQ(gpu["faults"]["ecc_corrected"], 5);
  EXPECT_EQ(gpu["faults"]["pcie_replays"], 3);
  EXPECT_EQ(gpu["faults"]["delay_ms"], 20);
  EXPECT_EQ(gpu["faults"]["is_lost"], true);
  EXPECT_EQ(gpu["throttle"], (nlohmann::json{"idle", "sync-boost", "hw-power-brake"}));
  const auto table = show(data_, "n1", ShowAs::kTable);
  EXPECT_NE(table->find("faults: lost, slow 20 ms, work 5 us, xid 94"), std::string::npos)
      << *table;

  ASSERT_TRUE(clear(data_, {"n1:2", "", 0}));
  EXPECT_EQ(shown()["nodes"][0]["gpus"][2]["faults"], shown()["nodes"][0]["gpus"][3]["faults"]);
}

TEST_F(Commands, InjectFaultsOfPartsAndShowThemAndClearThem) {
  const auto before = shown()["nodes"][0]["gpus"][1];
  ASSERT_TRUE(inject(data_, {Fault::kXid, "n1:1", 45, {}, 300}));
  ASSERT_TRUE(inject(data_, {Fault::kRemapPending, "n1:1", 2, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kRemapFailed, "n1:1", 0, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kPcieWidth, "n1:1", 8, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kNvlinkErrors, "n1:1", 7, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kNvlinkDown, "n1:1", 3, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kMemoryTemperature, "n1:1", 99, {}}));
  ASSERT_TRUE(inject(data_, {Fault::kHang, "n1:1", 600, {}}));

  const auto gpu = shown()["nodes"][0]["gpus"][1];
  EXPECT_EQ(gpu["faults"]["remap_pending"], true);
  EXPECT_EQ(gpu["faults"]["remap_failed"], true);
  EXPECT_EQ(gpu["faults"]["pcie_width"], 8);
  EXPECT_EQ(gpu["faults"]["nvlink_errors"], 7);
  EXPECT_EQ(gpu["faults"]["nvlinks_down"], 3);
  EXPECT_EQ(gpu["faults"]["memory_temperature_c"], 99);
  EXPECT_EQ(gpu["faults"]["hangs"], true);
  EXPECT_EQ(inject(data_, {Fault::kRetired, "n1:1", 1, {}}).error().code,
            ErrorCode::kFailedPrecondition);

  ASSERT_TRUE(clear(data_, {"n1:1", "", 0}));
  EXPECT_EQ(shown()["nodes"][0]["gpus"][1]["faults"], before["faults"]);
}

TEST_F(Commands, NameWhatIsAllowedWhenAFaultIsUnknown) {
  const auto ecc = inject(data_, {Fault::kEcc, "n1:0", 1, {"fatal"}});
  const auto throttle = inject(data_, {Fault::kThrottle, "n1:0", 0, {"slow"}});
  const auto recovery = inject(data_, {Fault::kRecovery, "n1:0", 0, {"pray"}});

  EXPECT_NE(ecc.error().message.find("corrected and uncorrected"), std::string::npos);
  EXPECT_NE(throttle.error().message.find("sw-power-cap"), std::string::npos);
  EXPECT_NE(recovery.error().message.find("node-reboot"), std::string::npos);
  EXPECT_EQ(inject(data_, {Fault::kXid, "n1:8", 48, {}}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(inject(data_, {Fault::kXid, "n9:0", 48, {}}).error().code, ErrorCode::kNotFound);
}

TEST_F(Commands, RefuseEccErrorsWhereEccIsOff) {
  ASSERT_TRUE(create(BOARDS_DIR, {"mixed", "n2", data_ + "/emulated/n2"}));

  const auto done = inject(data_, {Fault::kEcc, "n2:3", 1, {"corrected"}});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(Commands, ClearOneProcessAndKeepTheFaults) {
  ASSERT_TRUE(load(data_, {"n1:0", 4'194'303, "1G", 1}));
  ASSERT_TRUE(inject(data_, {Fault::kXid, "n1:0", 48, {}}));

  ASSERT_TRUE(clear(data_, {"n1:0", "", 4'194'303}));

  const auto gpu = shown()["nodes"][0]["gpus"][0];
  EXPECT_TRUE(gpu["processes"].empty());
  EXPECT_EQ(gpu["faults"]["last_xid"], 48);
}

TEST_F(Commands, NameTheNodesThereAreWhenOneIsUnknown) {
  const auto loaded = load(data_, {"n2:0", 1, "1G", 1});

  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  EXPECT_NE(loaded.error().message.find("n1"), std::string::npos);
}

TEST_F(Commands, RefuseValuesThatAreNone) {
  EXPECT_EQ(load(data_, {"n1:0", 1, "much", 1}).error().field, "memory");
  for (const char* place : {"n1", "n1:", ":0", "n1:x", "n1:-1", "n1:99", "../n1:0"}) {
    EXPECT_FALSE(parse_gpu_place(place)) << place;
  }
}

TEST_F(Commands, PrintWhatAnotherProgramNeeds) {
  const auto lines = env(data_, {"/lib/emulator", "/smi"}, "n1", EnvAs::kLines);
  const auto exports = env(data_, {"/it's", "/smi"}, "n1", EnvAs::kExports);

  ASSERT_TRUE(lines);
  EXPECT_TRUE(lines->starts_with("GPU_EMULATOR_STATE=" + data_ + "/emulated/n1/state\n")) << *lines;
  EXPECT_NE(lines->find("\nLD_LIBRARY_PATH=/lib/emulator"), std::string::npos);
  EXPECT_NE(lines->find("\nPATH=/smi:"), std::string::npos) << "nvidia-smi comes first";
  ASSERT_TRUE(exports);
  EXPECT_NE(exports->find("export LD_LIBRARY_PATH='/it'\\''s"), std::string::npos) << *exports;
  EXPECT_EQ(env(data_, {"/lib", "/smi"}, "n2", EnvAs::kLines).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace gpu_emulator
