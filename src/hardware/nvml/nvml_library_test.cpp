#include "hardware/nvml/nvml_library.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

// An environment variable for the time of a test: the libraries read theirs from it.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/nvml_library_test.XXXXXX";
    path_ = mkdtemp(path);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int gpu_emulator(const std::string& arguments) {
  return std::system(fmt::format("{} {}", GPU_EMULATOR, arguments).c_str());
}

// A library that opens and lists, or the problem in the failure message.
std::unique_ptr<GpuLibrary> opened(const char* path) {
  auto library = open_nvml(path);
  EXPECT_TRUE(library) << (library ? "" : library.error().message);
  return library ? std::move(*library) : nullptr;
}

ProblemKind problem_of(const std::string& path) {
  const auto library = open_nvml(path);
  EXPECT_FALSE(library);
  return library ? ProblemKind::kOther : library.error().kind;
}

TEST(NvmlLibrary, SaysThatNoDriverIsInstalled) {
  EXPECT_EQ(problem_of("/nonexistent/libnvidia-ml.so.1"), ProblemKind::kNoLibrary);
}

TEST(NvmlLibrary, RefusesALibraryThatIsNotNvml) {
  const auto library = open_nvml(NOT_NVML);

  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ProblemKind::kNotNvml);
  EXPECT_NE(library.error().message.find("nvmlInit_v2"), std::string::npos)
      << library.error().message;
}

TEST(NvmlLibrary, RefusesAFileThatIsNoLibrary) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/libnvidia-ml.so.1";
  std::ofstream(path) << "not an ELF file";

  EXPECT_EQ(problem_of(path), ProblemKind::kNotNvml);
}

TEST(NvmlLibrary, TellsTheReasonsForWhichADriverRefusesApart) {
  const std::pair<const char*, ProblemKind> cases[] = {
      {"9", ProblemKind::kNoDriver},        {"4", ProblemKind::kNoPermission},
      {"18", ProblemKind::kDriverMismatch}, {"28", ProblemKind::kNoGpu},
      {"999", ProblemKind::kOther},
  };
  for (const auto& [code, kind] : cases) {
    const Environment init("FAKE_NVML_INIT", code);
    EXPECT_EQ(problem_of(FAKE_NVML_OLD), kind) << code;
  }
}

TEST(NvmlLibrary, SaysThatADriverKnowsNoGpu) {
  const Environment count("FAKE_NVML_COUNT", "0");
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  const auto gpus = library->list_gpus();

  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().kind, ProblemKind::kNoGpu);
}

TEST(NvmlLibrary, DoesNotBelieveAnAbsurdNumberOfGpus) {
  const Environment count("FAKE_NVML_COUNT", "1000000");
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  EXPECT_FALSE(library->list_gpus());
}

TEST(NvmlLibrary, FallsBackToTheFunctionsOfOldDrivers) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  const auto gpus = library->list_gpus();
  const GpuReading reading = library->read(1);

  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[1].pci_address, "0000:11:00.0");
  EXPECT_EQ((*gpus)[1].memory, base::kGiB * 16);
  EXPECT_EQ(reading.memory_used, base::kGiB);
  EXPECT_EQ(reading.temperature_c, 41);
  ASSERT_TRUE(reading.processes);
  EXPECT_EQ(reading.processes->size(), 40u);
}

TEST(NvmlLibrary, LosesOneDatumForEachMissingFunction) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  const auto gpus = library->list_gpus();
  const GpuReading reading = library->read(0);

  ASSERT_TRUE(gpus);
  EXPECT_EQ(gpus->front().minor, std::nullopt);
  EXPECT_EQ(gpus->front().mig_enabled, std::nullopt);
  EXPECT_EQ(gpus->front().uuid, "GPU-fake-0");
  EXPECT_EQ(library->describe_driver(), DriverDescription{});
  EXPECT_EQ(reading.condition, GpuCondition::kAnswering);
  EXPECT_EQ(reading.utilization_percent, std::nullopt);
  EXPECT_EQ(reading.power, std::nullopt);
}

TEST(NvmlLibrary, TakesValuesThatADriverMarksAsUnknownForUnknown) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  const GpuReading reading = library->read(0);

  ASSERT_TRUE(reading.processes);
  EXPECT_EQ(reading.processes->at(0), (GpuProcess{1000, std::nullopt}));
  EXPECT_EQ(reading.processes->at(1), (GpuProcess{1001, base::kMiB}));
}

