#include "execution/kubernetes/workloads/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/workloads/workload_fixture.h"

namespace gpu_platform::execution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;
using State = WorkloadNews::State;

constexpr const char* kKey = "ml/Job/train/uid-train";

class WorkloadGroupsTest : public ::testing::Test {
 protected:
  WorkloadGroupsTest()
      : groups_(
            KubernetesSettings(),
            [] {
              return std::vector<NodeSize>{
                  {"alpha", {{"pool", "a"}}, 8, 64, base::Bytes(std::int64_t{1} << 40)}};
            },
            [this](const std::string&) { return admitted_; }) {
    groups_.begin_namespaces();
    groups_.namespaces_listed();
    groups_.begin_pods();
    groups_.pods_listed();
    groups_.see_namespace(their_namespace());
  }

  void see(const std::string& name, const TheirPodShape& like = {}) {
    TheirPodShape shape = like;
    shape.name = name;
    groups_.see_pod(their_pod(shape));
  }
  void advance(base::Duration time = {}) {
    now_ = now_ + time;
    groups_.advance(now_);
    for (GroupCall& call : groups_.take_calls()) {
      if (call.kind == GroupCallKind::kReadOwner) reads_.push_back(call.path);
      if (call.kind == GroupCallKind::kSetCondition) conditions_.push_back(call.condition);
      if (call.kind == GroupCallKind::kMakeEvent) events_.push_back(call.condition.reason);
    }
    for (WorkloadSubmission& each : groups_.take_submissions()) submitted_.push_back(each);
    for (const WorkloadWithdrawal& each : groups_.take_withdrawals()) {
      withdrawn_.push_back(each.key);
      why_withdrawn_ = each.why;
    }
  }
  void answer_owner(std::uint32_t pods) {
    OwnerFacts facts;
    facts.is_there = true;
    facts.pods = pods;
    groups_.owner_seen(kKey, facts);
    advance();
  }
  void submit_pair() {
    see("train-0");
    see("train-1");
    advance();
    answer_owner(2);
  }
  void tell(State state, const std::string& reason = "", const std::string& text = "") {
    groups_.tell({kKey, state, model::JobId(7), reason, text});
    advance();
  }

  WorkloadGroups::Admitted admitted_ = WorkloadGroups::Admitted::kNothing;
  base::Instant now_{1'000'000'000'000};
  WorkloadGroups groups_;
  std::vector<std::string> reads_;
  std::vector<AdmissionCondition> conditions_;
  std::vector<std::string> events_;
  std::vector<WorkloadSubmission> submitted_;
  std::vector<std::string> withdrawn_;
  std::string why_withdrawn_;
};

TEST_F(WorkloadGroupsTest, APodThatAsksForWhatIsNotCountedIsRefusedInWords) {
  Json pod = their_pod({.name = "alone", .owner_kind = ""});
  pod["spec"]["initContainers"] = Json::array(
      {{{"name", "first"}, {"resources", {{"limits", {{"nvidia.com/mig-1g.10gb", "7"}}}}}}});
  groups_.see_pod(pod);
  advance(base::seconds(60));
  EXPECT_THAT(submitted_, IsEmpty());
  ASSERT_FALSE(conditions_.empty());
  EXPECT_EQ(conditions_.back().reason, "Refused");
  EXPECT_THAT(conditions_.back().message,
              HasSubstr("nvidia.com/mig-1g.10gb; ask for nvidia.com/gpu"));
}

TEST_F(WorkloadGroupsTest, WithoutItsRoleInANamespaceNothingIsSubmittedUntilItIsBound) {
  groups_.see_rights("ml", false);
  see("alone", {.owner_kind = ""});
  advance(base::seconds(60));
  EXPECT_THAT(submitted_, IsEmpty());
  groups_.see_rights("ml", true);
  advance(base::seconds(1));
  EXPECT_THAT(submitted_, SizeIs(1));
}

