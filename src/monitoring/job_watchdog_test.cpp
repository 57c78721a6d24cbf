#include "monitoring/job_watchdog.h"

#include <gtest/gtest.h>

#include <vector>

#include "host/user_directory.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::monitoring {
namespace {

// Job 7 holds both GPUs of node n1. Its hang timeout is over at once, so that no test waits.
class JobWatchdogTest : public ::testing::Test,
                        public execution::ObservationSink,
                        public node::ProbeListener {
 protected:
  JobWatchdogTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(2);
    node.gpus[0].info.uuid = "a";
    node.gpus[1].info.uuid = "b";
    for (model::Gpu& gpu : node.gpus) {
      gpu.holders = {{{model::JobId(7), 1}, base::kWholeGpu, {}}};
    }
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
    put_job(model::AttemptState::kRunning, base::nanoseconds(1));
  }

  void put_job(model::AttemptState state, base::Duration timeout) {
    model::JobSpec spec;
    spec.name = "train";
    spec.user = "ada";
    spec.hang_timeout = timeout;
    model::Job job;
    job.id = model::JobId(7);
    job.spec = std::make_shared<const model::JobSpec>(spec);
    job.attempts.resize(1);
    job.attempts[0].number = 1;
    job.attempts[0].state = state;
    model::NodeAllocation part{.node = model::NodeId(1)};
    part.grants = {{0, base::kWholeGpu, {}}, {1, base::kWholeGpu, {}}};
    job.attempts[0].allocation.nodes = {part};
    snapshot_->jobs.put(7, job);
  }

  void observe(execution::Observation observation) override {
    if (auto* seen = std::get_if<execution::EvidenceObserved>(&observation)) {
      told_.push_back(std::move(*seen));
    }
  }
  // As the observer of nodes.
  void on_report(node::ProbeReport report) override {
    ++passed_on_;
    if (const auto* readings = std::get_if<node::ProbeReadings>(&report.content)) {
      monitor_.take_readings(report.node_name, {"a", "b"}, *readings);
    }
  }

  void read(std::uint32_t first, std::uint32_t second, bool is_partial = false) {
    node::ProbeReadings readings;
    readings.is_partial = is_partial;
    for (const std::uint32_t utilization : {first, second}) {
      hardware::GpuReading gpu;
      gpu.index = static_cast<std::uint32_t>(readings.gpus.size());
      gpu.utilization_percent = utilization;
      readings.gpus.push_back(gpu);
    }
    watchdog_.on_report({"n1", false, readings});
  }

  host::UserDirectory users_;
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  GpuMonitor monitor_{*this, [this] { return snapshot_; }, "", users_};
  std::optional<std::uint64_t> output_ = 1;
  JobWatchdog watchdog_{*this, *this, [this] { return snapshot_; }, monitor_,
                        [this](model::AttemptId) { return output_; }};
  std::vector<execution::EvidenceObserved> told_;
  int passed_on_ = 0;
};

TEST_F(JobWatchdogTest, TellsOfEachGpuOfAJobThatHangs) {
  read(0, 0);
  EXPECT_TRUE(told_.empty()) << "nothing is known of the time before";
  read(0, 0);
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[0].node_name, "n1");
  EXPECT_EQ(told_[0].gpu_uuid, "a");
  EXPECT_EQ(told_[1].gpu_uuid, "b");
  EXPECT_EQ(told_[0].evidence.kind, model::EvidenceKind::kJobHung);
  EXPECT_EQ(told_[0].evidence.job, model::JobId(7));
  EXPECT_EQ(told_[0].evidence.user, "ada");
  EXPECT_EQ(told_[0].evidence.program, "train");
  EXPECT_EQ(passed_on_, 2);
}

TEST_F(JobWatchdogTest, AJobThatWorksOrPrintsDoesNotHang) {
  read(0, 0);
  read(0, 30);
  EXPECT_TRUE(told_.empty());
  output_ = 2;
  read(0, 0);
  EXPECT_TRUE(told_.empty());
}

TEST_F(JobWatchdogTest, NoOtherJobIsWatched) {
  put_job(model::AttemptState::kRunning, base::Duration());
  read(0, 0);
  read(0, 0);
  put_job(model::AttemptState::kStopping, base::nanoseconds(1));
  read(0, 0);
  read(0, 0);
  EXPECT_TRUE(told_.empty());
}

TEST_F(JobWatchdogTest, ReadingsBetweenTheIntervalsDoNotCount) {
  read(0, 0, true);
  read(0, 0, true);
  EXPECT_TRUE(told_.empty());
}

// Frozen, it cannot use its GPU: of an hour it is awake for its share, or longer.
TEST(HangTimeout, IsLongerForAJobThatTakesTurns) {
  constexpr base::Duration kHour = base::minutes(60);
  model::GpuHolder quarter{{model::JobId(7), 1}, base::GpuShare(1750), {}};
  EXPECT_EQ(hang_timeout_on_clock(kHour, quarter), kHour) << "it is never frozen";
  quarter.mode = model::ShareMode::kMps;
  EXPECT_EQ(hang_timeout_on_clock(kHour, quarter), kHour);
  quarter.mode = model::ShareMode::kTimeSlice;
  // Rounded down by less than a whole GPU's thousandths, in nanoseconds.
  const base::Duration on_clock = hang_timeout_on_clock(kHour, quarter);
  EXPECT_LE(on_clock, kHour * 4);
  EXPECT_GE(on_clock, kHour * 4 - base::milliseconds(1));
  quarter.share = base::GpuShare(1);
  EXPECT_GT(hang_timeout_on_clock(base::minutes(60 * 24 * 10'000), quarter), kHour) << "or ever";
}

TEST(OutputMark, IsUnknownWithoutAFile) {
  EXPECT_EQ(output_mark_of("/nowhere/at/all"), std::nullopt);
  EXPECT_NE(output_mark_of("/proc/self/exe"), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::monitoring
