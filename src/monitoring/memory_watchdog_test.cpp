#include "monitoring/memory_watchdog.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "os/clock.h"
#include "os/testing/eventually.h"

namespace gpu_platform::monitoring {
namespace {

using base::kGiB;
using model::AttemptId;
using model::EndReason;
using model::JobId;

constexpr AttemptId kGreedyJob{JobId(1), 1};
constexpr AttemptId kNeighbour{JobId(2), 1};

// GPU "a" of node n1 has 80 GiB; jobs 1 and 2 have a part of it with 20 GiB each. Job 3 has all of
// GPU "b".
class MemoryWatchdogTest : public ::testing::Test, public execution::ObservationSink {
 protected:
  MemoryWatchdogTest() { publish(model::Rung::kWatchdog); }

  void publish(model::Rung memory_wall) {
    auto made = std::make_shared<controller::Snapshot>();
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(2);
    node.gpus[0].info.uuid = "a";
    node.gpus[1].info.uuid = "b";
    for (const std::uint64_t id : {1, 2, 3}) {
      model::GpuGrant grant{.gpu_index = id == 3 ? 1U : 0U};
      grant.memory = id == 3 ? kGiB * 80 : kGiB * 20;
      if (id != 3) {
        grant.mode = model::ShareMode::kTimeSlice;
        grant.wall = {memory_wall, model::Rung::kFrozen};
      }
      model::Job job;
      job.id = JobId(id);
      job.spec = std::make_shared<const model::JobSpec>();
      job.attempts.resize(1);
      job.attempts[0].number = 1;
      model::NodeAllocation part{.node = model::NodeId(1)};
      part.grants = {grant};
      job.attempts[0].allocation.nodes = {part};
      made->jobs.put(id, job);
      model::GpuHolder& holder = node.gpus[grant.gpu_index].holders.emplace_back();
      holder.attempt = {JobId(id), 1};
      holder.mode = grant.mode;
    }
    made->nodes.put(1, node);
    made->nodes_by_name = model::nodes_by_name(made->nodes);
    snapshot_ = std::move(made);
  }

  void observe(execution::Observation observation) override {
    exceeded_.push_back(std::get<execution::GpuMemoryExceeded>(observation));
    execution::Ended ended;  // as the gate, which may pass an end at any time
    ended.attempt = exceeded_.back().attempt;
    watchdog_.complete(ended);
  }

  // GiB that the jobs' processes use.
  void read(std::int64_t first, std::int64_t second) {
    node::ProbeReadings readings;
    readings.began_ns = os::boot_ns() + advance_ns_;
    hardware::GpuReading gpu;
    gpu.memory_total = kGiB * 80;
    gpu.memory_used = kGiB * (first + second);
    gpu.memory_reserved = kGiB;
    gpu.utilization_percent = utilization_;
    gpu.processes.emplace();
    gpu.processes->push_back({.pid = 11, .memory = kGiB * first});
    gpu.processes->push_back({.pid = 12, .memory = kGiB * second});
    gpu.processes->push_back({.pid = 14, .memory = kGiB * server_});
    readings.gpus.push_back(gpu);
    hardware::GpuReading other;
    other.index = 1;
    other.utilization_percent = 0;
    other.processes.emplace();
    other.processes->push_back({.pid = 13, .memory = kGiB * 90});
    readings.gpus.push_back(other);
    watchdog_.take_readings(
        "n1", {"a", "b"}, readings,
        {{"a", {{11, false, kGreedyJob}, {12, false, kNeighbour}, {14, false, {}, true}}},
         {"b", {{13, false, {}}}}});
  }
  void pass(base::Duration time) { advance_ns_ += time.value(); }

  execution::Ended ended(AttemptId attempt, EndReason reason, std::uint8_t code) {
    execution::Ended end;
    end.attempt = attempt;
    end.reason = reason;
    end.exit.code = code;
    watchdog_.complete(end);
    return end;
  }
  std::size_t questions() {
    const std::lock_guard lock(mutex_);
    return asked_.size();
  }

