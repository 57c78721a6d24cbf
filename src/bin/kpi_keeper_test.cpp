#include "bin/kpi_keeper.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/job_spec.h"
#include "os/testing/eventually.h"

namespace gpu_platform::bin {
namespace {

base::Instant at(std::int64_t seconds) {
  return base::Instant() + base::seconds(1'000'000 + seconds);
}

class NoUses final : public telemetry::UseSource {
 public:
  std::optional<telemetry::UseSummary> get(model::AttemptId) const override { return {}; }
  std::optional<telemetry::UseBrief> brief(model::AttemptId) const override { return {}; }
};

// An archive that several threads may read and a test fills.
class SharedArchive final : public store::Archive {
 public:
  void put(const model::Job& job) {
    const std::lock_guard lock(mutex_);
    jobs_[job.id] = job;
  }
  void set_broken(bool is_broken) {
    const std::lock_guard lock(mutex_);
    is_broken_ = is_broken;
  }

  base::Result<std::optional<model::Job>> find(model::JobId id) const override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? std::nullopt : std::optional(found->second);
  }
  base::Result<std::vector<model::Job>> list(const store::ArchiveQuery& query) const override {
    const std::lock_guard lock(mutex_);
    if (is_broken_) return base::fail(base::ErrorCode::kDataLoss, "it is broken");
    std::vector<model::Job> found;
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
      if (found.size() == query.limit) break;
      if (!query.before.valid() || job->first < query.before) found.push_back(job->second);
    }
    return found;
  }
  base::Result<std::vector<store::JobEnding>> endings(const store::JobEnding&,
                                                      std::size_t) const override {
    return std::vector<store::JobEnding>();
  }
  base::Result<std::uint64_t> job_count() const override { return 0; }
  base::Result<base::Instant> begins_at() const override { return base::Instant(); }
  base::Result<model::AuditPage> audit(const model::AuditQuery&) const override {
    return model::AuditPage();
  }

 private:
  mutable std::mutex mutex_;
  std::map<model::JobId, model::Job> jobs_;
  bool is_broken_ = false;
};

model::Job ended_job(std::uint64_t id) {
  model::Job job;
  job.id = model::JobId(id);
  job.spec = std::make_shared<const model::JobSpec>();
  job.state = model::JobState::kCompleted;
  job.submitted_at = at(0);
  job.ended_at = at(static_cast<std::int64_t>(id));
  return job;
}

class KpiKeeperTest : public ::testing::Test {
 protected:
  void archive(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t id = from; id < to; ++id) archive_.put(ended_job(id));
  }
  // The job leaves the core for the archive.
  void depart(KpiKeeper& keeper, std::uint64_t id) {
    const std::vector<model::Job> jobs = {ended_job(id)};
    archive_.put(jobs.front());
    keeper.published(snapshot_, {}, controller::DepartedJobs(jobs));
  }
  // None: the ended jobs are not known yet.
  static std::optional<std::uint64_t> count(const KpiKeeper& keeper) {
    telemetry::KpiSums sums({.from = at(0), .to = at(1'000'000)});
    if (!keeper.add_ended(sums, {})) return std::nullopt;
    return sums.figures().all.ended;
  }
  static bool comes_to(const KpiKeeper& keeper, std::uint64_t jobs) {
    return os::eventually([&] { return count(keeper) == jobs; });
  }

  SharedArchive archive_;
  NoUses uses_;
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
};

TEST_F(KpiKeeperTest, ReadsTheArchiveAndThenEachJobThatLeavesTheCore) {
  archive(1, 2501);
  KpiKeeper keeper(archive_, uses_);
  EXPECT_FALSE(count(keeper)) << "before the start nothing is known";
  keeper.start(*snapshot_);
  EXPECT_TRUE(comes_to(keeper, 2500));
  depart(keeper, 2501);
  EXPECT_TRUE(comes_to(keeper, 2501));
}

// They are in the archive before the keeper hears of them.
TEST_F(KpiKeeperTest, CountsJobsOnceThatLeaveTheCoreWhileItReads) {
  archive(1, 1501);
  snapshot_->jobs.put(1501, ended_job(1501));
  KpiKeeper keeper(archive_, uses_);
  keeper.start(*snapshot_);
  for (std::uint64_t id = 1501; id < 1520; ++id) depart(keeper, id);
  EXPECT_TRUE(comes_to(keeper, 1519));
  depart(keeper, 1520);
  EXPECT_TRUE(comes_to(keeper, 1520)) << "all of those before are counted by now, and once";
}

TEST_F(KpiKeeperTest, ForgetsJobsThatHaveLeftTheHistory) {
  archive(1, 11);
  KpiKeeper keeper(archive_, uses_);
  keeper.start(*snapshot_);
  ASSERT_TRUE(comes_to(keeper, 10));
  const std::vector<model::JobId> gone = {model::JobId(3), model::JobId(4)};
  keeper.forget(gone);
  EXPECT_TRUE(comes_to(keeper, 8));
}

TEST_F(KpiKeeperTest, KeepsABoundedNumberAndSaysSinceWhenItHasAll) {
  archive(1, 3001);
  KpiKeeper keeper(archive_, uses_, 1000);
  keeper.start(*snapshot_);
  ASSERT_TRUE(comes_to(keeper, 1000));
  telemetry::KpiSums sums({.from = at(0), .to = at(1'000'000)});
  const auto since = keeper.add_ended(sums, {});
  ASSERT_TRUE(since);
  EXPECT_EQ(*since, at(2000)) << "the end of the last job that is left out";
}

TEST_F(KpiKeeperTest, SaysWhyTheEndedJobsAreNotKnown) {
  archive_.set_broken(true);
  KpiKeeper keeper(archive_, uses_);
  keeper.start(*snapshot_);
  const auto says_why = [&] {
    telemetry::KpiSums sums({.from = at(0), .to = at(1)});
    const auto added = keeper.add_ended(sums, {});
    return !added && added.error().message.find("it is broken") != std::string::npos;
  };
  EXPECT_TRUE(os::eventually(says_why));
}

}  // namespace
}  // namespace gpu_platform::bin
