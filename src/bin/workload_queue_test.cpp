#include "bin/workload_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "model/job_spec.h"
#include "model/policy.h"
#include "os/testing/eventually.h"
#include "scheduling/order/rank.h"

namespace gpu_platform::bin {
namespace {

using State = execution::WorkloadNews::State;

constexpr const char* kKey = "ml/Job/train/uid-train";

class OneUser final : public host::UserDatabase {
 public:
  base::Result<host::User> find(std::uint32_t) const override { return no_user(); }
  base::Result<host::User> find(const std::string& name) const override {
    if (name == "ada") return host::User{.name = "ada", .uid = 1000, .gid = 100};
    return no_user();
  }

 private:
  static std::unexpected<base::Error> no_user() {
    return base::fail(base::ErrorCode::kNotFound, "there is no such user");
  }
};

class EndedJobs final : public store::Archive {
 public:
  void put(const model::Job& job) {
    const std::lock_guard lock(mutex_);
    jobs_[job.id] = job;
  }
  base::Result<std::optional<model::Job>> find(model::JobId id) const override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? std::nullopt : std::optional(found->second);
  }
  base::Result<std::vector<model::Job>> list(const store::ArchiveQuery&) const override {
    return {};
  }
  base::Result<std::vector<store::JobEnding>> endings(const store::JobEnding&,
                                                      std::size_t) const override {
    return {};
  }
  base::Result<std::uint64_t> job_count() const override { return 0; }
  base::Result<base::Instant> begins_at() const override { return base::Instant(); }
  base::Result<model::AuditPage> audit(const model::AuditQuery&) const override { return {}; }

 private:
  mutable std::mutex mutex_;
  std::map<model::JobId, model::Job> jobs_;
};

model::Job job_of_workload(model::JobState state) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->workload = kKey;
  spec->request.gpus = 1;
  model::Job job;
  job.id = model::JobId(1);
  job.spec = std::move(spec);
  job.state = state;
  return job;
}

// Without a job: it has left the core.
std::shared_ptr<const controller::Snapshot> snapshot_with(const model::Job* job) {
  auto snapshot = std::make_shared<controller::Snapshot>();
  snapshot->policy = std::make_shared<const model::Policy>();
  snapshot->order = scheduling::OrderBasis::of(*snapshot->policy);
  if (job != nullptr) snapshot->jobs.put(job->id.value, *job);
  return snapshot;
}

class BinWorkloadQueueTest : public ::testing::Test {
 protected:
  void start(std::shared_ptr<const controller::Snapshot> snapshot) {
    queue_.start(
        std::move(snapshot), [this](model::Command command, auto) { keep(commands_, command); },
        [this](execution::WorkloadNews news) { keep(news_, news); });
  }
  void publish(std::shared_ptr<const controller::Snapshot> snapshot) {
    queue_.published(snapshot, {}, controller::DepartedJobs());
  }
  template <class T>
  void keep(std::vector<T>& kept, T& one) {
    const std::lock_guard lock(mutex_);
    kept.push_back(std::move(one));
  }
  template <class T>
  T last_of(std::vector<T>& kept, std::size_t number) {
    const bool has_come = os::eventually([&] {
      const std::lock_guard lock(mutex_);
      return kept.size() >= number;
    });
    EXPECT_TRUE(has_come);
    const std::lock_guard lock(mutex_);
    return has_come ? kept.back() : T();
  }

  EndedJobs archive_;
  std::mutex mutex_;
  std::vector<model::Command> commands_;  // guarded by mutex_, as the next
  std::vector<execution::WorkloadNews> news_;
  std::shared_ptr<host::UserDirectory> users_ =
      std::make_shared<host::UserDirectory>(std::make_shared<const OneUser>());
  WorkloadQueue queue_{users_, model::UserRange{.min_uid = 1000}, archive_};
};

TEST_F(BinWorkloadQueueTest, TellsWhatTheSnapshotAndThenTheArchiveHaveOfAJob) {
  const model::Job queued = job_of_workload(model::JobState::kQueued);
  start(snapshot_with(&queued));
  const execution::WorkloadNews waiting = last_of(news_, 1);
  EXPECT_EQ(waiting.state, State::kWaiting);
  EXPECT_EQ(waiting.reason, "NoNode") << "there is no node";
  archive_.put(job_of_workload(model::JobState::kCompleted));
  publish(snapshot_with(nullptr));
  const execution::WorkloadNews ended = last_of(news_, 2);
  EXPECT_EQ(ended.state, State::kEnded);
  EXPECT_EQ(ended.job, model::JobId(1));
}

TEST_F(BinWorkloadQueueTest, SubmitsAWorkloadAsAJobOfAUserOfTheSite) {
  start(snapshot_with(nullptr));
  execution::WorkloadSubmission submission;
  submission.key = kKey;
  submission.user = "ada";
  submission.spec.workload = kKey;
  queue_.submit(submission);
  const model::Command command = last_of(commands_, 1);
  const auto* submitted = std::get_if<model::SubmitJob>(&command.body);
  ASSERT_NE(submitted, nullptr);
  EXPECT_EQ(submitted->spec.uid, 1000U);
  EXPECT_EQ(submitted->spec.gid, 100U);
}

TEST_F(BinWorkloadQueueTest, RefusesAWorkloadOfAUserThatTheSiteDoesNotHave) {
  start(snapshot_with(nullptr));
  execution::WorkloadSubmission submission;
  submission.key = kKey;
  submission.user = "eve";
  queue_.submit(submission);
  const execution::WorkloadNews refused = last_of(news_, 1);
  EXPECT_EQ(refused.state, State::kRefused);
  EXPECT_EQ(refused.text, "there is no such user");
}

}  // namespace
}  // namespace gpu_platform::bin
