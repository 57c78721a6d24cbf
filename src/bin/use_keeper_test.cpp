#include "bin/use_keeper.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/job_spec.h"

namespace gpu_platform::bin {
namespace {

using telemetry::Of;

class MemoryNotes final : public telemetry::Notes {
 public:
  void put(std::string name, std::string bytes) override {
    notes[std::move(name)] = std::move(bytes);
  }
  void remove(std::string name) override { notes.erase(name); }
  std::optional<std::string> get(const std::string& name) const override {
    const auto found = notes.find(name);
    return found == notes.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<Note> all(const std::string& prefix) const override {
    std::vector<Note> found;
    for (const auto& [name, bytes] : notes) {
      if (name.starts_with(prefix)) found.push_back({name, bytes});
    }
    return found;
  }

  std::map<std::string, std::string> notes;
};

base::Instant used_at(std::int64_t seconds) {
  return base::Instant() + base::seconds(1'000'000 + seconds);
}

class UseKeeperTest : public ::testing::Test {
 protected:
  UseKeeperTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    for (const char* uuid : {"GPU-a", "GPU-b"}) {
      model::Gpu gpu;
      gpu.info.uuid = uuid;
      gpu.info.model = "NVIDIA H100 80GB HBM3";
      gpu.info.memory = base::kGiB * 80;
      node.gpus.push_back(gpu);
    }
    snapshot_->nodes.put(1, node);
  }

  // A job that runs on the GPU of this index.
  static model::Job job_on(std::uint64_t id, std::uint32_t gpu, base::GpuShare share,
                           bool is_monitored = false) {
    model::Job job;
    job.id = model::JobId(id);
    model::JobSpec spec;
    spec.monitor = is_monitored;
    job.spec = std::make_shared<const model::JobSpec>(spec);
    model::Attempt attempt;
    attempt.number = 1;
    attempt.state = model::AttemptState::kRunning;
    attempt.started_at = used_at(0);
    model::NodeAllocation part;
    part.node = model::NodeId(1);
    part.grants.push_back({.gpu_index = gpu, .share = share, .memory = base::kGiB * 20});
    attempt.allocation.nodes.push_back(part);
    job.attempts.push_back(attempt);
    return job;
  }

