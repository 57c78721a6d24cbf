#include "node/probe/probe_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "os/clock.h"
#include "os/descriptor.h"
#include "os/testing/eventually.h"

namespace gpu_platform::node {
namespace {

using hardware::Inventory;
using hardware::ProblemKind;

constexpr auto kLimit = std::chrono::seconds(30);

// Keeps what is reported and waits for what is wanted.
class Reports final : public ProbeListener {
 public:
  void on_report(ProbeReport report) override {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    changed_.notify_all();
  }

  // The first report, from the `from`th on, that `wanted` accepts; moves `from` behind it.
  template <class Content, class Wanted>
  std::optional<Content> wait_for(const std::string& node, std::size_t& from, Wanted wanted) {
    std::unique_lock lock(mutex_);
    std::optional<Content> found;
    changed_.wait_for(lock, kLimit, [&] {
      for (; from < reports_.size() && !found; ++from) {
        const auto* content = std::get_if<Content>(&reports_[from].content);
        if (content != nullptr && reports_[from].node_name == node && wanted(*content))
          found = *content;
      }
      return found.has_value();
    });
    return found;
  }

  template <class Content>
  std::optional<Content> wait_for(const std::string& node, std::size_t& from) {
    return wait_for<Content>(node, from, [](const Content&) { return true; });
  }

  // The next report of the kind that is there already.
  template <class Content>
  std::optional<Content> find(const std::string& node, std::size_t& from) {
    const std::lock_guard lock(mutex_);
    for (; from < reports_.size();) {
      const ProbeReport& report = reports_[from++];
      const auto* content = std::get_if<Content>(&report.content);
      if (content != nullptr && report.node_name == node) return *content;
    }
    return std::nullopt;
  }

  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return reports_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ProbeReport> reports_;
};

class Probes : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/probe_runner_test.XXXXXX";
    folder_ = mkdtemp(path);
    options_.executable = PROBE;
    options_.interval = base::milliseconds(20);
    // Only what is about silence waits for it: fall_silent_soon().
    options_.silence_limit = base::seconds(20);
    options_.first_inventory_limit = base::seconds(20);
    options_.min_restart_delay = base::milliseconds(10);
    options_.max_restart_delay = base::milliseconds(100);
  }
  void TearDown() override {
    runner_.reset();
    std::filesystem::remove_all(folder_);
  }

  // layers allow expires: it is to pass; what is to succeed does not wait for it
  void fall_silent_soon() { options_.silence_limit = base::milliseconds(500); }

  void start() {
    auto runner = ProbeRunner::start(options_, reports_);
    ASSERT_TRUE(runner) << runner.error().message;
    runner_ = std::move(*runner);
  }

  ProbeTarget emulated(const std::string& name, const std::string& board = "dgx-h100") {
    const std::string dir = folder_ + "/emulated/" + name;
    EXPECT_EQ(std::system(fmt::format("{} create --board {} --node-name {} --dir {}", GPU_EMULATOR,
                                      board, name, dir)
                              .c_str()),
              0);
    return emulated_target(name, dir, EMULATED_NVML);
  }

  void emulator(const std::string& arguments) {
    ASSERT_EQ(
        std::system(fmt::format("{} {} --data-dir {}", GPU_EMULATOR, arguments, folder_).c_str()),
        0);
  }

  ProbeTarget target(const std::string& library, std::vector<std::string> environment = {}) {
    return {"n1", false, library, "", std::move(environment), "", ""};
  }

