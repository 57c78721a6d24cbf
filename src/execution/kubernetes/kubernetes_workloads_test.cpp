#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/kubernetes_harness_fixture.h"
#include "execution/kubernetes/workloads/workload_fixture.h"
#include "model/job_spec.h"

// Workloads of others through the engine, on an API server of the tests.

namespace gpu_platform::execution::testing {
namespace {

using Json = nlohmann::json;
using kubernetes::Misbehaviour;
using State = WorkloadNews::State;

constexpr const char* kJobPods = "/api/v1/namespaces/jobs/pods";

class RecordingPort : public WorkloadPort {
 public:
  void submit(WorkloadSubmission submission) override {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(submission));
  }
  void withdraw(std::string key, std::string_view) override {
    const std::lock_guard lock(mutex_);
    withdrawn_.push_back(std::move(key));
  }
  std::vector<WorkloadSubmission> submitted() const {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }
  std::vector<std::string> withdrawn() const {
    const std::lock_guard lock(mutex_);
    return withdrawn_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<WorkloadSubmission> submitted_;
  std::vector<std::string> withdrawn_;
};

class KubernetesWorkloadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    harness_.options().workload_port = &workload_port_;
    harness_.options().warn = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      warnings_ += line + "\n";
    };
    harness_.options().settings.admits_workloads = true;
    harness_.options().settings.workloads_user = "ann";
    // What is made together, one pod after the other, is seen as one workload.
    harness_.options().settings.workload_settles = base::seconds(1);
    harness_.set_moves(false);
    ASSERT_EQ(harness_.open(), "");
    harness_.server().call("PATCH", "/api/v1/namespaces/jobs",
                           {{"metadata", {{"labels", {{"gpu-platform/queue", "default"}}}}}});
    const Json flock = {
        {"apiVersion", "example.org/v1"}, {"kind", "Flock"}, {"metadata", {{"name", "flock"}}}};
    owner_uid_ = harness_.server()
                     .call("POST", "/apis/example.org/v1/namespaces/jobs/flocks", flock)
                     .json()["metadata"]["uid"];
  }

  // Of a kind that the platform cannot read.
  void make_pod(const std::string& name, std::int64_t gpus = 0) {
    Json pod = their_pod({.name = name,
                          .namespace_name = "jobs",
                          .gpus = gpus,
                          .owner_kind = "Flock",
                          .owner_name = "flock",
                          .owner_uid = owner_uid_,
                          .owner_api = "example.org/v1"});
    pod["metadata"]["labels"]["gpu-platform/group"] = "flock";
    pod["metadata"].erase("uid");
    harness_.server().call("POST", kJobPods, pod);
  }
  Json pod(const std::string& name) {
    return harness_.server().object(std::string(kJobPods) + "/" + name);
  }
  bool until(const std::function<bool()>& condition) {
    return harness_.wait_until([&] {
      harness_.runner().advance();
      return condition();
    });
  }
  // The order of the core for what was submitted.
  StartOrder order_of(const WorkloadSubmission& submission, std::uint64_t job,
                      std::uint32_t attempt = 1) {
    StartOrder order = harness_.order(job, {});
    order.attempt.attempt = attempt;
    order.spec = std::make_shared<const model::JobSpec>(submission.spec);
    order.stop_grace = base::seconds(1);
    order.nodes.front().gpus.clear();
    return order;
  }
  StartOrder begin(std::uint64_t job) {
    make_pod("one");
    make_pod("two");
    const bool is_submitted = until([&] { return !workload_port_.submitted().empty(); });
    EXPECT_TRUE(is_submitted);
    if (!is_submitted) return {};
    const StartOrder order = order_of(workload_port_.submitted().front(), job);
    harness_.engine().start(order);
    EXPECT_TRUE(until([&] { return !harness_.told(order.attempt).started.empty(); }));
    return order;
  }
  std::size_t admissions(const std::string& name) {
    std::size_t count = 0;
    for (const auto& request : harness_.server().requests()) {
      const bool is_admission = request.method == "PATCH" &&
                                request.path == std::string(kJobPods) + "/" + name &&
                                request.content_type == "application/json-patch+json";
      if (is_admission) ++count;
    }
    return count;
  }
  bool waits(const std::string& name) {
    return !list_at(pod(name), {"spec", "schedulingGates"}).empty();
  }

  std::string warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  mutable std::mutex mutex_;
  std::string warnings_;
  RecordingPort workload_port_;
  std::string owner_uid_;
  KubernetesHarness harness_;
};

