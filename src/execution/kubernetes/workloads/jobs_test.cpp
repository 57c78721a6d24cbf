#include "execution/kubernetes/workloads/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execution/kubernetes/workloads/queue_fixture.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

using model::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = WorkloadNews::State;

// The key of a workload without an owner that makes new pods.
constexpr const char* kLonePods = "ml/PodGroup/train/";

class WorkloadJobsTest : public ::testing::Test {
 protected:
  void submit(const std::string& key = kQueuedKey) { jobs_.submit(queued_submission(key)); }
  // The site knows the user, and the core has the answer.
  void submit_as_job(std::uint64_t id, const std::string& key = kQueuedKey) {
    submit(key);
    find_user();
    facts_.put(id, key, JobState::kQueued);
    answer(accepted(id));
  }
  void find_user(const base::Result<WorkloadUser>& user = WorkloadUser{"ada", 1000, 100}) {
    for (WorkloadSubmission& each : jobs_.take_lookups()) {
      jobs_.found(std::move(each), user, facts_);
    }
  }
  // Answers the one submission that is made.
  void answer(const base::Result<model::CommandReply>& reply) {
    std::vector<model::SubmitJob> made = jobs_.take_submissions();
    ASSERT_THAT(made, SizeIs(1));
    jobs_.answered(std::move(made.front()), reply, facts_);
  }
  std::string next_request_id() {
    const std::vector<model::SubmitJob> made = jobs_.take_submissions();
    return made.size() == 1 ? made.front().spec.request_id : std::string();
  }
  std::vector<WorkloadNews> examine() {
    jobs_.examine(facts_);
    return jobs_.take_news();
  }
  // The news that are there without a look at the jobs.
  WorkloadNews only_news() {
    std::vector<WorkloadNews> news = jobs_.take_news();
    EXPECT_THAT(news, SizeIs(1));
    return news.empty() ? WorkloadNews() : news.front();
  }

  QueuedFacts facts_;
  WorkloadJobs jobs_{model::UserRange{.min_uid = 1000}};
};

TEST_F(WorkloadJobsTest, AWorkloadIsSubmittedAsAJobOfItsUser) {
  facts_.nodes = {queued_node(4, "alpha"), queued_node(7, "beta")};
  WorkloadSubmission submission = queued_submission();
  submission.team = "vision";
  submission.nodes = {"beta", "gamma"};
  jobs_.submit(std::move(submission));
  find_user();
  const std::vector<model::SubmitJob> made = jobs_.take_submissions();
  ASSERT_THAT(made, SizeIs(1));
  const model::JobSpec& spec = made.front().spec;
  EXPECT_EQ(spec.user, "ada");
  EXPECT_EQ(spec.uid, 1000u);
  EXPECT_EQ(spec.gid, 100u);
  EXPECT_EQ(spec.team, "vision");
  EXPECT_EQ(spec.request_id, kQueuedKey);
  EXPECT_THAT(spec.request.nodelist, ElementsAre(model::NodeId(7)));
}

TEST_F(WorkloadJobsTest, AWorkloadWithAJobIsNotSubmittedAgainAndToldAgainHowItStands) {
  submit_as_job(1);
  EXPECT_THAT(examine(), SizeIs(1));
  EXPECT_THAT(examine(), IsEmpty());
  submit();
  EXPECT_THAT(jobs_.take_lookups(), IsEmpty());
  EXPECT_THAT(examine(), SizeIs(1));
}

TEST_F(WorkloadJobsTest, AWaitingJobIsToldWithItsReasonAndItsStartToTheMinute) {
  submit_as_job(1);
  facts_.wait.reason.code = model::WaitCode::kNoCapacity;
  facts_.wait.latest_start = base::Instant(base::seconds(90).value());
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kWaiting);
  EXPECT_EQ(news.front().reason, "NoCapacity");
  EXPECT_THAT(news.front().text, HasSubstr("job 1: "));
  EXPECT_THAT(news.front().text, HasSubstr("; starts at the latest 1970-01-01T00:02:00Z"));
  // The same minute is no news.
  facts_.wait.latest_start = base::Instant(base::seconds(100).value());
  EXPECT_THAT(examine(), IsEmpty());
}