  // A program that answers as nvidia-smi does.
  std::string nvidia_smi() {
    const std::string path = folder_ + "/nvidia-smi";
    std::ofstream(path) << "#!/bin/sh\ncd " << SMI_FIXTURES
                        << "\ncase $1 in -q) cat report.xml;;\n"
                           "--query-gpu=index,uuid,name*) cat gpus.csv;;\n"
                           "--query-gpu=*) cat readings.csv;;\n"
                           "--query-compute-apps=*) cat processes.csv;;\nesac\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }

  // The status of the one node, once `wanted` holds; the last one seen where it never does.
  template <class Wanted>
  ProbeStatus wait_for_status(Wanted wanted) {
    ProbeStatus last;
    EXPECT_TRUE(os::eventually([&] {
      for (const ProbeStatus& status : runner_->status()) {
        last = status;
        if (wanted(status)) return true;
      }
      return false;
    }));
    return last;
  }

  std::string folder_;
  ProbeRunnerOptions options_;
  Reports reports_;
  std::unique_ptr<ProbeRunner> runner_;
  std::size_t seen_ = 0;
};

TEST_F(Probes, HeldProbeEndsWithoutAReportAndComesBackWithItsInventory) {
  start();
  runner_->watch(emulated("n1"));
  std::size_t from = 0;
  ASSERT_TRUE(reports_.wait_for<Inventory>("n1", from));
  runner_->hold("n1");
  runner_->hold("none");
  ASSERT_TRUE(os::eventually([&] {
    const auto status = runner_->status();
    return status.size() == 1 && status[0].pid == 0 && status[0].abandoned == 0;
  }));
  EXPECT_EQ(runner_->status()[0].starts, 1U);
  from = reports_.count();
  runner_->let_go_on("n1");
  ASSERT_TRUE(reports_.wait_for<Inventory>("n1", from));
  std::size_t all = 0;
  EXPECT_FALSE(reports_.find<ProbeProblem>("n1", all)) << "its end was ordered";
}

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

TEST_F(Probes, GoOnWithABoardThatAnswersSlowly) {
  const ProbeTarget node = emulated("n1");
  emulator("inject slow 3 --gpu n1:0");
  start();
  runner_->watch(node);

  EXPECT_TRUE(reports_.wait_for<Inventory>("n1", seen_));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
}

TEST_F(Probes, WatchSixteenBoardsAtOnce) {
  start();
  for (int i = 1; i <= 16; ++i) runner_->watch(emulated(fmt::format("dgx-h100-{}", i)));

  std::set<std::string> uuids;
  for (int i = 1; i <= 16; ++i) {
    std::size_t from = 0;
    const auto inventory = reports_.wait_for<Inventory>(fmt::format("dgx-h100-{}", i), from);
    ASSERT_TRUE(inventory) << i;
    for (const hardware::GpuDescription& gpu : inventory->gpus) uuids.insert(gpu.uuid.value_or(""));
  }

  EXPECT_EQ(uuids.size(), 128u);
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

TEST_F(Probes, AreStartedAgainWhenTheyDie) {
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<Inventory>("n1", seen_));
  const ProbeStatus first =
      wait_for_status([](const ProbeStatus& status) { return status.pid != 0; });

  ASSERT_EQ(kill(first.pid, SIGKILL), 0);
  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);
  const auto again = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kDied);
  EXPECT_EQ(problem->message, "the probe ended by SIGKILL");
  EXPECT_TRUE(again);
  const ProbeStatus second = wait_for_status(
      [&](const ProbeStatus& status) { return status.pid != 0 && status.starts == 2; });
  EXPECT_EQ(second.starts, 2u);
  EXPECT_NE(second.pid, first.pid);
}

TEST_F(Probes, AreGivenUpWhenTheDriverHangsAndComeBackWhenItAnswers) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.first_inventory_limit = base::milliseconds(300);
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  start();
  runner_->watch(target(FAKE_NVML, {"FAKE_NVML_HANG_WHILE=" + hang}));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);
  std::filesystem::remove(hang);
  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_NE(problem->message.find("driver has not answered"), std::string::npos)
      << problem->message;
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->gpus.size(), 2u);
}

