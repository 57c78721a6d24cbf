#include "node/probe/probes_fixture.h"

namespace gpu_platform::node {
namespace {

TEST_F(Probes, ReportAnEmulatedBoardThroughItsLibrary) {
  start();
  runner_->watch(emulated("dgx-h100-1"));

  const auto inventory = reports_.wait_for<Inventory>("dgx-h100-1", seen_);
  const auto readings = reports_.wait_for<ProbeReadings>("dgx-h100-1", seen_);

  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->problem, std::nullopt);
  EXPECT_EQ(inventory->host.name, "dgx-h100-1");
  EXPECT_EQ(inventory->host.cpus.size(), 224u) << "the board's CPUs";
  EXPECT_EQ(inventory->host.boot_id.size(), 36u) << "the real kernel's boot";
  EXPECT_EQ(inventory->driver.driver_version, "550.90.07");
  ASSERT_EQ(inventory->gpus.size(), 8u);
  EXPECT_EQ(inventory->gpus[4].numa_node, 1u);
  ASSERT_TRUE(readings);
  ASSERT_EQ(readings->gpus.size(), 8u);
  EXPECT_EQ(readings->gpus[7].temperature_c, 29);
}

TEST_F(Probes, SeeALoadMadeByTheTool) {
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  ASSERT_EQ(std::system(fmt::format("{} load --data-dir {} --gpu n1:6 --pid {} --memory 30G "
                                    "--utilization 80",
                                    GPU_EMULATOR, folder_, getpid())
                            .c_str()),
            0);
  const auto loaded = reports_.wait_for<ProbeReadings>(
      "n1", seen_,
      [](const ProbeReadings& readings) { return readings.gpus.at(6).utilization_percent == 80u; });

  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->gpus[6].memory_used, base::kGiB * 30);
  EXPECT_EQ(loaded->gpus[6].processes->at(0).pid, static_cast<std::uint32_t>(getpid()));
}

TEST_F(Probes, SeeAGpuFallOffTheBusAndComeBack) {
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  const auto condition_of_gpu_3 = [&](hardware::GpuCondition wanted) {
    return reports_.wait_for<ProbeReadings>("n1", seen_, [&](const ProbeReadings& now) {
      return now.gpus.size() == 8 && now.gpus[3].condition == wanted;
    });
  };

  emulator("inject lost --gpu n1:3");
  const auto lost = condition_of_gpu_3(hardware::GpuCondition::kLost);
  const auto inventory = reports_.wait_for<Inventory>("n1", seen_, [](const Inventory& now) {
    return now.gpus.size() == 8 && !now.gpus[3].problem.empty();
  });
  emulator("clear --gpu n1:3");
  const auto back = condition_of_gpu_3(hardware::GpuCondition::kAnswering);

  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->gpus[2].condition, hardware::GpuCondition::kAnswering);
  EXPECT_TRUE(inventory) << "the change is told as a new inventory";
  EXPECT_TRUE(back);
}

TEST_F(Probes, SeeFaultsThatAreInjected) {
  start();
  runner_->watch(emulated("n1", "hgx-h200"));  // whose driver tells of a recovery action
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  emulator("inject ecc corrected 5 --gpu n1:0");
  emulator("inject ecc uncorrected 2 --gpu n1:0");
  emulator("inject temperature 86 --gpu n1:0");
  emulator("inject throttle hw-thermal --gpu n1:0");
  emulator("inject recovery drain-and-reset --gpu n1:0");
  const auto seen = reports_.wait_for<ProbeReadings>("n1", seen_, [](const ProbeReadings& now) {
    return now.gpus.at(0).recovery_action == model::RecoveryAction::kDrainAndReset;
  });

  ASSERT_TRUE(seen);
  const hardware::GpuReading& gpu = seen->gpus[0];
  EXPECT_EQ(gpu.ecc_corrected, 5u);
  EXPECT_EQ(gpu.ecc_uncorrected, 2u);
  EXPECT_EQ(gpu.temperature_c, 86);
  EXPECT_TRUE(gpu.throttle_reasons.value_or(0) & model::kThrottleHeatHardware);
}