TEST_F(WorkloadJobsTest, AJobThatStartsIsToldAsActive) {
  submit_as_job(1);
  facts_.put(1, kQueuedKey, JobState::kRunning);
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kActive);
  EXPECT_EQ(news.front().job, model::JobId(1));
}

TEST_F(WorkloadJobsTest, AWorkloadThatIsOverIsToldOnceAndForgotten) {
  submit_as_job(1);
  facts_.put(1, kQueuedKey, JobState::kCompleted);
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kEnded);
  EXPECT_THAT(examine(), IsEmpty());
  jobs_.withdraw(kQueuedKey, std::string(kWorkloadFinished));
  EXPECT_THAT(jobs_.take_cancellations(), IsEmpty());
}

TEST_F(WorkloadJobsTest, AJobThatHasLeftTheHistoryIsOver) {
  submit_as_job(1);
  facts_.jobs.clear();
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kEnded);
  EXPECT_THAT(news.front().text, IsEmpty());
}

TEST_F(WorkloadJobsTest, PodsAfterTheEndOfAJobAreTheNextJob) {
  facts_.put(1, kQueuedKey, JobState::kFailed);
  submit();
  find_user();
  answer(repeated(1));
  EXPECT_EQ(next_request_id(), "ml/Job/train/uid-train#1");
}

TEST_F(WorkloadJobsTest, EachEarlierJobIsALinkOfTheChainOfRequestIds) {
  facts_.put(1, kQueuedKey, JobState::kFailed);
  facts_.put(5, kQueuedKey, JobState::kCompleted);
  submit();
  find_user();
  answer(repeated(1));
  answer(repeated(5));
  EXPECT_EQ(next_request_id(), "ml/Job/train/uid-train#5");
}

TEST_F(WorkloadJobsTest, ADeletedWorkloadHasItsJobCancelledWithTheReason) {
  submit_as_job(3);
  jobs_.withdraw(kQueuedKey, std::string(kWorkloadDeleted));
  const auto cancelled = jobs_.take_cancellations();
  ASSERT_THAT(cancelled, SizeIs(1));
  EXPECT_EQ(cancelled.front().key, kQueuedKey);
  EXPECT_EQ(cancelled.front().action.job, model::JobId(3));
  EXPECT_EQ(cancelled.front().action.detail, kWorkloadDeleted);
}

TEST_F(WorkloadJobsTest, WithoutAJobThereIsNothingToCancel) {
  jobs_.withdraw(kQueuedKey, std::string(kWorkloadDeleted));
  EXPECT_THAT(jobs_.take_cancellations(), IsEmpty());
}

TEST_F(WorkloadJobsTest, NoFurtherPodStartsAfterACancellation) {
  submit_as_job(1);
  facts_.put(1, kQueuedKey, JobState::kCancelled);
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kCancelled);
  EXPECT_EQ(news.front().text, "its job 1 was cancelled");
  // Pods that come later hear the same.
  submit();
  find_user();
  answer(repeated(1));
  EXPECT_EQ(only_news().state, State::kCancelled);
  EXPECT_EQ(next_request_id(), "");
}

TEST_F(WorkloadJobsTest, NoFurtherPodStartsAfterTheTimeLimit) {
  submit_as_job(1);
  facts_.put(1, kQueuedKey, JobState::kTimedOut);
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kCancelled);
  EXPECT_EQ(news.front().text, "its job 1 has had its time");
}

TEST_F(WorkloadJobsTest, ASuspendedWorkloadIsANewJobWheneverItIsResumed) {
  submit_as_job(1);
  jobs_.withdraw(kQueuedKey, std::string(kWorkloadSuspended));
  ASSERT_THAT(jobs_.take_cancellations(), SizeIs(1));
  facts_.put(1, kQueuedKey, JobState::kCancelled, std::string(kWorkloadSuspended));
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kEnded);
  submit();
  find_user();
  answer(repeated(1));
  facts_.put(2, kQueuedKey, JobState::kQueued);
  answer(accepted(2));
  // Suspended and resumed once more.
  jobs_.withdraw(kQueuedKey, std::string(kWorkloadSuspended));
  const auto cancelled = jobs_.take_cancellations();
  ASSERT_THAT(cancelled, SizeIs(1));
  EXPECT_EQ(cancelled.front().action.job, model::JobId(2));
  facts_.put(2, kQueuedKey, JobState::kCancelled, std::string(kWorkloadSuspended));
  examine();
  submit();
  find_user();
  answer(repeated(1));
  answer(repeated(2));
  EXPECT_EQ(next_request_id(), "ml/Job/train/uid-train#2");
}