TEST_F(Probes, AreGivenUpWhenTheyFallSilentLater) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  start();
  runner_->watch(target(FAKE_NVML, {"FAKE_NVML_HANG_WHILE=" + hang}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  std::ofstream(hang).put('x');
  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
}

TEST_F(Probes, HandOnWhatTheDriverTellsOfItsOwnAccord) {
  const std::string event = folder_ + "/event";
  options_.interval = base::hours(1);
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_EVENT=" + event}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  std::ofstream(event) << "1 8 79";
  const auto told = reports_.wait_for<ProbeEvents>("n1", seen_);

  ASSERT_TRUE(told);
  EXPECT_EQ(*told, (ProbeEvents{{{1, "GPU-fake-1", hardware::GpuEventKind::kXid, 8, 79}}, 0, 0}));
}

TEST_F(Probes, SayUntilWhenTheyListenedOnceTheyAreAsked) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(target(FAKE_NVML_NEW));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  const std::int64_t asked_ns = os::boot_ns();

  // Whether the thread listens already, the test cannot see: it is asked until it does.
  const auto says_when = [&](const ProbeEvents& events) { return events.until_ns != 0; };
  std::optional<ProbeEvents> told;
  do {
    runner_->read_now("n1");
    told = reports_.wait_for<ProbeEvents>("n1", seen_, says_when);
    ASSERT_TRUE(told);
  } while (told->until_ns == kNoEventsEver);

  EXPECT_TRUE(told->events.empty());
  EXPECT_GT(told->until_ns, asked_ns);
  EXPECT_LE(told->until_ns, os::boot_ns());
}

TEST_F(Probes, SayThatNobodyListensWhereTheDriverTellsNothing) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_EVENT_TYPES=0"}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  runner_->read_now("n1");

  const auto told = reports_.wait_for<ProbeEvents>("n1", seen_);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->until_ns, kNoEventsEver);
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

TEST_F(Probes, AreGivenUpWhenTheWaitForEventsHangsThoughTheyStillPoll) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_EVENTS_HANG_WHILE=" + hang}));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);
  std::filesystem::remove(hang);
  const auto again = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_NE(problem->message.find("thread for events has been inside the driver"),
            std::string::npos)
      << problem->message;
  EXPECT_TRUE(again);
}

TEST_F(Probes, AreGivenUpWhenSlowReadingsHangThoughTheyStillPoll) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_SLOW_HANG_WHILE=" + hang}));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_NE(problem->message.find("thread for slow readings has been inside the driver"),
            std::string::npos)
      << problem->message;
}

// Events are no sign of life of the thread that polls.
TEST_F(Probes, AreGivenUpWhenPollingHangsThoughEventsComeIn) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  const std::string event = folder_ + "/event";
  start();
  runner_->watch(
      target(FAKE_NVML_NEW, {"FAKE_NVML_HANG_WHILE=" + hang, "FAKE_NVML_EVENT=" + event}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  std::ofstream(hang).put('x');
  std::optional<ProbeProblem> problem;
  std::size_t events = 0;
  std::size_t from = seen_;
  os::eventually([&] {
    if (!std::filesystem::exists(event)) {
      const std::string ready = event + ".new";
      std::ofstream(ready) << "0 8 31";
      std::filesystem::rename(ready, event);
    }
    problem = reports_.find<ProbeProblem>("n1", from);
    if (reports_.find<ProbeEvents>("n1", seen_)) ++events;
    return problem.has_value();
  });

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_GT(events, 3u);
}

TEST_F(Probes, AskNvidiaSmiWhereNvmlCannotBeOpened) {
  ProbeTarget node = target("/nonexistent/libnvidia-ml.so.1");
  node.nvidia_smi = nvidia_smi();
  start();
  runner_->watch(node);

  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);
  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->problem, std::nullopt);
  EXPECT_EQ(inventory->gpus.size(), 2u);
  EXPECT_NE(inventory->fallback.find("nvidia-smi is asked instead"), std::string::npos);
  EXPECT_NE(inventory->fallback.find("no NVIDIA driver is installed"), std::string::npos)
      << inventory->fallback;
  ASSERT_TRUE(readings);
  EXPECT_EQ(readings->gpus.at(0).utilization_percent, 97u);
  EXPECT_EQ(readings->events, std::nullopt) << "nothing waits for events";
}