TEST(NvmlLibrary, PrefersTheNewestFunctionsAndFallsBackWhereTheyRefuse) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const GpuReading reading = library->read(0);

  EXPECT_EQ(reading.memory_used, base::kGiB * 2) << "without the reserved part";
  ASSERT_TRUE(reading.processes);
  EXPECT_EQ(reading.processes->back().pid, 77u);
  EXPECT_EQ(reading.temperature_c, 41);
}

TEST(NvmlLibrary, DescribesTheTemperatureFromWhichAGpuSlowsDown) {
  const auto slowdown_of = [](const char* path) {
    const std::optional<std::int32_t> nothing_listed = -1;
    const auto library = opened(path);
    if (library == nullptr) return nothing_listed;
    const auto gpus = library->list_gpus();
    return gpus && !gpus->empty() ? gpus->front().slowdown_c : nothing_listed;
  };
  EXPECT_EQ(slowdown_of(FAKE_NVML_NEW), 93);
  EXPECT_EQ(slowdown_of(FAKE_NVML_OLD), std::nullopt) << "it has no such function";
  for (const char* const unknown : {"0", "-1", "5000"}) {
    const Environment answer("FAKE_NVML_SLOWDOWN", unknown);
    EXPECT_EQ(slowdown_of(FAKE_NVML_NEW), std::nullopt) << unknown;
  }
}

TEST(NvmlLibrary, TellsAProcessOnceWhateverListsItIsIn) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const GpuReading reading = library->read(0);

  EXPECT_EQ(reading.processes,
            (std::vector<GpuProcess>{{5, base::kMiB * 2, kGraphicsProcess},
                                     {77, base::kMiB * 5, kComputeProcess | kMpsProcess}}));
}

TEST(NvmlLibrary, NeverCountsWhatADriverMarksAsUnavailable) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const GpuReading reading = library->read(1);
  const model::GpuSlowMetrics slow = library->read_slow(1);

  EXPECT_EQ(reading.power, std::nullopt);
  EXPECT_EQ(reading.ecc_uncorrected, std::nullopt);
  EXPECT_EQ(slow.ecc_lifetime_corrected, std::nullopt);
  EXPECT_EQ(slow.ecc_lifetime_uncorrected, std::nullopt);
  EXPECT_EQ(slow.nvlink_crc_errors, 38u) << "the other kind alone";
  EXPECT_EQ(slow.nvlink_replays, std::nullopt) << "its field has an error of its own";
  EXPECT_EQ(slow.nvlink_recoveries, std::nullopt) << "negative";
}

TEST(NvmlLibrary, ReadsTheEnergyWithTheSlowReadings) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const auto first = library->read_slow(0).energy_mj;

  ASSERT_TRUE(first);
  EXPECT_GT(library->read_slow(0).energy_mj, first);
}

TEST(NvmlLibrary, ReadsTheEnergyAloneForTheBeginAndTheEndOfAJob) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const auto first = library->read_energy(0);

  ASSERT_TRUE(first);
  EXPECT_GT(library->read_slow(0).energy_mj, first) << "the counter is one";
  EXPECT_FALSE(library->read_energy(999));
}

TEST(NvmlLibrary, ReadsTheEnginesForVideo) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  EXPECT_EQ(library->read(0).encoder_percent, 12u);
  EXPECT_EQ(library->read(0).decoder_percent, 34u);
  EXPECT_EQ(library->read(1).encoder_percent, std::nullopt) << "more than all of its time";
}

TEST(NvmlLibrary, CountsWithGpmFromTheSecondReadingOn) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const GpuReading first = library->read(0);
  const GpuReading second = library->read(0);

  EXPECT_EQ(first.graphics_active, std::nullopt) << "there is no time between readings yet";
  EXPECT_EQ(second.graphics_active, 10u) << "thousandths";
  EXPECT_EQ(second.sm_active, 20u);
  EXPECT_EQ(second.sm_occupancy, 30u);
  EXPECT_EQ(second.tensor_active, 50u);
  EXPECT_EQ(second.dram_active, 100u);
  EXPECT_EQ(second.fp64_active, 110u);
  EXPECT_EQ(second.fp32_active, 120u);
  EXPECT_EQ(second.fp16_active, std::nullopt) << "the driver refuses this one alone";
}