TEST_F(WorkloadGroupsTest, SubmitsAWorkloadOnceWhenAllPodsThatItsOwnerWantsAreThere) {
  see("train-0");
  advance();
  EXPECT_THAT(reads_, ElementsAre("/apis/batch/v1/namespaces/ml/jobs/train"));
  answer_owner(2);
  advance(base::minutes(10));
  EXPECT_THAT(submitted_, IsEmpty()) << "one pod is missing";
  see("train-1");
  advance();
  ASSERT_THAT(submitted_, SizeIs(1));
  EXPECT_EQ(submitted_[0].key, kKey);
  EXPECT_EQ(submitted_[0].user, "ada");
  EXPECT_EQ(submitted_[0].spec.request.gpus, 2U);
  advance(base::minutes(10));
  EXPECT_THAT(submitted_, SizeIs(1));
}

TEST_F(WorkloadGroupsTest, AnOwnerThatCannotBeReadHasSettledWhenNoPodComes) {
  see("train-0");
  advance();
  groups_.owner_seen(kKey, std::nullopt);
  advance();
  advance(base::seconds(4));
  see("train-1");
  advance(base::seconds(4));
  EXPECT_THAT(submitted_, IsEmpty());
  advance(base::seconds(5));
  ASSERT_THAT(submitted_, SizeIs(1));
  EXPECT_EQ(submitted_[0].spec.workload_pods, 2U);
}

TEST_F(WorkloadGroupsTest, WaitsForTheGatesOfOthersAndSaysWhichOnesTheyAre) {
  Json pod = their_pod({.owner_kind = ""});
  pod["spec"]["schedulingGates"].push_back({{"name", "example.org/budget"}});
  groups_.see_pod(pod);
  advance();
  EXPECT_THAT(submitted_, IsEmpty());
  ASSERT_THAT(conditions_, SizeIs(1));
  EXPECT_EQ(conditions_[0].reason, "OtherGates");
  EXPECT_THAT(conditions_[0].message, HasSubstr("example.org/budget"));
  groups_.see_pod(their_pod({.owner_kind = ""}));
  advance();
  EXPECT_THAT(submitted_, SizeIs(1));
}

TEST_F(WorkloadGroupsTest, CountsPodsOfLabelledNamespacesAlone) {
  see("elsewhere", {.namespace_name = "web", .owner_kind = ""});
  advance(base::minutes(1));
  EXPECT_THAT(submitted_, IsEmpty());
  EXPECT_THAT(conditions_, IsEmpty());
  Json space = their_namespace();
  space["metadata"]["name"] = "web";
  groups_.see_namespace(space);
  advance();
  EXPECT_THAT(submitted_, SizeIs(1));
}

TEST_F(WorkloadGroupsTest, PodsSayWhyTheyWaitAndNoMoreOftenThanEveryTenSeconds) {
  submit_pair();
  tell(State::kWaiting, "NoCapacity", "1 node is 2 GPUs short");
  ASSERT_THAT(conditions_, SizeIs(2));
  EXPECT_FALSE(conditions_[0].is_admitted);
  EXPECT_EQ(conditions_[0].reason, "NoCapacity");
  EXPECT_THAT(events_, ElementsAre("Queued"));
  tell(State::kWaiting, "Priority", "1 job ahead");
  advance(base::seconds(9));
  EXPECT_THAT(conditions_, SizeIs(2));
  advance(base::seconds(1));
  ASSERT_THAT(conditions_, SizeIs(4));
  EXPECT_EQ(conditions_[3].reason, "Priority");
  tell(State::kWaiting, "Priority", "1 job ahead");
  advance(base::minutes(1));
  EXPECT_THAT(conditions_, SizeIs(4)) << "nothing has changed";
  EXPECT_THAT(events_, SizeIs(1));
}

TEST_F(WorkloadGroupsTest, ARefusalIsToldAndTriedAgainLaterOrWhenThePodsAreOthers) {
  submit_pair();
  tell(State::kRefused, "", "quota of team ml");
  ASSERT_FALSE(conditions_.empty());
  EXPECT_EQ(conditions_.back().reason, "Refused");
  EXPECT_THAT(conditions_.back().message, HasSubstr("quota of team ml"));
  EXPECT_THAT(events_, ElementsAre("Refused"));
  advance(base::seconds(14));
  EXPECT_THAT(submitted_, SizeIs(1));
  advance(base::seconds(2));
  EXPECT_THAT(submitted_, SizeIs(2));
  tell(State::kRefused, "", "quota of team ml");
  see("train-2");
  advance();
  EXPECT_THAT(submitted_, SizeIs(3));
}