TEST_F(KubernetesWorkloadsTest, AStartAdmitsThePodsThatWaitAndTheirEndIsTheJobs) {
  const StartOrder order = begin(7);
  EXPECT_EQ(workload_port_.submitted().front().spec.workload_pods, 2U);
  EXPECT_EQ(workload_port_.submitted().front().user, "ann");
  EXPECT_EQ(text_at(pod("one"), {"spec", "nodeSelector", "kubernetes.io/hostname"}),
            order.nodes.front().node_name);
  EXPECT_EQ(text_at(pod("two"), {"metadata", "labels", "gpu-platform/job"}), "7");
  ASSERT_TRUE(harness_.runner().end("jobs/one", {0}));
  ASSERT_TRUE(harness_.runner().end("jobs/two", {4}));
  ASSERT_TRUE(until([&] { return harness_.told(order.attempt).cleaned > 0; }));
  EXPECT_EQ(harness_.told(order.attempt).ended.front().exit.code, 4);
  harness_.engine().forget({order.attempt});
  EXPECT_FALSE(pod("one").is_null()) << "what others have made stays theirs";
}

TEST_F(KubernetesWorkloadsTest, APodThatAsksForMoreThanItsJobHasTakesNoPlaceOfIt) {
  const StartOrder order = begin(7);
  ASSERT_TRUE(harness_.runner().end("jobs/one", {1}));
  harness_.server().call("DELETE", std::string(kJobPods) + "/one");
  make_pod("large", 8);
  make_pod("like", 0);
  ASSERT_TRUE(until([&] { return !waits("like"); }));
  EXPECT_TRUE(waits("large")) << "the queue has given its job no GPU";
}

TEST_F(KubernetesWorkloadsTest, AnAdmissionWhoseAnswerIsLostIsNotMadeTwiceForTwoPods) {
  harness_.server().misbehave({.what = Misbehaviour::What::kCloseAfter,
                               .which = Misbehaviour::Which::kWrites,
                               .method = "PATCH",
                               .path = std::string(kJobPods) + "/one",
                               .times = 2});
  const StartOrder order = begin(7);
  EXPECT_NE(text_at(pod("one"), {"metadata", "labels", "gpu-platform/rank"}),
            text_at(pod("two"), {"metadata", "labels", "gpu-platform/rank"}));
  harness_.engine().stop({order.attempt, true, {}, model::EndReason::kKilledBy});
  ASSERT_TRUE(until([&] { return harness_.told(order.attempt).cleaned > 0; }));
  EXPECT_TRUE(until([&] { return pod("one").is_null() && pod("two").is_null(); }));
}

TEST_F(KubernetesWorkloadsTest, AnEngineThatComesBackKnowsItsPodsByTheirLabels) {
  const StartOrder order = begin(7);
  const std::size_t before = admissions("one");
  harness_.close();
  ASSERT_TRUE(harness_.runner().end("jobs/one", {0}));
  harness_.reopen();
  harness_.engine().adopt({{order, model::AttemptState::kRunning}});
  ASSERT_TRUE(until([&] { return !harness_.told(order.attempt).started.empty(); }));
  make_pod("three");
  ASSERT_TRUE(until([&] { return !waits("three"); })) << "it takes the place of the one that ended";
  EXPECT_EQ(text_at(pod("three"), {"metadata", "labels", "gpu-platform/rank"}),
            text_at(pod("one"), {"metadata", "labels", "gpu-platform/rank"}));
  EXPECT_EQ(admissions("one"), before);
  ASSERT_TRUE(until([&] { return harness_.runner().end("jobs/three", {0}); }));
  ASSERT_TRUE(harness_.runner().end("jobs/two", {0}));
  ASSERT_TRUE(until([&] { return harness_.told(order.attempt).cleaned > 0; }));
  EXPECT_EQ(harness_.told(order.attempt).ended.front().exit.code, 0);
}

