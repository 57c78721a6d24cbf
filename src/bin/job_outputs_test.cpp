#include "bin/job_outputs.h"

#include <gtest/gtest.h>

#include <string>

#include "bin/fake_access_fixture.h"
#include "bin/folder_fixture.h"
#include "model/job_spec.h"
#include "model/policy.h"
#include "os/clock.h"

namespace gpu_platform::bin {
namespace {

using model::EngineKind;
using model::JobState;

class JobOutputsTest : public ::testing::Test {
 protected:
  JobOutputsTest() { snapshot_->policy = std::make_shared<const model::Policy>(); }

  static model::Job a_job(JobState state, const std::string& output = {}) {
    model::Job job;
    job.id = model::JobId(5);
    job.state = state;
    auto spec = std::make_shared<model::JobSpec>();
    spec->output = output;
    spec->uid = 1001;
    job.spec = std::move(spec);
    job.attempts.emplace_back();
    job.attempts.back().number = 1;
    return job;
  }
  // What a reader finds; else the words of its error.
  std::string read(const model::Job& job, std::uint64_t offset = 0) const {
    const auto piece = outputs_.reader(job, 1).read(offset, 100);
    if (!piece) return piece.error().message;
    return piece->bytes + (piece->has_more ? " …" : "");
  }
  void keep_for(base::Duration time) {
    model::Policy policy;
    policy.output_keep = time;
    snapshot_->policy = std::make_shared<const model::Policy>(policy);
  }

  TestFolder folder_;
  FakeAccess engine_{folder_.path()};
  execution::AccessRouter router_{{{EngineKind::kProcess, &engine_}},
                                  [](model::NodeId) { return EngineKind::kProcess; }};
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  JobOutputs outputs_{router_, [this] { return snapshot_; }, UsersFiles()};
};

TEST_F(JobOutputsTest, ThatThePlatformKeepsAreReadWhereTheEngineHasThem) {
  const model::Job job = a_job(JobState::kRunning);
  EXPECT_EQ(outputs_.path(job, 1), folder_.path() + "/5.1");
  EXPECT_EQ(read(job), "") << "nothing was printed yet";
  folder_.write("5.1", "hello");
  EXPECT_EQ(read(job), "hello");
  EXPECT_EQ(read(job, 3), "lo");
  EXPECT_FALSE(outputs_.reader(job, 1).may_hang);
}

TEST_F(JobOutputsTest, AreFollowedWhileTheJobRuns) {
  read(a_job(JobState::kRunning));
  EXPECT_EQ(engine_.followed().size(), 1U);
  read(a_job(JobState::kCompleted));
  EXPECT_EQ(engine_.followed().size(), 1U);
}

TEST_F(JobOutputsTest, HaveMoreWhileTheirEndIsFetched) {
  engine_.set_awaits(true);
  folder_.write("5.1", "hello");
  EXPECT_EQ(read(a_job(JobState::kCompleted)), "hello …");
}

TEST_F(JobOutputsTest, ThatThePolicyRemovedAreToldApartFromNone) {
  keep_for(base::hours(1));
  model::Job job = a_job(JobState::kCompleted);
  job.ended_at = os::wall_now() + base::minutes(-1);
  EXPECT_EQ(read(job), "") << "it has printed nothing";
  job.ended_at = os::wall_now() + base::hours(-2);
  EXPECT_EQ(read(job),
            "the output of job 5 was removed after its end: output is kept for 1h here "
            "(store.output_keep)");
  folder_.write("5.1", "still here");
  EXPECT_EQ(read(job), "still here");
}

TEST_F(JobOutputsTest, OfTheUsersOwnFileBeginWithTheJobsProcess) {
  model::Job job = a_job(JobState::kStarting, "/home/ann/%j.log");
  EXPECT_EQ(read(job), "") << "what is there is no output of the job";
  job.state = JobState::kCompleted;
  job.attempts.back().ended_at = os::wall_now();
  EXPECT_EQ(read(job), "attempt 1 of job 5 has printed nothing to " + outputs_.path(job, 1) +
                           ": it ended before its program ran");
  EXPECT_TRUE(engine_.followed().empty());
}

TEST_F(JobOutputsTest, OfTheUsersOwnFileAreReadAsTheUser) {
  model::Job job = a_job(JobState::kRunning, "/home/ann/out.log");
  job.attempts.back().started_at = os::wall_now();
  EXPECT_EQ(outputs_.path(job, 1), "/home/ann/out.log");
  EXPECT_TRUE(outputs_.reader(job, 1).may_hang);
  EXPECT_EQ(read(job), "the daemon is stopping") << "no engine is there to open it";
}

TEST_F(JobOutputsTest, TheStepIsTheEngines) {
  engine_.set_step("pulling the image, 43 %");
  EXPECT_EQ(outputs_.container_step(a_job(JobState::kStarting), 1), "pulling the image, 43 %");
}

}  // namespace
}  // namespace gpu_platform::bin
