#include "monitoring/release_gate.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controller/snapshot.h"

namespace gpu_platform::monitoring {
namespace {

using base::kMiB;
using model::AttemptId;
using model::JobId;

constexpr std::uint32_t kFreePid = 0x7fffffff;

std::int64_t boot_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A node with two GPUs, "a" and "b"; job 1 has both, job 2 none.
std::shared_ptr<const controller::Snapshot> snapshot() {
  auto made = std::make_shared<controller::Snapshot>();
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  for (const char* uuid : {"a", "b"}) {
    model::Gpu gpu;
    gpu.info.uuid = uuid;
    node.gpus.push_back(gpu);
  }
  made->nodes.put(1, node);
  for (const std::uint64_t id : {1, 2}) {
    model::Job job;
    job.id = JobId(id);
    job.spec = std::make_shared<const model::JobSpec>();
    model::Attempt attempt;
    attempt.number = 1;
    attempt.allocation.nodes.push_back({model::NodeId(1), {}, 1, {}});
    if (id == 1) attempt.allocation.nodes[0].grants = {{.gpu_index = 0}, {.gpu_index = 1}};
    job.attempts.push_back(attempt);
    made->jobs.put(id, job);
  }
  return made;
}

class ReleaseGateTest : public ::testing::Test, public execution::ObservationSink {
 protected:
  void observe(execution::Observation observation) override {
    if (const auto* cleaned = std::get_if<execution::Cleaned>(&observation)) {
      released_.push_back(cleaned->attempt);
    }
  }

  void clean(std::uint64_t job) { gate_.observe(execution::Cleaned{{JobId(job), 1}}); }

  // Each GPU with the pids on it and the memory in use.
  void read(std::vector<std::vector<std::uint32_t>> pids, std::int64_t mib = 0,
            std::int64_t began_ns = boot_clock_ns()) {
    node::ProbeReadings readings;
    readings.began_ns = began_ns;
    for (std::uint32_t i = 0; i < pids.size(); ++i) {
      hardware::GpuReading gpu;
      gpu.index = i;
      gpu.memory_used = kMiB * mib;
      gpu.processes.emplace();
      for (const std::uint32_t pid : pids[i]) gpu.processes->push_back({pid, {}});
      readings.gpus.push_back(gpu);
    }
    gate_.take_readings("n1", {"a", "b"}, readings);
  }

  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  void note(const std::vector<std::string>& uuids) {
    const std::lock_guard lock(mutex_);
    asked_ = uuids;
  }

  std::vector<AttemptId> released_;
  std::mutex mutex_;  // over what the gate's thread writes
  std::vector<std::string> asked_;
  ReleaseGate gate_{*this, [] { return snapshot(); },
                    [this](const std::string&, const auto& uuids) { note(uuids); },
                    [](const std::string&) {}};
};

TEST_F(ReleaseGateTest, AnAttemptWithoutGpusPassesAtOnce) {
  clean(2);
  EXPECT_EQ(released_, (std::vector{AttemptId{JobId(2), 1}}));
}

TEST_F(ReleaseGateTest, GpusComeFreeWithAReadingThatShowsThemEmpty) {
  clean(1);
  EXPECT_TRUE(released_.empty());
  read({{}, {}});
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(ReleaseGateTest, AsksForItsGpusAtOnceAndBelievesNothingOfOthers) {
  clean(1);
  EXPECT_EQ(asked(), (std::vector<std::string>{"a", "b"}));
  node::ProbeReadings of_one;
  of_one.is_partial = true;
  of_one.began_ns = boot_clock_ns();
  of_one.gpus.emplace_back().processes.emplace();
  gate_.take_readings("n1", {"a", "b"}, of_one);
  EXPECT_TRUE(released_.empty()) << "b has no reading yet";
  of_one.gpus[0].index = 1;
  gate_.take_readings("n1", {"a", "b"}, of_one);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(ReleaseGateTest, AReadingThatBeganBeforeTheEndProvesNothing) {
  const std::int64_t before = boot_clock_ns();
  clean(1);
  read({{}, {}}, 0, before);
  EXPECT_TRUE(released_.empty());
}

TEST_F(ReleaseGateTest, AnEntryWhoseProcessHasEndedHoldsTheGpuBack) {
  clean(1);
  read({{}, {kFreePid}});
  EXPECT_TRUE(released_.empty());
  read({{}, {}});
  EXPECT_EQ(released_.size(), 1U) << "told once";
}

TEST_F(ReleaseGateTest, ALivingProcessOfAnotherJobDoesNot) {
  clean(1);
  read({{static_cast<std::uint32_t>(getpid())}, {}}, 5000);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(ReleaseGateTest, MemoryInUseByNoProcessHoldsTheGpuBack) {
  read({{}, {}}, 3);
  clean(1);
  read({{}, {}}, 500);
  EXPECT_TRUE(released_.empty());
  read({{}, {}}, 4);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(ReleaseGateTest, AGpuThatItsDriverDoesNotSpeakOfIsNotWaitedFor) {
  clean(1);
  node::ProbeReadings readings;
  readings.began_ns = boot_clock_ns();
  hardware::GpuReading lost;
  lost.condition = hardware::GpuCondition::kLost;
  readings.gpus.push_back(lost);  // "b" is missing altogether
  gate_.take_readings("n1", {"a", "b"}, readings);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(ReleaseGateTest, OtherNewsPassAtOnce) {
  gate_.observe(execution::NodeUnreachable{"n1", "gone"});
  gate_.observe(execution::Cleaned{{JobId(99), 1}});
  EXPECT_EQ(released_.size(), 1U) << "of a job that the core does not have";
}

}  // namespace
}  // namespace gpu_platform::monitoring