  std::shared_ptr<const controller::Snapshot> snapshot_;
  std::vector<execution::GpuMemoryExceeded> exceeded_;
  std::vector<MemoryWatch::Excess> warned_;
  std::optional<std::uint32_t> utilization_;  // of GPU "a"
  std::vector<std::string> idle_;             // GPUs
  std::int64_t advance_ns_ = 0;
  std::int64_t server_ = 0;  // GiB that the MPS server of the jobs uses
  std::mutex mutex_;         // over what the watchdog's thread writes
  std::vector<std::pair<std::string, std::vector<std::string>>> asked_;
  MemoryWatchdog watchdog_{*this, [this] { return snapshot_; },
                           [this](const std::string& node, const node::ReadNow& wanted) {
                             const std::lock_guard lock(mutex_);
                             asked_.emplace_back(node, wanted.uuids);
                           },
                           [this](const MemoryWatch::Excess& excess) { warned_.push_back(excess); },
                           [this](const std::string& uuid) { idle_.push_back(uuid); }};
};

TEST_F(MemoryWatchdogTest, WarnsAndThenTellsTheCore) {
  read(19, 5);
  EXPECT_TRUE(warned_.empty());
  pass(base::seconds(1));
  read(23, 5);
  ASSERT_EQ(warned_.size(), 1U);
  EXPECT_EQ(warned_[0].attempt, kGreedyJob);
  EXPECT_TRUE(exceeded_.empty());
  pass(base::seconds(5));
  read(23, 5);
  ASSERT_EQ(exceeded_.size(), 1U);
  EXPECT_EQ(exceeded_[0],
            (execution::GpuMemoryExceeded{kGreedyJob, "n1", "a", kGiB * 23, kGiB * 20}));
  EXPECT_EQ(warned_.size(), 1U);
}

TEST_F(MemoryWatchdogTest, OnlyGpusWithSuchPartsAreReadMoreOften) {
  read(19, 5);
  EXPECT_TRUE(os::eventually([&] { return questions() > 0; }));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(asked_[0].first, "n1");
    EXPECT_EQ(asked_[0].second, std::vector<std::string>{"a"});
  }
}

TEST_F(MemoryWatchdogTest, AStrongerWallNeedsNoWatchdog) {
  publish(model::Rung::kDriverLimit);
  read(60, 5);
  pass(base::seconds(6));
  read(60, 5);
  EXPECT_TRUE(warned_.empty());
  EXPECT_TRUE(exceeded_.empty());
}

// Root's, which can leave its cgroup: as long as it does not, it is seen.
TEST_F(MemoryWatchdogTest, APartWithAnAdvisoryWallIsWatchedAllTheSame) {
  publish(model::Rung::kAdvisory);
  read(23, 5);
  EXPECT_EQ(warned_.size(), 1U);
}

// The limit of an MPS server is one for each process.
TEST_F(MemoryWatchdogTest, AnMpsLimitIsWatchedToo) {
  publish(model::Rung::kMpsLimit);
  read(60, 5);
  EXPECT_EQ(warned_.size(), 1U);
}

TEST_F(MemoryWatchdogTest, TheMemoryOfAnMpsServerIsNoJobs) {
  server_ = 40;
  read(19, 19);
  pass(base::seconds(6));
  read(19, 19);
  EXPECT_TRUE(warned_.empty());
  EXPECT_TRUE(exceeded_.empty());
}

TEST_F(MemoryWatchdogTest, TheReasonOfTheEndSaysHowMuchItUsed) {
  read(23, 5);
  EXPECT_EQ(ended(kGreedyJob, EndReason::kGpuMemory, 143).detail,
            "it used 23 GiB of the 20 GiB of its part");
  EXPECT_EQ(ended(kGreedyJob, EndReason::kNone, 1).detail, "");
  EXPECT_EQ(ended(kGreedyJob, EndReason::kNone, 1).neighbour_fault, "") << "it was over itself";
}

TEST_F(MemoryWatchdogTest, AFailureForWantOfMemoryIsTheNeighboursFault) {
  read(70, 5);
  EXPECT_EQ(ended(kNeighbour, EndReason::kNone, 1).neighbour_fault,
            "job 1 on the same GPU used 70 GiB of the 20 GiB of its part");
  EXPECT_EQ(ended(kNeighbour, EndReason::kNone, 0).neighbour_fault, "") << "it did well";
  EXPECT_EQ(ended(kNeighbour, EndReason::kTimeLimit, 1).neighbour_fault, "")
      << "the platform stopped it";
}

// GPU "b", which is idle, too, has one job alone.
TEST_F(MemoryWatchdogTest, AnIdleGpuIsToldOfWhereJobsTakeTurns) {
  pass(base::hours(1));  // no reading is old
  read(19, 5);
  EXPECT_TRUE(idle_.empty()) << "what it does is not known";
  utilization_ = 1;
  read(19, 5);
  EXPECT_TRUE(idle_.empty());
  utilization_ = 0;
  read(19, 5);
  EXPECT_EQ(idle_, std::vector<std::string>{"a"});
}

TEST_F(MemoryWatchdogTest, AnOldReadingSaysNothingOfTheTurnThatIsNow) {
  utilization_ = 0;
  pass(base::Duration() - MemoryWatchdog::kOldestIdle - base::milliseconds(1));
  read(19, 5);
  EXPECT_TRUE(idle_.empty());
}

TEST_F(MemoryWatchdogTest, AsksNothingAfterItsStop) {
  watchdog_.stop();
  read(23, 5);
  EXPECT_EQ(questions(), 0U);
}

}  // namespace
}  // namespace gpu_platform::monitoring