TEST(NvmlLibrary, HasNoGpmWhereTheGpuOrTheDriverHasNone) {
  for (const auto& [path, index] : {std::pair(FAKE_NVML_NEW, 1u), {FAKE_NVML_OLD, 0u}}) {
    const auto library = opened(path);
    ASSERT_TRUE(library);

    (void)library->read(index);
    const GpuReading reading = library->read(index);

    EXPECT_EQ(reading.condition, GpuCondition::kAnswering);
    EXPECT_EQ(reading.graphics_active, std::nullopt) << path;
  }
}

TEST(NvmlLibrary, BelievesNoShareThatCannotBe) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);
  (void)library->read(0);

  for (const char* const value : {"nan", "-nan", "inf", "-1", "100.1", "1e300"}) {
    const Environment gpm("FAKE_NVML_GPM", value);
    EXPECT_EQ(library->read(0).sm_active, std::nullopt) << value;
  }
  for (const auto& [value, thousandths] : {std::pair("0", 0u), {"100", 1000u}, {"42.36", 424u}}) {
    const Environment gpm("FAKE_NVML_GPM", value);
    EXPECT_EQ(library->read(0).sm_active, thousandths) << value;
  }
}

TEST(NvmlLibrary, BelievesNoMemoryInUseBeyondAllThatThereIs) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);
  const Environment used("FAKE_NVML_USED", "18446744073709551614");

  const GpuReading reading = library->read(0);

  EXPECT_EQ(reading.memory_total, base::kGiB * 16);
  EXPECT_EQ(reading.memory_used, std::nullopt);
}

TEST(NvmlLibrary, TellsTheNewestLoadOfEachProcessOnce) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  EXPECT_EQ(library->read_loads(0), (std::vector<ProcessLoad>{{5, 7}, {77, 40}}));
  EXPECT_EQ(library->read_loads(0), std::vector<ProcessLoad>{}) << "nothing is new";
  EXPECT_EQ(library->read_loads(1).size(), 2u) << "of another GPU they are";
}

TEST(NvmlLibrary, IsNotStoppedByALoadOfTheFuture) {
  const Environment time("FAKE_NVML_SAMPLE_TIME", "18446744073709551615");
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  EXPECT_EQ(library->read_loads(0).size(), 2u);
  EXPECT_EQ(library->read_loads(0).size(), 2u);
}

TEST(NvmlLibrary, KnowsNoLoadsOfADriverThatTellsNone) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  EXPECT_EQ(library->read_loads(0), std::vector<ProcessLoad>{});
}

TEST(NvmlLibrary, ReadsWhatTakesLongApart) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);

  const model::GpuSlowMetrics slow = library->read_slow(0);

  EXPECT_EQ(library->read(0).slow, std::nullopt);
  EXPECT_EQ(slow.pcie_sent_bytes_per_second, 1'000'000u);
  EXPECT_EQ(slow.pcie_received_bytes_per_second, 1'001'000u);
  EXPECT_EQ(slow.ecc_lifetime_corrected, 103u);
  EXPECT_EQ(slow.ecc_lifetime_uncorrected, 113u);
  EXPECT_EQ(slow.remapped_rows_corrected, 1u);
  EXPECT_EQ(slow.remapped_rows_uncorrected, 2u);
  EXPECT_EQ(slow.remap_pending, true);
  EXPECT_EQ(slow.remap_failed, false);
  EXPECT_EQ(slow.retired_pages_corrected, 4u);
  EXPECT_EQ(slow.retired_pages_uncorrected, 0u);
  EXPECT_EQ(slow.nvlinks_active, 2u);
  EXPECT_EQ(slow.nvlink_sent, base::Bytes(7 * 1024)) << "of all links together";
}

TEST(NvmlLibrary, TellsWhatTheDriverWantsDoneAboutAGpu) {
  const std::pair<const char*, model::RecoveryAction> cases[] = {
      {"0", model::RecoveryAction::kNone},
      {"4", model::RecoveryAction::kDrainAndReset},
      {"7", model::RecoveryAction::kSystemReboot},
      {"8", model::RecoveryAction::kUnknown},
      {"1000", model::RecoveryAction::kUnknown}};
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);
  for (const auto& [number, action] : cases) {
    const Environment recovery("FAKE_NVML_RECOVERY", number);
    EXPECT_EQ(library->read(0).recovery_action, action) << number;
  }
}

