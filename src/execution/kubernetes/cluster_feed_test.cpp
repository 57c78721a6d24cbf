#include "execution/kubernetes/cluster_feed.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/pods/pod_attempts_fixture.h"

namespace gpu_platform::execution {
namespace {

using kubernetes::FollowHandlers;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// A pod or a claim with the labels and the name of the one of kOne.
Json object_of_one(const std::string& namespace_name = "jobs") {
  return {{"metadata",
           {{"name", "gp-test-1-1-0"},
            {"namespace", namespace_name},
            {"uid", "uid-1"},
            {"labels",
             {{"gpu-platform/cluster", "test"},
              {"gpu-platform/job", "1"},
              {"gpu-platform/attempt", "1"},
              {"gpu-platform/rank", "0"}}}}},
          {"spec", {{"nodeName", "node-1"}}},
          {"status", {{"phase", "Running"}}}};
}

// The parts that are fed, and no cluster.
class Fed {
 public:
  explicit Fed(DeviceMode devices = DeviceMode::kPinned) {
    settings_.devices = devices;
    for (auto& each : feed_.followed()) all_.push_back(std::move(each));
  }

  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    for (const auto& [what, handlers] : all_) paths.push_back(what.path);
    return paths;
  }
  const ClusterFeed::Followed& of(const std::string& path, const std::string& query = {}) const {
    for (const auto& each : all_) {
      if (each.first.path.ends_with(path) && each.first.query.contains(query)) return each;
    }
    ADD_FAILURE() << path << " is not followed";
    return all_.front();
  }
  const FollowHandlers& pods() const { return of("/pods", "cluster%3Dtest").second; }
  const FollowHandlers& claims() const { return of("/resourceclaims").second; }

  ClusterFeed& feed() { return feed_; }
  PodAttempts& attempts() { return attempts_; }
  std::vector<PodView> pods_of_one() const { return attempts_.pods_of(kOne); }
  // Advances by so much and returns whether an attempt has ended.
  bool has_ended_after(base::Duration time) {
    attempts_.advance(begin_ + time);
    for (const Observation& each : attempts_.take_observations()) {
      if (std::holds_alternative<Ended>(each)) return true;
    }
    return false;
  }
  // The core knows that it runs.
  void adopt_one() { attempts_.adopt({{order_of_one(), model::AttemptState::kRunning}}, begin_); }

