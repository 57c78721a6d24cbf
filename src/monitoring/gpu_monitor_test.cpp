#include "monitoring/gpu_monitor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "model/policy.h"

namespace gpu_platform::monitoring {
namespace {

constexpr std::uint32_t kNoSuchPid = 0x7fffffff;

class GpuMonitorTest : public ::testing::Test, public execution::ObservationSink {
 protected:
  GpuMonitorTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(1);
    node.gpus[0].info.uuid = "a";
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
  }

  // The GPU is held by job 7, whose first process is `pid`.
  void give_to_job(std::uint64_t pid) {
    model::Node node = *snapshot_->nodes.find(1);
    node.gpus[0].holders = {{{model::JobId(7), 1}, base::kWholeGpu, {}}};
    snapshot_->nodes.put(1, node);
    model::Job job;
    job.id = model::JobId(7);
    job.spec = std::make_shared<const model::JobSpec>();
    job.attempts.resize(1);
    job.attempts[0].number = 1;
    job.attempts[0].pid = pid;
    snapshot_->jobs.put(7, job);
  }

  void observe(execution::Observation observation) override {
    const auto& seen = std::get<execution::UnmanagedProcessesObserved>(observation);
    told_.push_back(seen.text);
    loads_.push_back(seen.load);
  }

  void raise(std::vector<std::uint64_t> xids) {
    node::ProbeEvents events;
    for (const std::uint64_t xid : xids) {
      events.events.push_back({0, "a", hardware::GpuEventKind::kXid, 8, xid, {}, 1});
    }
    monitor_.take_events(events);
  }

  void state_says(const std::string& unmanaged_processes) {
    model::Node node = *snapshot_->nodes.find(1);
    node.gpus[0].unmanaged_processes = unmanaged_processes;
    snapshot_->nodes.put(1, node);
  }

  void place_by_load() {
    auto policy = std::make_shared<model::Policy>();
    policy->load_rules.is_on = true;
    snapshot_->policy = policy;
  }

  // Each process has `memory` of the GPU.
  SeenProcesses read(std::vector<std::uint32_t> pids, base::Bytes memory = base::kMiB) {
    return read_by(monitor_, std::move(pids), memory);
  }
  static SeenProcesses read_by(GpuMonitor& monitor, std::vector<std::uint32_t> pids,
                               base::Bytes memory = base::kMiB) {
    node::ProbeReadings readings;
    hardware::GpuReading gpu;
    gpu.memory_total = base::kGiB * 80;
    gpu.memory_used = memory * static_cast<std::int64_t>(pids.size());
    gpu.utilization_percent = 40;
    gpu.throttle_reasons = model::kThrottlePowerCap | model::kThrottleIdle;
    gpu.memory_temperature_c = 17;
    gpu.slow.emplace().retired_pages_corrected = 3;
    gpu.processes.emplace();
    for (const std::uint32_t pid : pids) gpu.processes->push_back({pid, memory});
    readings.gpus.push_back(gpu);
    return monitor.take_readings("n1", {"a"}, readings);
  }