TEST_F(WorkloadGroupsTest, ANamespaceWithoutAUserIsRefusedWithWhatHelps) {
  groups_.see_namespace(their_namespace(""));
  see("alone", {.owner_kind = ""});
  advance();
  EXPECT_THAT(submitted_, IsEmpty());
  ASSERT_THAT(conditions_, SizeIs(1));
  EXPECT_THAT(conditions_[0].message, HasSubstr("gpu-platform/user"));
  groups_.see_namespace(their_namespace());
  advance();
  EXPECT_THAT(submitted_, SizeIs(1));
}

TEST_F(WorkloadGroupsTest, AnUnknownQueueIsRefused) {
  Json pod = their_pod({.owner_kind = ""});
  pod["metadata"]["labels"]["gpu-platform/queue"] = "fast";
  groups_.see_pod(pod);
  advance();
  EXPECT_THAT(submitted_, IsEmpty());
  ASSERT_THAT(conditions_, SizeIs(1));
  EXPECT_THAT(conditions_[0].message, HasSubstr("'fast'"));
}

TEST_F(WorkloadGroupsTest, AWaitingJobWhoseOwnerIsGoneIsWithdrawnOnce) {
  submit_pair();
  tell(State::kWaiting, "NoCapacity", "full");
  groups_.remove_pod(their_pod({.name = "train-0"}));
  advance(base::seconds(1));
  EXPECT_THAT(withdrawn_, IsEmpty());
  groups_.remove_pod(their_pod({.name = "train-1"}));
  advance(base::seconds(1));
  EXPECT_THAT(withdrawn_, IsEmpty()) << "its owner is asked first";
  OwnerFacts there;
  there.is_there = true;
  groups_.owner_seen(kKey, there);
  advance();
  EXPECT_THAT(withdrawn_, IsEmpty()) << "it may make new ones";
  advance(base::seconds(6));
  groups_.owner_seen(kKey, OwnerFacts());
  advance();
  EXPECT_THAT(withdrawn_, ElementsAre(kKey));
  EXPECT_EQ(why_withdrawn_, "its workload was deleted");
  advance(base::minutes(5));
  EXPECT_THAT(withdrawn_, SizeIs(1));
  tell(State::kCancelled, "", "its job 7 was cancelled");
  EXPECT_EQ(groups_.size(), 0U);
}

TEST_F(WorkloadGroupsTest, AWaitingJobWhoseOwnerMakesNoMorePodsIsWithdrawnForThatReason) {
  submit_pair();
  tell(State::kWaiting, "NoCapacity", "full");
  groups_.remove_pod(their_pod({.name = "train-0"}));
  groups_.remove_pod(their_pod({.name = "train-1"}));
  advance(base::seconds(1));
  OwnerFacts facts;
  facts.is_there = true;
  facts.is_suspended = true;
  groups_.owner_seen(kKey, facts);
  advance();
  EXPECT_THAT(withdrawn_, ElementsAre(kKey));
  EXPECT_EQ(why_withdrawn_, "its workload was suspended");
  tell(State::kWaiting, "NoCapacity", "full");
  see("train-2");
  advance();
  groups_.remove_pod(their_pod({.name = "train-2"}));
  advance(base::seconds(6));
  facts.is_suspended = false;
  facts.is_finished = true;
  groups_.owner_seen(kKey, facts);
  advance();
  EXPECT_EQ(why_withdrawn_, "its workload has finished");
}

TEST_F(WorkloadGroupsTest, AnOwnerWhosePodsCannotStartTogetherIsRefusedWithItsReason) {
  see("train-0");
  advance();
  OwnerFacts facts;
  facts.is_there = true;
  facts.pods = 2;
  facts.obstacle = "its JobSet starts its jobs one after the other";
  groups_.owner_seen(kKey, facts);
  advance();
  EXPECT_THAT(submitted_, IsEmpty());
  ASSERT_FALSE(conditions_.empty());
  EXPECT_EQ(conditions_.back().reason, "Refused");
  EXPECT_EQ(conditions_.back().message, facts.obstacle);
  EXPECT_THAT(events_, ElementsAre("Refused"));
}