TEST(NvmlLibrary, FindsDirectLinksWhereADriverDoesNotSayWhatThePeersAre) {
  const auto library = opened(FAKE_NVML_NEW);
  ASSERT_TRUE(library);
  ASSERT_TRUE(library->list_gpus());

  EXPECT_EQ(library->links(), (std::vector<GpuLink>{{0, 1, LinkKind::kNvLink, 2, 2}}));
}

TEST(NvmlLibrary, KnowsNoLinksOfADriverThatTellsNone) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);
  ASSERT_TRUE(library->list_gpus());

  EXPECT_EQ(library->links(), std::vector<GpuLink>{});
}

TEST(NvmlEvents, AreToldWithTheirGpu) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/event";
  const Environment event("FAKE_NVML_EVENT", path);
  const auto events = open_nvml_events(FAKE_NVML_NEW);
  ASSERT_TRUE(events && *events);

  std::ofstream(path) << "1 8 79";
  const auto told = (*events)->wait(base::seconds(30));
  const auto after = (*events)->wait(base::Duration());

  ASSERT_TRUE(told && *told);
  EXPECT_EQ(**told, (GpuEvent{1, "GPU-fake-1", GpuEventKind::kXid, 8, 79}));
  ASSERT_TRUE(after);
  EXPECT_EQ(*after, std::nullopt);
}

TEST(NvmlEvents, OfAnUnknownGpuAreToldWithoutIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/event";
  const Environment event("FAKE_NVML_EVENT", path);
  const auto events = open_nvml_events(FAKE_NVML_NEW);
  ASSERT_TRUE(events && *events);

  std::ofstream(path) << "9 65536 1";
  const auto told = (*events)->wait(base::seconds(30));

  ASSERT_TRUE(told && *told);
  EXPECT_EQ(**told, (GpuEvent{std::nullopt, "", GpuEventKind::kOther, 65536, 1}));
}

TEST(NvmlEvents, AreNoneWhereTheLibraryOrItsGpusHaveNone) {
  const auto old = open_nvml_events(FAKE_NVML_OLD);
  const Environment types("FAKE_NVML_EVENT_TYPES", "0");
  const auto silent = open_nvml_events(FAKE_NVML_NEW);

  ASSERT_TRUE(old && silent);
  EXPECT_EQ(*old, nullptr);
  EXPECT_EQ(*silent, nullptr);
}

TEST(NvmlEvents, SayWhyTheDriverRefuses) {
  const Environment init("FAKE_NVML_INIT", "9");
  const auto events = open_nvml_events(FAKE_NVML_NEW);

  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().kind, ProblemKind::kNoDriver);
}

TEST(NvmlLibrary, ReportsALostGpuWithoutHarmToOthers) {
  const Environment lost("FAKE_NVML_LOST", "0");
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);

  const auto gpus = library->list_gpus();
  const GpuReading dead = library->read(0);
  const GpuReading alive = library->read(1);

  ASSERT_TRUE(gpus);
  EXPECT_NE(gpus->at(0).problem.find("GPU is lost"), std::string::npos);
  EXPECT_EQ(gpus->at(1).problem, "");
  EXPECT_EQ(dead.condition, GpuCondition::kLost);
  EXPECT_EQ(dead.memory_used, std::nullopt);
  EXPECT_EQ(alive.condition, GpuCondition::kAnswering);
}

TEST(NvmlLibrary, GivesNothingOfAGpuThatIsLostInTheMiddleOfAReading) {
  const auto library = opened(FAKE_NVML_OLD);
  ASSERT_TRUE(library);
  ASSERT_TRUE(library->list_gpus());
  const Environment lost("FAKE_NVML_LOST", "1");

  const GpuReading reading = library->read(1);

  EXPECT_EQ(reading.condition, GpuCondition::kLost);
  EXPECT_EQ(reading.temperature_c, std::nullopt);
}

// ---- the emulated library, opened as a driver's is ----

class EmulatedBoard : public ::testing::Test {
 protected:
  void SetUp() override { open("dgx-h100", "n1"); }