  void publish(UseKeeper& keeper, const std::vector<model::Event>& events) {
    std::vector<model::EventRecord> records;
    for (const model::Event& event : events) records.push_back({{}, {}, event});
    keeper.published(snapshot_, records, controller::DepartedJobs(departed_));
  }
  void start(UseKeeper& keeper, const model::Job& job) {
    snapshot_->jobs.put(job.id.value, job);
    publish(keeper, {model::AttemptStarted{{job.id, 1}, 1, used_at(0)}});
  }
  static model::AttemptEnded ended(std::uint64_t job, std::int64_t second) {
    model::AttemptEnded event;
    event.attempt = {model::JobId(job), 1};
    event.ended_at = used_at(second);
    return event;
  }
  static model::AttemptReleased released(std::uint64_t job) { return {{model::JobId(job), 1}, {}}; }
  static void read(UseKeeper& keeper, Of of, const std::string& uuid, std::int64_t second,
                   std::int64_t utilization, std::uint64_t job = 0) {
    telemetry::Frame frame;
    frame.subject = {of, "n1", uuid, {model::JobId(job), job == 0 ? 0U : 1U}};
    frame.at = used_at(second);
    frame.values = {{*telemetry::metric_named(of, "utilization_percent"), utilization}};
    keeper.take(std::make_shared<const std::vector<telemetry::Frame>>(std::vector{frame}));
  }
  // GPU-a draws 600 W, and its counter of energy says this. `is_new`: it does so now.
  static void read_energy(UseKeeper& keeper, base::Instant now, std::int64_t millijoules,
                          bool is_new = true) {
    telemetry::Frame frame;
    frame.subject = {Of::kGpu, "n1", "GPU-a", {}};
    frame.at = now;
    frame.values = {{*telemetry::metric_named(Of::kGpu, "power_watts"), 600'000},
                    {*telemetry::metric_named(Of::kGpu, "energy_mj"), millijoules}};
    frame.is_energy_new = is_new;
    keeper.take(std::make_shared<const std::vector<telemetry::Frame>>(std::vector{frame}));
  }
  static telemetry::Energy energy(const UseKeeper& keeper, std::uint64_t job) {
    const auto use = keeper.brief({model::JobId(job), 1});
    return use && use->energy ? *use->energy : telemetry::Energy{-1};
  }
  static std::int64_t max_utilization(const UseKeeper& keeper, std::uint64_t job) {
    const auto use = keeper.get({model::JobId(job), 1});
    return use ? use->gpus.front().level("utilization_percent").max : -1;
  }

  const std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::vector<model::Job> departed_;
  MemoryNotes notes_;
};

TEST_F(UseKeeperTest, RecordsAnAttemptFromItsStartToItsEnd) {
  UseKeeper keeper(&notes_, base::seconds(5));
  read(keeper, Of::kGpu, "GPU-a", 0, 99);
  start(keeper, job_on(7, 0, base::kWholeGpu));
  EXPECT_FALSE(keeper.get({model::JobId(7), 1})) << "nothing was read of it yet";
  read(keeper, Of::kGpu, "GPU-a", 5, 40);
  read(keeper, Of::kGpu, "GPU-b", 5, 90);
  EXPECT_EQ(max_utilization(keeper, 7), 40);
  publish(keeper, {ended(7, 8)});
  read(keeper, Of::kGpu, "GPU-a", 10, 95);
  publish(keeper, {released(7)});
  const auto use = keeper.get({model::JobId(7), 1});
  ASSERT_TRUE(use);
  EXPECT_TRUE(use->is_over);
  EXPECT_EQ(use->duration(), base::seconds(8));
  EXPECT_EQ(use->interval, base::seconds(5));
  ASSERT_EQ(use->gpus.size(), 1U);
  EXPECT_EQ(use->gpus.front().uuid, "GPU-a");
  EXPECT_EQ(use->gpus.front().node, "n1");
  EXPECT_EQ(use->gpus.front().memory, base::kGiB * 80);
  EXPECT_EQ(use->gpus.front().level("utilization_percent").max, 40);
}

TEST_F(UseKeeperTest, ExpectsReadingsOfAClusterAtThePaceOfItsExporters) {
  model::Node node = *snapshot_->nodes.find(1);
  node.engine = model::EngineKind::kKubernetes;
  snapshot_->nodes.put(1, node);
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu, true));
  read(keeper, Of::kGpu, "GPU-a", 5, 40);
  ASSERT_TRUE(keeper.get({model::JobId(7), 1}));
  EXPECT_EQ(keeper.get({model::JobId(7), 1})->interval, base::seconds(15));
}

TEST_F(UseKeeperTest, GivesEachJobOfASharedGpuItsOwnUse) {
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::GpuShare(3500)));
  start(keeper, job_on(8, 0, base::GpuShare(3500)));
  read(keeper, Of::kGpu, "GPU-a", 5, 100);
  read(keeper, Of::kUse, "GPU-a", 5, 30, 7);
  read(keeper, Of::kUse, "GPU-a", 5, 70, 8);
  EXPECT_EQ(max_utilization(keeper, 7), 30);
  EXPECT_EQ(max_utilization(keeper, 8), 70);
  publish(keeper, {ended(7, 6)});
  read(keeper, Of::kUse, "GPU-a", 7, 99, 8);
  EXPECT_EQ(max_utilization(keeper, 7), 30);
  EXPECT_EQ(max_utilization(keeper, 8), 99);
}

TEST_F(UseKeeperTest, GoesOnAfterARestart) {
  {
    UseKeeper keeper(&notes_, base::seconds(5));
    start(keeper, job_on(7, 0, base::kWholeGpu));
    read(keeper, Of::kGpu, "GPU-a", 5, 40);
    keeper.save();
    EXPECT_EQ(notes_.notes.size(), 1U);
  }
  UseKeeper keeper(&notes_, base::seconds(5));
  keeper.follow(*snapshot_);
  EXPECT_EQ(max_utilization(keeper, 7), 40);
  read(keeper, Of::kGpu, "GPU-a", 10, 60);
  EXPECT_EQ(keeper.get({model::JobId(7), 1})->gpus.front().samples, 2U);
}

TEST_F(UseKeeperTest, BeginsAnewWhereTheNoteIsDamaged) {
  notes_.put("use/7.1", "no summary");
  snapshot_->jobs.put(7, job_on(7, 0, base::kWholeGpu));
  UseKeeper keeper(&notes_, base::seconds(5));
  keeper.follow(*snapshot_);
  read(keeper, Of::kGpu, "GPU-a", 5, 40);
  EXPECT_EQ(max_utilization(keeper, 7), 40);
}