TEST_F(Probes, TellOfAnXidThatIsInjected) {
  start();
  runner_->watch(emulated("n1"));
  const auto is_wanted = [](const ProbeEvents& now) {
    return std::ranges::any_of(now.events, [](const hardware::GpuEvent& event) {
      return event.kind == hardware::GpuEventKind::kXid && event.value == 48 && event.index == 5u;
    });
  };

  // A driver reports only events after a request for them, and the test cannot see when that comes.
  bool is_told = false;
  const auto until = std::chrono::steady_clock::now() + kLimit;
  for (std::size_t from = 0; !is_told && std::chrono::steady_clock::now() < until;) {
    emulator("inject xid 48 --gpu n1:5");
    ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
    while (const auto events = reports_.find<ProbeEvents>("n1", from))
      is_told |= is_wanted(*events);
  }

  EXPECT_TRUE(is_told);
}

TEST_F(Probes, GiveReadingsAtOnceWhenAsked) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  runner_->read_now("n1");

  EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
}

TEST_F(Probes, ReadOnlyTheGpusThatAreAskedFor) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(emulated("n1"));
  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);
  ASSERT_TRUE(inventory);
  const auto first = reports_.wait_for<ProbeReadings>("n1", seen_);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->is_partial);

  runner_->read_now("n1", {.uuids = {*inventory->gpus[3].uuid}});
  const auto one = reports_.wait_for<ProbeReadings>("n1", seen_);
  runner_->read_now("n1", {.uuids = {*inventory->gpus[3].uuid, "GPU-that-was-lost"}});
  const auto all = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(one && all);
  EXPECT_TRUE(one->is_partial);
  ASSERT_EQ(one->gpus.size(), 1U);
  EXPECT_EQ(one->gpus[0].index, 3U);
  EXPECT_FALSE(all->is_partial) << "what is missing then is what the driver has lost";
  EXPECT_EQ(all->gpus.size(), inventory->gpus.size());
}

TEST_F(Probes, ReadTheEnergyNowWhereItIsAskedFor) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(emulated("n1"));
  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);
  ASSERT_TRUE(inventory);
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  const auto energy = [&](bool with_energy) -> std::uint64_t {
    runner_->read_now("n1", {.uuids = {*inventory->gpus[3].uuid}, .with_energy = with_energy});
    const auto now = reports_.wait_for<ProbeReadings>("n1", seen_);
    const bool has_it = now && now->gpus.size() == 1 && now->gpus[0].slow &&
                        now->gpus[0].slow->energy_mj.has_value();
    EXPECT_TRUE(has_it);
    EXPECT_EQ(now && now->is_energy_new, with_energy);
    return has_it ? *now->gpus[0].slow->energy_mj : 0;
  };

  const std::uint64_t begin = energy(true);
  // An idle H100 takes a millijoule in less than 20 µs, and each question takes longer.
  const std::uint64_t end = energy(true);
  EXPECT_GT(end, begin);
  EXPECT_GE(energy(false), end) << "later readings do not fall back behind it";
}

TEST_F(Probes, ReadWhatTakesLongWithoutHoldingUpTheRest) {
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  options_.silence_limit = base::seconds(60);
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_SLOW_HANG_WHILE=" + hang}));

  const auto waiting = reports_.wait_for<ProbeReadings>(
      "n1", seen_, [](const ProbeReadings& now) { return now.slow_reads.value_or(0) > 0; });
  std::filesystem::remove(hang);

  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->gpus.at(0).condition, hardware::GpuCondition::kAnswering);
  EXPECT_EQ(waiting->gpus.at(0).slow, std::nullopt);
}

TEST_F(Probes, AddTheLatestSlowReadingToTheOthers) {
  start();
  runner_->watch(target(FAKE_NVML_NEW));

  const auto readings = reports_.wait_for<ProbeReadings>(
      "n1", seen_, [](const ProbeReadings& now) { return now.gpus.at(1).slow.has_value(); });

  ASSERT_TRUE(readings);
  EXPECT_EQ(readings->gpus[1].slow->pcie_sent_bytes_per_second, 1'000'000u);
}