TEST_F(Probes, OfAnEmulatedNodeNeverAskTheRealMachine) {
  const ProbeTarget node = emulated_target("n1", folder_, "libnvidia-ml.so.1");
  EXPECT_EQ(node.nvidia_smi, "");
  EXPECT_EQ(node.kernel_log, "");
}

TEST_F(Probes, TellWhatTheKernelsLogSaysOfGpus) {
  ProbeTarget node = emulated("n1");
  node.kernel_log = folder_ + "/kmsg";
  ASSERT_EQ(mkfifo(node.kernel_log.c_str(), 0600), 0);
  start();
  runner_->watch(node);
  os::Descriptor log;
  ASSERT_TRUE(os::eventually([&] {
    log.reset(::open(node.kernel_log.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return log.is_open();
  })) << "a probe reads it";
  const std::string record =
      "3,7,1,-;NVRM: Xid (PCI:0000:1b:00): 63, pid=9, name=a, Row Remapper: New row\n";

  ASSERT_EQ(::write(log.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));

  const auto told = reports_.wait_for<ProbeKernelLog>("n1", seen_);
  ASSERT_TRUE(told);
  ASSERT_EQ(told->lines.size(), 1U);
  EXPECT_EQ(told->lines[0].code, 63U);
  EXPECT_EQ(told->lines[0].place, "00000000:1b:00");
  EXPECT_EQ(told->problem, "");
}

TEST_F(Probes, SayOnceThatTheKernelsLogMayNotBeRead) {
  ProbeTarget node = emulated("n1");
  node.kernel_log = folder_ + "/none";
  start();
  runner_->watch(node);

  const auto told = reports_.wait_for<ProbeKernelLog>("n1", seen_);

  ASSERT_TRUE(told);
  EXPECT_NE(told->problem.find("/none"), std::string::npos) << told->problem;
  EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_)) << "it goes on";
}

TEST_F(Probes, TellOfBothWhereNvidiaSmiFailsToo) {
  ProbeTarget node = target("/nonexistent/libnvidia-ml.so.1");
  node.nvidia_smi = folder_ + "/nvidia-smi";
  std::ofstream(node.nvidia_smi) << "#!/bin/sh\necho no devices were found\nexit 6\n";
  ASSERT_EQ(chmod(node.nvidia_smi.c_str(), 0700), 0);
  start();
  runner_->watch(node);

  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(inventory && inventory->problem);
  EXPECT_EQ(inventory->problem->kind, ProblemKind::kNoLibrary);
  EXPECT_NE(inventory->problem->message.find("no devices were found"), std::string::npos)
      << inventory->problem->message;
}