TEST_F(KubernetesWorkloadsTest, APodOfAnotherNamespaceWithTheSameLabelsTakesNoPlaceOfAnother) {
  const StartOrder order = begin(7);
  harness_.close();
  Json copy = pod("one");
  copy["metadata"] = {{"name", "a-copy"}, {"labels", copy["metadata"]["labels"]}};
  copy.erase("status");
  harness_.server().call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "elsewhere"}}}});
  const auto made = harness_.server().call("POST", "/api/v1/namespaces/elsewhere/pods", copy);
  ASSERT_EQ(made.status, 201) << made.body;
  harness_.reopen();
  harness_.engine().adopt({{order, model::AttemptState::kRunning}});
  ASSERT_TRUE(until([&] { return !harness_.told(order.attempt).started.empty(); }));
  ASSERT_TRUE(harness_.runner().end("jobs/one", {0}));
  ASSERT_TRUE(harness_.runner().end("jobs/two", {3}));
  ASSERT_TRUE(until([&] { return harness_.told(order.attempt).cleaned > 0; }));
  EXPECT_EQ(harness_.told(order.attempt).ended.front().exit.code, 3);
  EXPECT_FALSE(harness_.server().object("/api/v1/namespaces/elsewhere/pods/a-copy").is_null());
}

TEST_F(KubernetesWorkloadsTest, APodWithoutANodeInTimeIsTakenBackAndItsJobQueuedAgain) {
  harness_.close();
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  harness_.options().settings.start_timeout = base::milliseconds(300);
  harness_.reopen();
  for (const char* node : {"node-0", "node-1", "node-2"}) {
    harness_.server().call("PATCH", std::string("/api/v1/nodes/") + node,
                           {{"spec", {{"unschedulable", true}}}});
  }
  make_pod("one");
  ASSERT_TRUE(until([&] { return !workload_port_.submitted().empty(); }));
  const StartOrder order = order_of(workload_port_.submitted().front(), 9);
  harness_.engine().start(order);
  ASSERT_TRUE(until([&] { return harness_.told(order.attempt).cleaned > 0; }));
  const Ended ended = harness_.told(order.attempt).ended.front();
  EXPECT_EQ(ended.reason, model::EndReason::kPreempted);
  EXPECT_THAT(ended.detail, ::testing::HasSubstr("start_timeout"));
  EXPECT_TRUE(until([&] { return pod("one").is_null(); }));
}

TEST_F(KubernetesWorkloadsTest, APodThatNamesAClaimOfThePlatformsGetsJustTheChosenDevices) {
  const std::string claims = "/apis/resource.k8s.io/v1/namespaces/jobs/resourceclaims";
  Json exact = their_pod({.name = "exact", .namespace_name = "jobs", .gpus = 0, .owner_kind = ""});
  exact["metadata"].erase("uid");
  exact["metadata"]["annotations"]["gpu-platform/gpus"] = "2";
  exact["spec"]["resourceClaims"] =
      Json::array({{{"name", "gpus"}, {"resourceClaimName", "exact-gpus"}}});
  harness_.server().call("POST", kJobPods, exact);
  ASSERT_TRUE(until([&] { return !workload_port_.submitted().empty(); }));
  const WorkloadSubmission submission = workload_port_.submitted().front();
  EXPECT_EQ(submission.spec.request.gpus, 2U);
  StartOrder order = harness_.order(5, {});
  order.spec = std::make_shared<const model::JobSpec>(submission.spec);
  LaunchGpu second = order.nodes.front().gpus.front();
  second.info.uuid = "GPU-0000-0009";
  second.grant.gpu_index = 9;
  order.nodes.front().gpus.push_back(second);
  harness_.engine().start(order);
  ASSERT_TRUE(until([&] { return !harness_.told(order.attempt).started.empty(); }));
  const Json claim = harness_.server().object(claims + "/exact-gpus");
  std::vector<std::string> devices;
  const Json& results = at(claim, {"status", "allocation", "devices"});
  for (const Json& each : list_at(results, {"results"})) {
    devices.emplace_back(text_at(each, {"device"}));
  }
  EXPECT_THAT(devices, ::testing::UnorderedElementsAre("gpu-5", "gpu-9"));
  ASSERT_TRUE(harness_.runner().end("jobs/exact", {0}));
  ASSERT_TRUE(until([&] { return harness_.told(order.attempt).cleaned > 0; }));
  EXPECT_TRUE(harness_.server().objects(claims).empty()) << "its devices are free";
}