TEST_F(Probes, TellTheLoadsOfProcessesThatShareAGpu) {
  start();
  runner_->watch(emulated("n1"));
  emulator(fmt::format("load --gpu n1:3 --pid {} --memory 1G --utilization 60", getpid()));
  emulator("load --gpu n1:3 --pid 4194303 --memory 1G --utilization 20 > /dev/null");
  emulator("load --gpu n1:4 --pid 4194302 --memory 1G --utilization 20 > /dev/null");

  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_, [](const ProbeReadings& now) {
    if (now.gpus.size() != 8 || !now.gpus[3].processes) return false;
    const auto& processes = *now.gpus[3].processes;
    return processes.size() == 2 && processes[0].sm_percent && processes[1].sm_percent;
  });

  ASSERT_TRUE(readings);
  EXPECT_EQ(readings->gpus[3].processes->at(0).sm_percent, 60u);
  EXPECT_EQ(readings->gpus[3].processes->at(1).sm_percent, 20u);
  ASSERT_TRUE(readings->gpus[4].processes);
  ASSERT_EQ(readings->gpus[4].processes->size(), 1u);
  EXPECT_EQ(readings->gpus[4].processes->at(0).sm_percent, std::nullopt) << "it is alone";
}

// Before Hopper NVML counts no activity.
TEST_F(Probes, FillWhatNvmlDoesNotTellFromDcgm) {
  start();
  ProbeTarget node = emulated("n1", "dgx-a100");
  node.dcgm = {{"/nonexistent/libdcgm.so.4", EMULATED_DCGM}, ""};
  runner_->watch(node);
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  emulator(fmt::format("load --gpu n1:6 --pid {} --utilization 80", getpid()));
  const auto loaded = reports_.wait_for<ProbeReadings>(
      "n1", seen_,
      [](const ProbeReadings& readings) { return readings.gpus.at(6).sm_active == 720U; });

  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->gpus[6].tensor_active, 400U);
  EXPECT_EQ(loaded->gpus[6].utilization_percent, 80U);
}

TEST_F(Probes, LoseNothingElseWhileDcgmHangs) {
  const std::string hang = folder_ + "/hang";
  start();
  ProbeTarget node = emulated("n1", "dgx-a100");
  node.dcgm = {{EMULATED_DCGM}, ""};
  node.environment.push_back("GPU_EMULATOR_DCGM_HANG_WHILE=" + hang);
  runner_->watch(node);
  const auto wait_for_activity = [&](bool is_known) {
    return reports_.wait_for<ProbeReadings>("n1", seen_, [&](const ProbeReadings& readings) {
      return readings.gpus.at(0).sm_active.has_value() == is_known;
    });
  };
  ASSERT_TRUE(wait_for_activity(true));

  std::ofstream(hang).put('x');
  const auto without = wait_for_activity(false);
  std::filesystem::remove(hang);
  const auto again = wait_for_activity(true);

  ASSERT_TRUE(without) << "what DCGM said has grown old";
  EXPECT_TRUE(without->gpus.at(0).temperature_c);
  EXPECT_TRUE(again);
  EXPECT_EQ(runner_->status().at(0).starts, 1U) << "the same probe";
}

TEST_F(Probes, TellWhatTheHostDoesAlsoWhereBoardsAreEmulated) {
  options_.data_folder = folder_;
  start();
  runner_->watch(emulated("n1"));

  const auto readings = reports_.wait_for<ProbeReadings>(
      "n1", seen_, [](const ProbeReadings& now) { return now.host.has_value(); });

  ASSERT_TRUE(readings);
  EXPECT_FALSE(readings->is_partial);
  EXPECT_TRUE(readings->host->memory_total);
  EXPECT_TRUE(readings->host->disk_total);
}

}  // namespace
}  // namespace gpu_platform::node