 private:
  const base::Instant begin_ = base::Instant() + base::hours(1);
  KubernetesSettings settings_ = settings_of_one();
  ClusterView view_{settings_};
  DeviceConfigs configs_;
  PodAttempts attempts_{settings_, [](std::string_view) { return std::string("boot-1"); }};
  WorkloadAttempts workload_attempts_{
      settings_, [](std::string_view) { return std::string("boot-1"); },
      [](const std::string&) { return std::vector<WorkloadPod>(); }};
  ClusterFeed feed_{settings_, {view_, configs_, attempts_, workload_attempts_}};
  std::vector<ClusterFeed::Followed> all_;
};

TEST(ClusterFeed, FollowsNoDevicesWhereGpusAreCountedOnly) {
  Fed fed(DeviceMode::kCounts);
  EXPECT_THAT(fed.paths(), ElementsAre("/api/v1/nodes", "/api/v1/pods", "/api/v1/pods"));
  EXPECT_FALSE(fed.feed().taint_rules().has_value());
}

TEST(ClusterFeed, FollowsClassesOnlyWhereThePlatformWritesAllocations) {
  Fed pinned(DeviceMode::kPinned);
  EXPECT_THAT(pinned.paths(), Contains(HasSubstr("resourceclaims")));
  EXPECT_THAT(pinned.paths(), Not(Contains(HasSubstr("deviceclasses"))));
  EXPECT_TRUE(pinned.feed().taint_rules().has_value());
  EXPECT_THAT(Fed(DeviceMode::kOwned).paths(), Contains(HasSubstr("deviceclasses")));
}

TEST(ClusterFeed, FollowsPodsOfOthersThatHoldSomethingAlone) {
  const Fed fed;
  const std::string& query = fed.of("/pods", "cluster!%3Dtest").first.query;
  EXPECT_THAT(query, HasSubstr("fieldSelector=spec.nodeName%21%3D%2C"));
  EXPECT_THAT(query, HasSubstr("status.phase%21%3DSucceeded"));
}

TEST(ClusterFeed, LeadsAPodOfAJobToItsAttempt) {
  Fed fed;
  fed.pods().on_object(object_of_one());
  ASSERT_EQ(fed.pods_of_one().size(), 1u);
  EXPECT_EQ(fed.pods_of_one().front().phase, PodPhase::kRunning);
}

TEST(ClusterFeed, APodWithOurLabelsInAnotherNamespaceIsNoneOfAJob) {
  Fed fed;
  fed.pods().on_object(object_of_one("ml"));
  EXPECT_TRUE(fed.pods_of_one().empty());
  fed.pods().on_object(object_of_one());
  fed.pods().on_deleted(object_of_one("ml"));
  fed.adopt_one();
  fed.feed().all_listed();
  EXPECT_FALSE(fed.has_ended_after(base::seconds(1)));
}

TEST(ClusterFeed, AListOfPodsDecidesNothingBeforeEverythingIsListed) {
  Fed fed;
  fed.adopt_one();
  fed.pods().on_list_asked();
  fed.pods().on_list_begin();
  fed.pods().on_listed();
  EXPECT_FALSE(fed.has_ended_after(base::seconds(1)));
  fed.feed().all_listed();
  EXPECT_TRUE(fed.has_ended_after(base::seconds(2))) << "it ran, and its pod is not there";
}

TEST(ClusterFeed, ALaterListOfPodsTellsWhichOnesAreGone) {
  Fed fed;
  fed.adopt_one();
  fed.pods().on_object(object_of_one());
  fed.feed().all_listed();
  EXPECT_FALSE(fed.has_ended_after(base::seconds(1)));
  fed.pods().on_list_asked();
  fed.pods().on_list_begin();
  fed.pods().on_listed();
  EXPECT_TRUE(fed.has_ended_after(base::seconds(2)));
}

// Thousands of claims are written twice, by the platform and by kube-scheduler.
TEST(ClusterFeed, SkipsChangesOfItsOwnClaimsThatItHasSeen) {
  Fed fed;
  const auto skips = [&] { return fed.claims().skips_changes("jobs", "gp-test-1-1-0"); };
  EXPECT_FALSE(skips());
  fed.claims().on_object(object_of_one());
  EXPECT_TRUE(skips());
  EXPECT_FALSE(fed.claims().skips_changes("ml", "gp-test-1-1-0"));
  fed.claims().on_deleted(object_of_one());
  EXPECT_FALSE(skips());
  fed.claims().on_object(object_of_one());
  fed.claims().on_list_begin();
  EXPECT_FALSE(skips()) << "a list tells everything anew";
}

TEST(ClusterFeed, SkipsNoChangesOfClaimsOfOthers) {
  Fed fed;
  fed.claims().on_object(object_of_one("ml"));
  EXPECT_FALSE(fed.claims().skips_changes("ml", "gp-test-1-1-0"));
  Json unlabelled = object_of_one();
  unlabelled["metadata"].erase("labels");
  fed.claims().on_object(unlabelled);
  EXPECT_FALSE(fed.claims().skips_changes("jobs", "gp-test-1-1-0"));
}

TEST(ClusterFeed, SkipsNothingWhereThePlatformWritesAllocations) {
  EXPECT_FALSE(static_cast<bool>(Fed(DeviceMode::kOwned).claims().skips_changes));
}

// A claim is there until it is seen to be gone: its devices are not free before.
TEST(ClusterFeed, LeadsAClaimOfAJobToItsAttempt) {
  Fed fed;
  fed.attempts().adopt({}, base::Instant() + base::hours(1));
  fed.claims().on_object(object_of_one());
  fed.feed().all_listed();
  EXPECT_EQ(fed.attempts().size(), 1u);
  fed.attempts().advance(base::Instant() + base::hours(1));
  const std::vector<Call> calls = fed.attempts().take_calls();
  ASSERT_EQ(calls.size(), 1u) << "no job has it";
  EXPECT_EQ(calls.front().kind, CallKind::kDeleteClaim);
}

}  // namespace
}  // namespace gpu_platform::execution