// A stopped process stands for one that is stuck in the kernel: SIGTERM does not reach it either.
TEST_F(Probes, ThatHangDoNotHoldUpOthers) {
  fall_silent_soon();
  start();
  runner_->watch(emulated("n1"));
  runner_->watch(emulated("n2"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  pid_t first = 0;
  wait_for_status([&](const ProbeStatus& status) {
    if (status.node_name == "n1") first = status.pid;
    return first != 0;
  });

  ASSERT_EQ(kill(first, SIGSTOP), 0);
  std::size_t from = reports_.count();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n2", from));
  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_TRUE(reports_.wait_for<Inventory>("n1", seen_)) << "another probe took over";
}

TEST_F(Probes, ReportAMachineWithoutADriverAsOneWithoutGpus) {
  start();
  runner_->watch(target("/nonexistent/libnvidia-ml.so.1"));

  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);
  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(inventory);
  ASSERT_TRUE(inventory->problem);
  EXPECT_EQ(inventory->problem->kind, ProblemKind::kNoLibrary);
  EXPECT_FALSE(inventory->host.cpus.empty());
  ASSERT_TRUE(readings) << "the sign of life";
  EXPECT_TRUE(readings->gpus.empty());
}

TEST_F(Probes, TellWhyADriverRefuses) {
  const std::tuple<const char*, const char*, ProblemKind, const char*> cases[] = {
      {"FAKE_NVML_INIT=9", FAKE_NVML, ProblemKind::kNoDriver, "kernel module is not loaded"},
      {"FAKE_NVML_INIT=4", FAKE_NVML, ProblemKind::kNoPermission, "no permission"},
      {"FAKE_NVML_INIT=18", FAKE_NVML, ProblemKind::kDriverMismatch, "different versions"},
      {"FAKE_NVML_COUNT=0", FAKE_NVML, ProblemKind::kNoGpu, "reports no GPU"},
      {"A=B", "libm.so.6", ProblemKind::kNotNvml, "is not NVML"},
  };
  start();
  for (const auto& [environment, library, kind, words] : cases) {
    ProbeTarget node = target(library, {environment});
    node.node_name = environment;
    runner_->watch(node);
  }
  for (const auto& [environment, library, kind, words] : cases) {
    std::size_t from = 0;
    const auto inventory = reports_.wait_for<Inventory>(environment, from);
    ASSERT_TRUE(inventory && inventory->problem) << environment;
    EXPECT_EQ(inventory->problem->kind, kind) << environment;
    EXPECT_NE(inventory->problem->message.find(words), std::string::npos)
        << inventory->problem->message;
    EXPECT_TRUE(reports_.wait_for<ProbeReadings>(environment, from)) << "the sign of life";
  }
}

TEST_F(Probes, ReportALostGpuAndTheOthersAsTheyAre) {
  start();
  runner_->watch(target(FAKE_NVML, {"FAKE_NVML_LOST=1"}));

  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(readings);
  ASSERT_EQ(readings->gpus.size(), 2u);
  EXPECT_EQ(readings->gpus[0].condition, hardware::GpuCondition::kAnswering);
  EXPECT_EQ(readings->gpus[1].condition, hardware::GpuCondition::kLost);
}

TEST_F(Probes, SayThatTheHostsDescriptionIsMissing) {
  ProbeTarget broken = emulated("n1");
  broken.host_description = folder_ + "/nothing.json";
  start();
  runner_->watch(broken);

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kCannotRead);
  EXPECT_NE(problem->message.find("nothing.json"), std::string::npos) << problem->message;
}

TEST_F(Probes, ThatCannotBeStartedAreReported) {
  options_.executable = folder_ + "/no-such-probe";
  start();
  runner_->watch(target("libnvidia-ml.so.1"));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kCannotStart);
}

// A program that speaks nonsense in the probe's place.
TEST_F(Probes, ThatSpeakNonsenseAreEnded) {
  options_.executable = folder_ + "/nonsense";
  std::ofstream(options_.executable) << "#!/bin/sh\nprintf '\\377\\377' >&3\nread line <&3\n";
  ASSERT_EQ(chmod(options_.executable.c_str(), 0700), 0);
  start();
  runner_->watch(target("libnvidia-ml.so.1"));

  const auto nonsense = reports_.wait_for<ProbeProblem>("n1", seen_);
  const auto ended = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(nonsense);
  EXPECT_EQ(nonsense->trouble, ProbeTrouble::kCannotRead);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->trouble, ProbeTrouble::kDied);
}

TEST_F(Probes, EndWithTheRunner) {
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  const ProbeStatus status = wait_for_status([](const ProbeStatus& now) { return now.pid != 0; });

  runner_.reset();

  EXPECT_NE(kill(status.pid, 0), 0);
}

TEST_F(Probes, OfOneNodeAreStartedOnce) {
  start();
  const ProbeTarget node = emulated("n1");
  runner_->watch(node);
  runner_->watch(node);
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  EXPECT_EQ(runner_->status().size(), 1u);
}

}  // namespace
}  // namespace gpu_platform::node