TEST_F(WorkloadJobsTest, PodsWithoutAnOwnerAreAnotherWorkloadAfterACancellation) {
  facts_.put(1, kLonePods, JobState::kCancelled, std::string(kWorkloadDeleted));
  submit(kLonePods);
  find_user();
  answer(repeated(1));
  EXPECT_THAT(jobs_.take_news(), IsEmpty());
  EXPECT_EQ(next_request_id(), "ml/PodGroup/train/#1");
}

TEST_F(WorkloadJobsTest, AfterARestartTheJobsThatAreThereStandForTheirWorkloads) {
  facts_.put(1, kQueuedKey, JobState::kRunning);
  facts_.put(2, "ml/Job/other/uid-other", JobState::kCompleted);
  facts_.put(3, "", JobState::kRunning);
  jobs_.begin(facts_);
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().key, kQueuedKey);
  EXPECT_EQ(news.front().state, State::kActive);
  submit();
  EXPECT_THAT(jobs_.take_lookups(), IsEmpty());
}

// The core took the submission, and the daemon ended before it heard so.
TEST_F(WorkloadJobsTest, ARequestIdThatIsRepeatedFindsTheLiveJob) {
  facts_.put(1, kQueuedKey, JobState::kFailed);
  facts_.put(2, kQueuedKey, JobState::kRunning);
  submit();
  find_user();
  answer(repeated(1));
  answer(repeated(2));
  EXPECT_EQ(next_request_id(), "");
  const std::vector<WorkloadNews> news = examine();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news.front().state, State::kActive);
  EXPECT_EQ(news.front().job, model::JobId(2));
}

TEST_F(WorkloadJobsTest, AJobOfAUserWithTheSameRequestIdStandsForNothing) {
  facts_.put(9, "", JobState::kRunning);
  submit();
  find_user();
  answer(repeated(9));
  EXPECT_EQ(next_request_id(), "ml/Job/train/uid-train#9");
}

TEST_F(WorkloadJobsTest, WhatTheCoreRefusesIsToldInItsWords) {
  submit();
  find_user();
  answer(base::fail(base::ErrorCode::kInvalidArgument, "the queue is full"));
  const WorkloadNews news = only_news();
  EXPECT_EQ(news.key, kQueuedKey);
  EXPECT_EQ(news.state, State::kRefused);
  EXPECT_EQ(news.text, "the queue is full");
  EXPECT_THAT(examine(), IsEmpty());
}

TEST_F(WorkloadJobsTest, AUserThatIsGoneIsRefusedInTheDirectorysWords) {
  submit();
  find_user(base::fail(base::ErrorCode::kNotFound, "there is no user ada"));
  EXPECT_EQ(only_news().text, "there is no user ada");
  EXPECT_EQ(next_request_id(), "");
}

TEST_F(WorkloadJobsTest, ADirectoryThatDoesNotAnswerIsNamedWithTheUser) {
  submit();
  find_user(base::fail(base::ErrorCode::kUnavailable, "no answer"));
  const WorkloadNews news = only_news();
  EXPECT_EQ(news.state, State::kRefused);
  EXPECT_EQ(news.text, "user ada: no answer");
}

TEST_F(WorkloadJobsTest, AUserOutsideOfTheRangeIsRefused) {
  submit();
  find_user(WorkloadUser{"daemon", 2, 2});
  const WorkloadNews news = only_news();
  EXPECT_EQ(news.state, State::kRefused);
  EXPECT_THAT(news.text, HasSubstr("user daemon may have no jobs: "));
}

TEST_F(WorkloadJobsTest, APriorityAboveTheUsersHighestIsRefused) {
  WorkloadSubmission submission = queued_submission();
  submission.spec.priority.priority_class = model::PriorityClass::kCritical;
  jobs_.submit(std::move(submission));
  find_user();
  const WorkloadNews news = only_news();
  EXPECT_EQ(news.state, State::kRefused);
  EXPECT_THAT(news.text, HasSubstr("(policies.highest_user_priority)"));
}

}  // namespace
}  // namespace gpu_platform::execution