TEST_F(WorkloadGroupsTest, AdmittedPodsThatLiveKeepAJobThatWaits) {
  submit_pair();
  tell(State::kActive);
  admitted_ = WorkloadGroups::Admitted::kLivePods;
  groups_.remove_pod(their_pod({.name = "train-0"}));
  groups_.remove_pod(their_pod({.name = "train-1"}));
  tell(State::kWaiting, "Backoff", "taken back");
  advance(base::minutes(5));
  EXPECT_THAT(withdrawn_, IsEmpty());
}

// The queue tells that it has started later than its pods are over.
TEST_F(WorkloadGroupsTest, AJobWhoseAttemptIsOverIsNotWithdrawnBeforeTheQueueSaysThatItWaits) {
  submit_pair();
  tell(State::kWaiting, "NoCapacity", "full");
  admitted_ = WorkloadGroups::Admitted::kOver;
  groups_.remove_pod(their_pod({.name = "train-0"}));
  groups_.remove_pod(their_pod({.name = "train-1"}));
  OwnerFacts facts;
  facts.is_there = true;
  facts.is_finished = true;
  facts.is_succeeded = true;
  advance(base::seconds(1));
  groups_.owner_seen(kKey, facts);
  advance(base::minutes(1));
  EXPECT_THAT(withdrawn_, IsEmpty());
  admitted_ = WorkloadGroups::Admitted::kNothing;
  advance(base::minutes(1));
  groups_.owner_seen(kKey, facts);
  advance();
  EXPECT_THAT(withdrawn_, ElementsAre(kKey));
}

TEST_F(WorkloadGroupsTest, AJobThatStartsWithoutPodsIsWithdrawnWhenItsOwnerIsGone) {
  submit_pair();
  tell(State::kActive);
  groups_.remove_pod(their_pod({.name = "train-0"}));
  groups_.remove_pod(their_pod({.name = "train-1"}));
  advance(base::minutes(1));
  EXPECT_THAT(withdrawn_, IsEmpty()) << "its pods were admitted, and their end is the job's";
  admitted_ = WorkloadGroups::Admitted::kAwaited;
  advance(base::seconds(3));
  groups_.owner_seen(kKey, OwnerFacts());
  advance();
  EXPECT_THAT(withdrawn_, ElementsAre(kKey));
}

TEST_F(WorkloadGroupsTest, PodsOfACancelledWorkloadStayAndSaySoAlsoAfterARestart) {
  submit_pair();
  tell(State::kCancelled, "", "its job 7 was cancelled");
  ASSERT_FALSE(conditions_.empty());
  EXPECT_EQ(conditions_.back().reason, "Cancelled");
  EXPECT_THAT(conditions_.back().message, HasSubstr("delete the workload"));
  EXPECT_THAT(groups_.ready_pods(kKey), IsEmpty());
  Json pod = their_pod();
  pod["status"]["conditions"] = Json::array({{{"type", "gpu-platform/Admitted"},
                                              {"status", "False"},
                                              {"reason", "Cancelled"},
                                              {"message", "its job 7 was cancelled"}}});
  WorkloadGroups restarted(
      KubernetesSettings(), [] { return std::vector<NodeSize>(); },
      [](const std::string&) { return WorkloadGroups::Admitted::kNothing; });
  restarted.begin_namespaces();
  restarted.see_namespace(their_namespace());
  restarted.namespaces_listed();
  restarted.begin_pods();
  restarted.see_pod(pod);
  restarted.pods_listed();
  restarted.advance(now_);
  EXPECT_THAT(restarted.take_submissions(), IsEmpty());
  EXPECT_THAT(restarted.ready_pods(kKey), IsEmpty());
}

TEST_F(WorkloadGroupsTest, PodsThatComeAfterTheEndAreTheNextJob) {
  submit_pair();
  tell(State::kActive);
  groups_.remove_pod(their_pod({.name = "train-0"}));
  groups_.remove_pod(their_pod({.name = "train-1"}));
  tell(State::kEnded);
  see("train-2");
  advance();
  answer_owner(1);
  ASSERT_THAT(submitted_, SizeIs(2));
  EXPECT_EQ(submitted_[1].spec.workload_pods, 1U);
}

}  // namespace
}  // namespace gpu_platform::execution