TEST_F(KubernetesWorkloadsTest, AGroupWithoutAnOwnerIsCancelledWhenItsPodsAreDeleted) {
  for (const char* name : {"one", "two"}) {
    Json bare = their_pod({.name = name, .namespace_name = "jobs", .gpus = 0, .owner_kind = ""});
    bare["metadata"]["labels"]["gpu-platform/group"] = "pair";
    bare["metadata"].erase("uid");
    harness_.server().call("POST", kJobPods, bare);
  }
  ASSERT_TRUE(until([&] { return !workload_port_.submitted().empty(); }));
  const StartOrder order = order_of(workload_port_.submitted().front(), 7);
  harness_.engine().start(order);
  ASSERT_TRUE(until([&] { return !harness_.told(order.attempt).started.empty(); }));
  for (const char* name : {"one", "two"}) {
    harness_.server().call("DELETE", std::string(kJobPods) + "/" + name);
  }
  ASSERT_TRUE(until([&] { return !harness_.told(order.attempt).ended.empty(); }));
  const Ended ended = harness_.told(order.attempt).ended.front();
  EXPECT_EQ(ended.reason, model::EndReason::kCancelledBy);
  EXPECT_EQ(ended.detail, "its workload was deleted");
}

TEST_F(KubernetesWorkloadsTest, ANamespaceWithTheLabelAndWithoutTheRoleIsNamedInTheLog) {
  harness_.server().lack("patch", "pods/status");
  harness_.server().call(
      "POST", "/api/v1/namespaces",
      {{"apiVersion", "v1"},
       {"kind", "Namespace"},
       {"metadata", {{"name", "late"}, {"labels", {{"gpu-platform/queue", "default"}}}}}});
  EXPECT_TRUE(until([&] {
    return warnings().contains("namespace late has the label gpu-platform/queue");
  })) << warnings();
}

TEST_F(KubernetesWorkloadsTest, WithoutPodsAWaitingJobIsWithdrawn) {
  harness_.server().call("POST", kJobPods, [] {
    Json alone =
        their_pod({.name = "alone", .namespace_name = "jobs", .gpus = 0, .owner_kind = ""});
    alone["metadata"].erase("uid");
    return alone;
  }());
  ASSERT_TRUE(until([&] { return !workload_port_.submitted().empty(); }));
  const std::string key = workload_port_.submitted().front().key;
  harness_.engine().tell_workload({key, State::kWaiting, model::JobId(3), "NoCapacity", "full"});
  ASSERT_TRUE(until([&] {
    const Json found = pod("alone");
    const Json& conditions = list_at(found, {"status", "conditions"});
    return std::ranges::any_of(
        conditions, [](const Json& each) { return text_at(each, {"reason"}) == "NoCapacity"; });
  }));
  EXPECT_TRUE(std::ranges::any_of(
      list_at(pod("alone"), {"status", "conditions"}),
      [](const Json& each) { return text_at(each, {"type"}) == "PodScheduled"; }))
      << "conditions of others stay";
  harness_.server().call("DELETE", std::string(kJobPods) + "/alone");
  EXPECT_TRUE(until([&] { return workload_port_.withdrawn() == std::vector{key}; }));
}

}  // namespace
}  // namespace gpu_platform::execution::testing