  const std::uint32_t own_ = static_cast<std::uint32_t>(getpid());
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::vector<std::string> told_;
  std::vector<std::optional<model::GpuLoad>> loads_;  // as told_
  host::UserDirectory users_;
  GpuMonitor monitor_{*this, [this] { return snapshot_; }, "", users_};
};

TEST_F(GpuMonitorTest, KeepsTheLatestReading) {
  EXPECT_EQ(monitor_.latest("a"), nullptr);
  read({});
  const auto reading = monitor_.latest("a");
  ASSERT_NE(reading, nullptr);
  EXPECT_EQ(reading->utilization_percent, 40U);
  EXPECT_EQ(reading->throttle_reasons, model::kThrottlePowerCap | model::kThrottleIdle);
  EXPECT_EQ(reading->memory_temperature_c, 17) << "every metric is kept";
  EXPECT_EQ(reading->slow->retired_pages_corrected, 3U);
  EXPECT_EQ(monitor_.nodes_older_than(std::chrono::hours(1)), std::vector<std::string>{});
}

TEST_F(GpuMonitorTest, KnowsTheLimitsFromTheInventory) {
  hardware::Inventory inventory;
  inventory.gpus.resize(1);
  inventory.gpus[0].uuid = "a";
  inventory.gpus[0].power_limit = base::Milliwatts(700'000);
  inventory.gpus[0].slowdown_c = 87;
  monitor_.take_inventory(inventory);
  read({});
  EXPECT_EQ(monitor_.latest("a")->power_limit, base::Milliwatts(700'000));
  EXPECT_EQ(monitor_.latest("a")->slowdown_c, 87);
  monitor_.take_power_limit("a", base::Milliwatts(500'000));
  read({});
  EXPECT_EQ(monitor_.latest("a")->power_limit, base::Milliwatts(500'000)) << "it was set since";
}

TEST_F(GpuMonitorTest, KeepsTheLatestThatWasReadOfTheHost) {
  EXPECT_EQ(monitor_.latest_host("n1"), nullptr);
  node::ProbeReadings readings;
  readings.host.emplace().cpu_percent = 12;
  monitor_.take_readings("n1", {}, readings);
  read({});
  ASSERT_NE(monitor_.latest_host("n1"), nullptr) << "not each reading has it";
  EXPECT_EQ(monitor_.latest_host("n1")->cpu_percent, 12U);
  EXPECT_EQ(monitor_.latest_host("n2"), nullptr);
}

TEST_F(GpuMonitorTest, ForgetsAHostThatHasGone) {
  node::ProbeReadings readings;
  readings.host.emplace().cpu_percent = 12;
  monitor_.take_readings("n1", {}, readings);
  const auto now = std::chrono::steady_clock::now();
  monitor_.forget_gpus_before(now - std::chrono::hours(1));
  EXPECT_NE(monitor_.latest_host("n1"), nullptr);
  monitor_.forget_gpus_before(now + std::chrono::hours(1));
  EXPECT_EQ(monitor_.latest_host("n1"), nullptr);
  EXPECT_TRUE(monitor_.nodes_older_than(std::chrono::milliseconds(-1)).empty());
}

TEST_F(GpuMonitorTest, ForgetsAGpuOfWhichNothingWasHeardForLong) {
  read({});
  raise({79});
  const auto now = std::chrono::steady_clock::now();
  monitor_.forget_gpus_before(now - std::chrono::hours(1));
  EXPECT_NE(monitor_.latest("a"), nullptr);
  monitor_.forget_gpus_before(now + std::chrono::hours(1));
  EXPECT_EQ(monitor_.latest("a"), nullptr);
  read({});
  ASSERT_NE(monitor_.latest("a"), nullptr);
  EXPECT_TRUE(monitor_.latest("a")->xids.empty());
}

TEST_F(GpuMonitorTest, TellsTheEndOfUnmanagedProcessesAlsoOfAGpuThatWasForgotten) {
  read({own_});
  read({own_});
  ASSERT_EQ(told_.size(), 1U);
  monitor_.forget_gpus_before(std::chrono::steady_clock::now() + std::chrono::hours(1));
  read({});
  EXPECT_EQ(told_, (std::vector<std::string>{told_[0], ""}));
}

TEST_F(GpuMonitorTest, AnUnmanagedProcessIsToldWhenItStaysAndWhenItIsGone) {
  read({own_});
  EXPECT_TRUE(told_.empty()) << "one reading may catch a job that is just starting";
  read({own_});
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NE(told_[0].find("pid " + std::to_string(own_)), std::string::npos) << told_[0];
  read({own_});
  EXPECT_EQ(told_.size(), 1U) << "told once";
  read({});
  EXPECT_EQ(told_, (std::vector<std::string>{told_[0], ""}));
}

TEST_F(GpuMonitorTest, TellsTheEndOfProcessesThatAnEarlierDaemonHasTold) {
  state_says("pid 7 of bob");
  read({});
  EXPECT_TRUE(told_.empty()) << "one reading may have missed it";
  read({});
  EXPECT_EQ(told_, std::vector<std::string>{""});
}

TEST_F(GpuMonitorTest, DoesNotTellAgainWhatAnEarlierDaemonHasTold) {
  read({own_});
  read({own_});
  ASSERT_EQ(told_.size(), 1U);
  state_says(told_[0]);
  GpuMonitor next(*this, [this] { return snapshot_; }, "", users_);
  read_by(next, {own_});
  read_by(next, {own_});
  EXPECT_EQ(told_.size(), 1U);
  read_by(next, {});
  EXPECT_EQ(told_, (std::vector<std::string>{told_[0], ""}));
}

TEST_F(GpuMonitorTest, TellsProcessesWhenTheSiteDoesNotIgnoreThemAnyMore) {
  auto policy = std::make_shared<model::Policy>();
  policy->unmanaged_processes = model::UnmanagedProcessPolicy::kIgnore;
  snapshot_->policy = policy;
  read({own_});
  read({own_});
  EXPECT_TRUE(told_.empty());
  snapshot_->policy = std::make_shared<model::Policy>();
  read({own_});
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(GpuMonitorTest, TellsAProcessThatWasThereBeforeTheStateKnewItsGpu) {
  const model::Node node = *snapshot_->nodes.find(1);
  model::Node bare = node;
  bare.gpus.clear();
  snapshot_->nodes.put(1, bare);
  read({own_});
  read({own_});
  EXPECT_TRUE(told_.empty()) << "the core would not take it";
  snapshot_->nodes.put(1, node);
  read({own_});
  read({own_});
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(GpuMonitorTest, AProcessOfTheJobThatHoldsTheGpuIsNone) {
  give_to_job(own_);
  read({own_});
  read({own_});
  EXPECT_TRUE(told_.empty());
  const auto reading = monitor_.latest("a");
  ASSERT_EQ(reading->processes.size(), 1U);
  EXPECT_EQ(reading->processes[0].job, model::JobId(7));
  EXPECT_FALSE(reading->processes[0].is_unmanaged);
}

TEST_F(GpuMonitorTest, AnEndedProcessIsItsJobsWhileAJobHoldsTheGpu) {
  give_to_job(own_);
  read({kNoSuchPid});
  read({kNoSuchPid});
  EXPECT_TRUE(told_.empty());
  model::Node node = *snapshot_->nodes.find(1);
  node.gpus[0].holders.clear();
  snapshot_->nodes.put(1, node);
  read({kNoSuchPid});
  read({kNoSuchPid});
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(GpuMonitorTest, RemembersTheOwnerOfAProcessThatHasEnded) {
  give_to_job(own_);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto pid = static_cast<std::uint32_t>(child);
  const model::AttemptId owner{model::JobId(7), 1};
  EXPECT_EQ(read({pid}).at("a"), (std::vector<SeenProcess>{{pid, false, owner}}));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(read({pid}).at("a"), (std::vector<SeenProcess>{{pid, true, owner}}));
  EXPECT_EQ(read({kNoSuchPid}).at("a"), (std::vector<SeenProcess>{{kNoSuchPid, true, {}}}))
      << "never seen alive";
}

TEST_F(GpuMonitorTest, ProcessesOfEachJobOnTheGpuAreManagedAndItsOwn) {
  give_to_job(own_);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto pid = static_cast<std::uint32_t>(child);
  model::Node node = *snapshot_->nodes.find(1);
  node.gpus[0].holders.push_back({{model::JobId(8), 1}, base::GpuShare(3500), {}});
  snapshot_->nodes.put(1, node);
  model::Job second = *snapshot_->jobs.find(7);
  second.id = model::JobId(8);
  second.attempts[0].pid = pid;
  snapshot_->jobs.put(8, second);
  read({own_, pid});
  read({own_, pid});
  EXPECT_TRUE(told_.empty()) << "neither is unmanaged";
  const auto reading = monitor_.latest("a");
  ASSERT_EQ(reading->processes.size(), 2U);
  EXPECT_EQ(reading->processes[0].job, model::JobId(7));
  EXPECT_EQ(reading->processes[1].job, model::JobId(8));
  EXPECT_EQ(monitor_.owner_of("a", pid), (model::AttemptId{model::JobId(8), 1}));
  EXPECT_EQ(monitor_.owner_of("a", kNoSuchPid), std::nullopt);
  EXPECT_EQ(monitor_.owner_of("b", pid), std::nullopt);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(GpuMonitorTest, TellsTheLoadOfOthersWhereJobsArePlacedByLoad) {
  read({own_}, base::kGiB * 20);
  read({own_}, base::kGiB * 20);
  EXPECT_EQ(loads_, std::vector<std::optional<model::GpuLoad>>{std::nullopt}) << "they are not";
  place_by_load();
  read({own_}, base::kGiB * 20);
  ASSERT_EQ(loads_.size(), 2U);
  EXPECT_EQ(loads_.back(), (model::GpuLoad{40, base::kGiB * 60}));
  read({own_}, base::kGiB * 20);
  EXPECT_EQ(loads_.size(), 2U) << "told once";
  read({own_}, base::kGiB * 50);
  ASSERT_EQ(loads_.size(), 3U);
  EXPECT_EQ(loads_.back(), (model::GpuLoad{40, base::kGiB * 30}));
  read({});
  ASSERT_EQ(loads_.size(), 4U);
  EXPECT_EQ(loads_.back(), std::nullopt);
}

// The next job must not get it for memory that was free before this one.
TEST_F(GpuMonitorTest, KnowsTheMemoryThatOthersTakeWhileAJobHoldsTheGpu) {
  place_by_load();
  read({});
  give_to_job(kNoSuchPid);
  read({own_}, base::kGiB * 50);
  read({own_}, base::kGiB * 50);
  ASSERT_EQ(loads_.size(), 1U);
  ASSERT_TRUE(loads_.back());
  EXPECT_EQ(loads_.back()->memory_free, base::kGiB * 30);
}

TEST_F(GpuMonitorTest, KeepsAFewXidsNewestFirst) {
  read({});
  for (std::uint64_t xid = 1; xid <= 40; ++xid) {
    raise({xid});
  }
  const auto reading = monitor_.latest("a");
  ASSERT_EQ(reading->xids.size(), 16U);
  EXPECT_EQ(reading->xids.front().xid, 40U);
  read({});
  EXPECT_EQ(monitor_.latest("a")->xids.size(), 16U) << "a reading does not forget them";
  raise({40, 40});
  EXPECT_EQ(monitor_.latest("a")->xid_counts.at(1), 1U) << "all of them are counted";
  EXPECT_EQ(monitor_.latest("a")->xid_counts.at(40), 3U);
}

}  // namespace
}  // namespace gpu_platform::monitoring