  // The library of a new node, from now on.
  void open(const std::string& board, const std::string& name) {
    const std::string node = folder_.path() + "/emulated/" + name;
    ASSERT_EQ(
        gpu_emulator(fmt::format("create --board {} --node-name {} --dir {}", board, name, node)),
        0);
    library_.reset();
    state_.reset();
    state_.emplace("GPU_EMULATOR_STATE", node + "/state");
    library_ = opened(EMULATED_NVML);
    ASSERT_TRUE(library_);
    ASSERT_TRUE(library_->list_gpus());
  }

  void load(const std::string& arguments) {
    ASSERT_EQ(gpu_emulator(fmt::format("load --data-dir {} {}", folder_.path(), arguments)), 0);
  }

  TemporaryFolder folder_;
  std::optional<Environment> state_;
  std::unique_ptr<GpuLibrary> library_;
};

TEST_F(EmulatedBoard, IsDescribedInEveryDatum) {
  const auto gpus = library_->list_gpus();

  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 8u);
  const GpuDescription& gpu = gpus->at(4);
  EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
  EXPECT_TRUE(gpu.uuid->starts_with("GPU-")) << *gpu.uuid;
  EXPECT_EQ(gpu.uuid->size(), 40u);
  EXPECT_TRUE(gpu.serial);
  EXPECT_EQ(gpu.pci_address, "00000000:9D:00.0");
  EXPECT_EQ(gpu.minor, 4u);
  EXPECT_EQ(gpu.memory, base::kMiB * 81559);
  EXPECT_EQ(gpu.numa_node, 1u);
  ASSERT_TRUE(gpu.cpus);
  EXPECT_EQ(gpu.cpus->size(), 112u);
  EXPECT_EQ(gpu.cpus->front(), 56u);
  EXPECT_EQ(gpu.power_limit, base::Milliwatts(700'000));
  EXPECT_EQ(gpu.power_limit_min, base::Milliwatts(200'000));
  EXPECT_EQ(gpu.power_limit_max, base::Milliwatts(700'000));
  EXPECT_EQ(gpu.max_mig_devices, 7u);
  EXPECT_EQ(gpu.pcie_generation_max, 5u);
  EXPECT_EQ(gpu.pcie_width_max, 16u);
  EXPECT_EQ(gpu.slowdown_c, 87);
  EXPECT_EQ(gpu.compute_capability, (ComputeCapability{9, 0}));
  EXPECT_EQ(gpu.mig_enabled, false);
  EXPECT_EQ(gpu.ecc_enabled, true);
  EXPECT_EQ(gpu.persistence_enabled, true);
  EXPECT_EQ(gpu.problem, "");
}

TEST_F(EmulatedBoard, JoinsAllItsGpusThroughItsSwitches) {
  ASSERT_TRUE(library_->list_gpus());

  const auto links = library_->links();

  ASSERT_EQ(links.size(), 28u);
  for (const GpuLink& link : links) {
    EXPECT_EQ(link.kind, LinkKind::kNvLink);
    EXPECT_EQ(link.nvlinks, 18u) << link.a << "-" << link.b;
    EXPECT_EQ(link.nvlink_version, 6u);
  }
}

TEST_F(EmulatedBoard, DescribesItsDriver) {
  const DriverDescription driver = library_->describe_driver();

  EXPECT_EQ(driver.driver_version, "550.90.07");
  EXPECT_EQ(driver.library_version, "12.550.90.07");
  EXPECT_EQ(driver.cuda_version, 12040u);
}

TEST_F(EmulatedBoard, IsIdleAtFirst) {
  ASSERT_TRUE(library_->list_gpus());

  const GpuReading reading = library_->read(0);

  EXPECT_EQ(reading.utilization_percent, 0u);
  EXPECT_EQ(reading.memory_used, base::Bytes(0));
  EXPECT_EQ(reading.processes, std::vector<GpuProcess>{});
  EXPECT_EQ(reading.power, base::Milliwatts(71'000));
  EXPECT_EQ(reading.ecc_uncorrected, 0u);
}

TEST_F(EmulatedBoard, ShowsALoadToALibraryThatIsOpen) {
  ASSERT_TRUE(library_->list_gpus());
  const pid_t self = getpid();

  load(fmt::format("--gpu n1:3 --pid {} --memory 20G --utilization 60", self));
  const GpuReading loaded = library_->read(3);
  const GpuReading other = library_->read(2);

  EXPECT_EQ(loaded.utilization_percent, 60u);
  EXPECT_EQ(loaded.memory_used, base::kGiB * 20);
  EXPECT_EQ(loaded.processes,
            (std::vector<GpuProcess>{{static_cast<std::uint32_t>(self), base::kGiB * 20}}));
  EXPECT_GT(loaded.power, other.power);
  EXPECT_GT(loaded.temperature_c, other.temperature_c);
  EXPECT_EQ(other.memory_used, base::Bytes(0));
}

TEST_F(EmulatedBoard, CountsWithGpmWhereItsGpusAreOfHopper) {
  (void)library_->read(0);
  const GpuReading idle = library_->read(0);

  EXPECT_EQ(idle.graphics_active, 0u);
  EXPECT_EQ(idle.sm_active, 0u);
  EXPECT_EQ(idle.sm_occupancy, 0u);
  EXPECT_EQ(idle.tensor_active, 0u);
  EXPECT_EQ(idle.dram_active, 0u);
  EXPECT_EQ(idle.fp64_active, 0u);
  EXPECT_EQ(idle.fp32_active, 0u);
  EXPECT_EQ(idle.fp16_active, 0u);

  load(fmt::format("--gpu n1:0 --pid {} --memory 1G --utilization 60", getpid()));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  GpuReading loaded;
  while (!loaded.tensor_active.value_or(0) && std::chrono::steady_clock::now() < limit) {
    loaded = library_->read(0);
  }
  EXPECT_GT(loaded.tensor_active.value_or(0), 0u);
}

TEST_F(EmulatedBoard, HasNoGpmWhereItsGpusAreOlder) {
  for (const char* const board : {"v100x8", "t4x4"}) {
    open(board, board);

    (void)library_->read(0);
    const GpuReading reading = library_->read(0);

    EXPECT_EQ(reading.utilization_percent, 0u) << board;
    EXPECT_EQ(reading.graphics_active, std::nullopt) << board;
    EXPECT_EQ(reading.dram_active, std::nullopt) << board;
  }
}

TEST_F(EmulatedBoard, TellsWhatPartOfAGpuIsUsedByEachOfItsProcesses) {
  const auto self = static_cast<std::uint32_t>(getpid());
  load(fmt::format("--gpu n1:3 --pid {} --memory 1G --utilization 60", self));
  load("--gpu n1:3 --pid 4194303 --memory 1G --utilization 20 > /dev/null");

  EXPECT_EQ(library_->read_loads(3), (std::vector<ProcessLoad>{{self, 60}, {4194303, 20}}));
  EXPECT_EQ(library_->read_loads(2), std::vector<ProcessLoad>{});
}

TEST_F(EmulatedBoard, ForgetsAProcessThatEnded) {
  ASSERT_TRUE(library_->list_gpus());
  const std::string shell =
      fmt::format("{} load --data-dir {} --gpu n1:0 --pid $$ --memory 1G --utilization 5",
                  GPU_EMULATOR, folder_.path());

  ASSERT_EQ(std::system(shell.c_str()), 0);

  EXPECT_EQ(library_->read(0).memory_used, base::Bytes(0));
}

TEST_F(EmulatedBoard, KeepsAProcessThatNeverWasUntilItIsCleared) {
  ASSERT_TRUE(library_->list_gpus());
  load("--gpu n1:0 --pid 4194303 --memory 1G > /dev/null");
  EXPECT_EQ(library_->read(0).memory_used, base::kGiB);

  ASSERT_EQ(gpu_emulator(fmt::format("clear --data-dir {} --gpu n1:0", folder_.path())), 0);

  EXPECT_EQ(library_->read(0).memory_used, base::Bytes(0));
}

TEST(EmulatedLibrary, HasNoDriverWithoutABoard) {
  EXPECT_EQ(problem_of(EMULATED_NVML), ProblemKind::kNoDriver);
}

TEST(EmulatedLibrary, RefusesAStateOfAnotherVersion) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/state";
  std::ofstream(path) << std::string(200'000, 'x');
  const Environment state("GPU_EMULATOR_STATE", path);

  EXPECT_EQ(problem_of(EMULATED_NVML), ProblemKind::kDriverMismatch);
}

}  // namespace
}  // namespace gpu_platform::hardware