TEST_F(UseKeeperTest, ForgetsJobsThatLeaveTheHistory) {
  UseKeeper keeper(&notes_, base::seconds(5));
  for (const std::uint64_t id : {7U, 71U}) {
    start(keeper, job_on(id, 0, base::kWholeGpu));
    read(keeper, Of::kGpu, "GPU-a", 5, 40);
    publish(keeper, {ended(id, 6), released(id)});
  }
  const std::vector<model::JobId> jobs = {model::JobId(7)};
  keeper.forget(jobs);
  EXPECT_FALSE(keeper.get({model::JobId(7), 1}));
  EXPECT_TRUE(keeper.get({model::JobId(71), 1})) << "its number begins alike";
}

TEST_F(UseKeeperTest, ExpectsAReadingEachSecondOfAMonitoredJob) {
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu, true));
  read(keeper, Of::kGpu, "GPU-a", 5, 40);
  EXPECT_EQ(keeper.get({model::JobId(7), 1})->interval, base::seconds(1));
}

TEST_F(UseKeeperTest, KnowsAnAttemptThatBeginsAndLeavesWithOneBatch) {
  UseKeeper keeper(&notes_, base::seconds(5));
  departed_ = {job_on(7, 0, base::kWholeGpu)};
  publish(keeper,
          {model::AttemptStarted{{model::JobId(7), 1}, 1, used_at(0)}, ended(7, 1), released(7)});
  read(keeper, Of::kGpu, "GPU-a", 2, 40);
  EXPECT_FALSE(keeper.get({model::JobId(7), 1})) << "nothing was read while it ran";
  EXPECT_TRUE(notes_.notes.empty());
}

TEST_F(UseKeeperTest, WithoutNotesKnowsRunningJobsAlone) {
  UseKeeper keeper(nullptr, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu));
  read(keeper, Of::kGpu, "GPU-a", 5, 40);
  EXPECT_EQ(max_utilization(keeper, 7), 40);
  publish(keeper, {ended(7, 6), released(7)});
  EXPECT_FALSE(keeper.get({model::JobId(7), 1}));
}

// It ran for 10 s at 600 W, between two jobs that the GPU has had or will have.
TEST_F(UseKeeperTest, CountsTheEnergyFromTheBeginOfAnAttemptToItsEnd) {
  constexpr std::int64_t kBefore = 1'000'000;
  constexpr std::int64_t kTrue = 600'000 * 10;
  const base::Duration soon = base::milliseconds(50);
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu));
  const std::int64_t first = kBefore + 600 * 50;
  read_energy(keeper, used_at(0) + soon, first);
  read_energy(keeper, used_at(5), first, false);
  publish(keeper, {ended(7, 10)});
  const std::int64_t last = kBefore + kTrue + 70 * 50;  // it idles by now
  read_energy(keeper, used_at(10) + soon, last);
  publish(keeper, {released(7)});
  start(keeper, job_on(8, 0, base::kWholeGpu));
  read_energy(keeper, used_at(11), last + 500'000);

  EXPECT_EQ(energy(keeper, 7).from, telemetry::EnergyFrom::kCounter);
  EXPECT_NEAR(static_cast<double>(energy(keeper, 7).millijoules), kTrue, 600'000)
      << "within a second of its power";
}

TEST_F(UseKeeperTest, TakesTheEnergyThatComesWithTheReadingThatAllowsTheRelease) {
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu));
  read_energy(keeper, used_at(0), 1'000'000);
  publish(keeper, {ended(7, 10), released(7)});
  read_energy(keeper, used_at(10), 4'000'000);
  read_energy(keeper, used_at(10), 9'000'000);

  EXPECT_EQ(energy(keeper, 7), (telemetry::Energy{3'000'000, telemetry::EnergyFrom::kCounter}));
}

TEST_F(UseKeeperTest, TakesNoEnergyOnceAnotherAttemptHasTheGpu) {
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu));
  read_energy(keeper, used_at(0), 1'000'000);
  publish(keeper, {ended(7, 10), released(7)});
  start(keeper, job_on(8, 0, base::kWholeGpu));
  read_energy(keeper, used_at(10), 4'000'000);

  EXPECT_EQ(energy(keeper, 7).from, telemetry::EnergyFrom::kPower);
}

TEST_F(UseKeeperTest, TakesNoEnergyThatIsReadLongAfterTheEnd) {
  UseKeeper keeper(&notes_, base::seconds(5));
  start(keeper, job_on(7, 0, base::kWholeGpu));
  read_energy(keeper, used_at(0), 1'000'000);
  publish(keeper, {ended(7, 10)});
  read_energy(keeper, used_at(30), 99'000'000);
  publish(keeper, {released(7)});

  EXPECT_EQ(energy(keeper, 7).from, telemetry::EnergyFrom::kPower);
  EXPECT_EQ(energy(keeper, 7).millijoules, 600'000 * 10);
}

}  // namespace
}  // namespace gpu_platform::bin
