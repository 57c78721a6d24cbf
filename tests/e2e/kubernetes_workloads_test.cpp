#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "kubernetes/testing/fake_api_server.h"
#include "kubernetes/testing/pod_runner.h"

// Workloads that were not submitted through the platform, from outside: pods of others behind the
// platform's gate, on an API server of the tests; the real daemon admits them.

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kTheirPods = "/api/v1/namespaces/ml/pods";
constexpr const char* kTheirJobs = "/apis/batch/v1/namespaces/ml/jobs";

class KubernetesWorkloads : public ::testing::Test {
 protected:
  KubernetesWorkloads() : runner_(server_) {
    for (const std::string name : {"jobs", "ml", "web"}) {
      Json labels = Json::object();
      if (name == "ml") labels = {{"gpu-platform/queue", "default"}};
      server_.call("POST", "/api/v1/namespaces",
                   {{"apiVersion", "v1"},
                    {"kind", "Namespace"},
                    {"metadata", {{"name", name}, {"labels", labels}}}});
    }
    for (const std::string node : {"alpha", "beta"}) {
      runner_.add_node(node, {.gpus = {}, .counted_gpus = 4, .labels = {}});
    }
    mover_ = std::jthread([this](const std::stop_token& stop) { move(stop); });
  }
  ~KubernetesWorkloads() override {
    daemon_.reset();
    mover_.request_stop();
    wake_.notify_all();
  }

  // Always on the same data.
  void start_daemon(const std::string& further = "", bool admits = true) {
    const std::string path = folder_.path() + "/kubeconfig";
    std::ofstream(path) << server_.kubeconfig();
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .emulate = "",
        .config = "engines:\n  local: false\n  kubernetes:\n    kubeconfig: " + path +
                  "\n    namespace: jobs\n    devices: counts\n    workloads:\n      enabled: " +
                  (admits ? "true" : "false") + "\n      user: backup\n" + further,
        .data_dir = folder_.path() + "/data"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  // A batch Job of others.
  void make_job(const std::string& name, int pods, int gpus) {
    const Json job = server_
                         .call("POST", kTheirJobs,
                               {{"apiVersion", "batch/v1"},
                                {"kind", "Job"},
                                {"metadata", {{"name", name}}},
                                {"spec", {{"parallelism", pods}, {"completions", pods}}}})
                         .json();
    uids_[name] = job["metadata"]["uid"];
    for (int pod = 0; pod < pods; ++pod) make_pod(name, fmt::format("{}-{}", name, pod), gpus);
  }
  // What the Job controller makes.
  void make_pod(const std::string& job, const std::string& name, int gpus,
                const std::string& priority = "") {
    Json pod = pod_of(name, gpus);
    if (!priority.empty()) pod["metadata"]["annotations"]["gpu-platform/priority"] = priority;
    pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-name", job}};
    pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                       {"kind", "Job"},
                                                       {"name", job},
                                                       {"uid", uids_[job]},
                                                       {"controller", true}}});
    server_.call("POST", kTheirPods, pod);
  }
  static Json pod_of(const std::string& name, int gpus) {
    const std::string count = std::to_string(gpus);
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"schedulingGates", Json::array({{{"name", "gpu-platform/admission"}}})},
              {"restartPolicy", "Never"},
              {"containers", Json::array({{{"name", "worker"},
                                           {"image", "registry.example.org/torch:2"},
                                           {"resources",
                                            {{"requests", {{"cpu", "1"}}},
                                             {"limits", {{"nvidia.com/gpu", count}}}}}}})}}}};
  }
  // As the Job controller does when all pods have succeeded.
  void finish_job(const std::string& name) {
    const Json complete = {{"type", "Complete"}, {"status", "True"}};
    server_.call("PATCH", std::string(kTheirJobs) + "/" + name + "/status",
                 {{"status", {{"conditions", Json::array({complete})}}}});
  }
  void suspend_job(const std::string& name, bool is_suspended) {
    server_.call("PATCH", std::string(kTheirJobs) + "/" + name,
                 {{"spec", {{"suspend", is_suspended}}}});
    if (is_suspended) delete_pods_of(name);
  }
  void delete_job(const std::string& name) {
    server_.call("DELETE", std::string(kTheirJobs) + "/" + name);
    delete_pods_of(name);
  }
  void delete_pods_of(const std::string& name) {
    for (const Json& pod : server_.objects(kTheirPods)) {
      const Json labels = pod["metadata"].value("labels", Json::object());
      if (labels.value("batch.kubernetes.io/job-name", "") == name) {
        server_.call("DELETE",
                     std::string(kTheirPods) + "/" + pod["metadata"]["name"].get<std::string>());
      }
    }
  }

  Json pod(const std::string& name) { return server_.object(std::string(kTheirPods) + "/" + name); }
  bool runs(const std::string& name) {
    return eventually([&] {
      const Json found = pod(name);
      return found.is_object() && found["status"]["phase"] == "Running";
    });
  }
  Json condition(const std::string& name) {
    const Json found = pod(name);
    if (!found.is_object()) return nullptr;
    for (const Json& each : found["status"].value("conditions", Json::array())) {
      if (each["type"] == "gpu-platform/Admitted") return each;
    }
    return nullptr;
  }
  bool says(const std::string& pod, const std::string& reason) {
    return eventually([&] {
      const Json found = condition(pod);
      return found.is_object() && found["reason"] == reason;
    });
  }
  bool end(const std::string& name, std::int32_t code) {
    return eventually([&] { return runner_.end("ml/" + name, {code}); });
  }
  // The job of a workload: the newest whose workload begins so.
  std::optional<std::string> job_of(const std::string& workload) {
    const Json list = daemon_->json({"jobs", "list", "--all"});
    if (!list.is_object()) return std::nullopt;
    for (const Json& job : list["jobs"]) {
      const Json& of = job["spec"]["workload"];
      if (of.is_string() && of.get<std::string>().starts_with("ml/" + workload + "/")) {
        return job["id"].get<std::string>();
      }
    }
    return std::nullopt;
  }
  std::string wait_for_job(const std::string& workload) {
    std::optional<std::string> id;
    EXPECT_TRUE(eventually([&] {
      id = job_of(workload);
      return id.has_value();
    })) << daemon_->log();
    return id.value_or("");
  }
  std::size_t jobs_of(const std::string& workload) {
    std::size_t count = 0;
    const Json list = daemon_->json({"jobs", "list", "--all"});
    for (const Json& job : list["jobs"]) {
      const Json& of = job["spec"]["workload"];
      if (of.is_string() && of.get<std::string>().starts_with("ml/" + workload + "/")) ++count;
    }
    return count;
  }

  static void expect_deleted_while_it_ran(const Json& job) {
    SCOPED_TRACE(job.dump(2));
    EXPECT_EQ(job["reason"], "CANCELLED_BY");
    EXPECT_EQ(job["detail"], "its workload was deleted");
    EXPECT_TRUE(job["ended_by"].is_null()) << "no user of the platform did";
    ASSERT_EQ(job["attempts"].size(), 1U);
    EXPECT_FALSE(job["attempts"][0]["started_at"].is_null());
    EXPECT_EQ(job["attempts"][0]["reason"], "CANCELLED_BY");
  }

  kubernetes::FakeApiServer server_;
  kubernetes::PodRunner runner_;
  TemporaryDirectory folder_;
  std::unique_ptr<Daemon> daemon_;
  std::map<std::string, std::string> uids_;

 private:
  void move(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, std::chrono::milliseconds(20));
      runner_.advance();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::jthread mover_;
};

TEST_F(KubernetesWorkloads, AJobOfOthersIsAdmittedCountedAndEndsWithItsExitCode) {
  start_daemon();
  make_job("train", 2, 4);
  ASSERT_TRUE(runs("train-0")) << pod("train-0").dump(2) << daemon_->log();
  ASSERT_TRUE(runs("train-1"));
  EXPECT_NE(pod("train-0")["spec"]["nodeName"], pod("train-1")["spec"]["nodeName"]);
  const std::string id = wait_for_job("Job/train");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  const Json job = daemon_->job(id);
  EXPECT_EQ(job["spec"]["user"], "backup");
  EXPECT_EQ(job["spec"]["workload_pods"], 2);
  EXPECT_EQ(job["gpus"].size(), 8U);
  EXPECT_EQ(daemon_->json({"status"})["available_gpus"], 0);
  EXPECT_TRUE(says("train-0", "Admitted"));
  EXPECT_EQ(condition("train-0")["status"], "True");
  ASSERT_TRUE(end("train-0", 0));
  ASSERT_TRUE(end("train-1", 3));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["exit_code"], 3);
  EXPECT_TRUE(eventually([&] { return daemon_->json({"status"})["available_gpus"] == 8; }));
}

TEST_F(KubernetesWorkloads, WhatWaitsSaysWhyAndStartsWhenItsTurnHasCome) {
  start_daemon();
  make_job("first", 2, 4);
  ASSERT_TRUE(runs("first-1")) << daemon_->log();
  make_job("second", 1, 2);
  ASSERT_TRUE(says("second-0", "NoCapacity")) << condition("second-0").dump();
  EXPECT_EQ(condition("second-0")["status"], "False");
  EXPECT_THAT(condition("second-0")["message"].get<std::string>(), HasSubstr("GPU"));
  EXPECT_TRUE(eventually([&] {
    return std::ranges::any_of(
        server_.objects("/api/v1/namespaces/ml/events"), [](const Json& event) {
          return event["involvedObject"]["name"] == "second-0" && event["reason"] == "Queued";
        });
  }));
  EXPECT_FALSE(pod("second-0")["spec"].contains("nodeName"));
  ASSERT_TRUE(end("first-0", 0));
  ASSERT_TRUE(end("first-1", 0));
  finish_job("first");
  ASSERT_TRUE(runs("second-0")) << daemon_->log();
}

TEST_F(KubernetesWorkloads, APodOfItsOwnIsAJobAndGatesOfOthersAreRespected) {
  start_daemon();
  Json single = pod_of("single", 1);
  single["spec"]["schedulingGates"].push_back({{"name", "example.org/budget"}});
  server_.call("POST", kTheirPods, single);
  ASSERT_TRUE(says("single", "OtherGates"));
  EXPECT_FALSE(job_of("Pod/single"));
  server_.call("PATCH", std::string(kTheirPods) + "/single",
               Json::array({{{"op", "remove"}, {"path", "/spec/schedulingGates/1"}}}),
               "application/json-patch+json");
  ASSERT_TRUE(runs("single")) << daemon_->log();
  const std::string id = wait_for_job("Pod/single");
  ASSERT_TRUE(end("single", 0));
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2);
}

TEST_F(KubernetesWorkloads, NamespacesWithoutTheLabelAreLeftAlone) {
  start_daemon();
  server_.call("POST", "/api/v1/namespaces/web/pods", pod_of("theirs", 1));
  make_job("ours", 1, 1);
  ASSERT_TRUE(runs("ours-0"));
  const Json theirs = server_.object("/api/v1/namespaces/web/pods/theirs");
  EXPECT_EQ(theirs["spec"]["schedulingGates"].size(), 1U);
  EXPECT_FALSE(theirs["metadata"].contains("labels"));
}

TEST_F(KubernetesWorkloads, AWorkloadThatIsDeletedWhileItWaitsIsCancelled) {
  start_daemon();
  make_job("first", 2, 4);
  ASSERT_TRUE(runs("first-1")) << daemon_->log();
  make_job("second", 1, 2);
  const std::string id = wait_for_job("Job/second");
  ASSERT_TRUE(daemon_->reaches(id, "QUEUED"));
  delete_job("second");
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2) << daemon_->log();
  EXPECT_THAT(daemon_->job(id).dump(), HasSubstr("its workload was deleted"));
}

TEST_F(KubernetesWorkloads, AWorkloadThatIsDeletedWhileItRunsIsCancelled) {
  start_daemon();
  make_job("train", 2, 4);
  ASSERT_TRUE(runs("train-1")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  delete_job("train");
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2) << daemon_->log();
  expect_deleted_while_it_ran(daemon_->job(id));
  EXPECT_TRUE(eventually([&] { return daemon_->json({"status"})["available_gpus"] == 8; }));
}

TEST_F(KubernetesWorkloads, APodOfItsOwnThatIsDeletedWhileItRunsIsCancelled) {
  start_daemon();
  server_.call("POST", kTheirPods, pod_of("single", 1));
  ASSERT_TRUE(runs("single")) << daemon_->log();
  const std::string id = wait_for_job("Pod/single");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  server_.call("DELETE", std::string(kTheirPods) + "/single");
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2) << daemon_->log();
  expect_deleted_while_it_ran(daemon_->job(id));
}

TEST_F(KubernetesWorkloads, AWorkloadThatIsDeletedWhileTheDaemonIsAwayIsCancelled) {
  start_daemon();
  make_job("train", 1, 2);
  ASSERT_TRUE(runs("train-0")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  daemon_->kill_now();
  delete_job("train");
  ASSERT_TRUE(eventually([&] { return pod("train-0").is_null(); }));
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2) << daemon_->log();
  expect_deleted_while_it_ran(daemon_->job(id));
}

TEST_F(KubernetesWorkloads, AWorkloadThatHasDoneItsWorkWhileTheDaemonIsAwayIsCompleted) {
  start_daemon();
  make_job("train", 1, 2);
  ASSERT_TRUE(runs("train-0")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  daemon_->kill_now();
  ASSERT_TRUE(end("train-0", 0));
  finish_job("train");
  delete_pods_of("train");
  ASSERT_TRUE(eventually([&] { return pod("train-0").is_null(); }));
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2) << daemon_->log();
  EXPECT_EQ(daemon_->job(id)["exit_code"], 0);
}

TEST_F(KubernetesWorkloads, ASuspendedWorkloadHoldsNothingAndIsAnotherJobWhenItIsResumed) {
  start_daemon();
  make_job("train", 2, 4);
  ASSERT_TRUE(runs("train-1")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  make_job("waiting", 1, 4);
  const std::string waiting = wait_for_job("Job/waiting");
  suspend_job("waiting", true);
  ASSERT_TRUE(daemon_->reaches(waiting, "CANCELLED")) << daemon_->job(waiting).dump(2);
  suspend_job("train", true);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2) << daemon_->log();
  for (const std::string& each : {id, waiting}) {
    EXPECT_EQ(daemon_->job(each)["detail"], "its workload was suspended");
  }
  EXPECT_TRUE(eventually([&] { return daemon_->json({"status"})["available_gpus"] == 8; }));
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  suspend_job("train", false);
  for (const std::string name : {"train-2", "train-3"}) make_pod("train", name, 4);
  ASSERT_TRUE(runs("train-2")) << condition("train-2").dump() << daemon_->log();
  ASSERT_TRUE(runs("train-3"));
  EXPECT_EQ(jobs_of("Job/train"), 2U);
}

TEST_F(KubernetesWorkloads, ADaemonThatAdmitsNoneAnyMoreLetsNoneWaitForEver) {
  start_daemon();
  make_job("first", 2, 4);
  ASSERT_TRUE(runs("first-1")) << daemon_->log();
  make_job("second", 1, 2);
  const std::string id = wait_for_job("Job/second");
  ASSERT_TRUE(daemon_->reaches(id, "QUEUED"));
  const std::string first = wait_for_job("Job/first");
  daemon_->kill_now();
  start_daemon("", false);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(pod("second-0")["spec"]["schedulingGates"].size(), 1U);
  ASSERT_TRUE(end("first-0", 0));
  ASSERT_TRUE(end("first-1", 0));
  EXPECT_TRUE(daemon_->reaches(first, "COMPLETED")) << "what it had admitted is still its own";
}

TEST_F(KubernetesWorkloads, ACancelledWorkloadsPodsGoAndItsReplacementsStay) {
  start_daemon();
  make_job("train", 1, 2);
  ASSERT_TRUE(runs("train-0")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  ASSERT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2);
  EXPECT_TRUE(eventually([&] { return pod("train-0").is_null(); }));
  make_pod("train", "train-again", 2);
  ASSERT_TRUE(says("train-again", "Cancelled")) << condition("train-again").dump();
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  make_job("other", 1, 2);
  ASSERT_TRUE(runs("other-0"));
  EXPECT_EQ(pod("train-again")["spec"]["schedulingGates"].size(), 1U);
  EXPECT_EQ(jobs_of("Job/train"), 1U);
}

TEST_F(KubernetesWorkloads, AnEvictedJobIsQueuedAgainAndItsNextPodIsItsNextAttempt) {
  start_daemon();
  make_job("train", 1, 2);
  ASSERT_TRUE(runs("train-0")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  ASSERT_TRUE(runner_.disrupt("ml/train-0", "EvictionByEvictionAPI", "drain"));
  make_pod("train", "train-1", 2);
  ASSERT_TRUE(runs("train-1")) << daemon_->job(id).dump(2) << daemon_->log();
  ASSERT_TRUE(end("train-1", 0));
  finish_job("train");
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2);
  const Json job = daemon_->job(id);
  ASSERT_EQ(job["attempts"].size(), 2U) << job.dump(2);
  EXPECT_EQ(job["attempts"][0]["reason"], "PREEMPTED");
  EXPECT_EQ(job["failures"], 0);
}

TEST_F(KubernetesWorkloads, AJobOfAHigherClassPreemptsAWorkloadWhichComesBack) {
  start_daemon("policies:\n  preempt_min_runtime: 0s\n");
  make_job("low", 0, 0);
  for (const std::string name : {"low-0", "low-1"}) make_pod("low", name, 4, "low");
  // Its owner says nothing of these two, so they are complete when no further one comes.
  ASSERT_TRUE(runs("low-0")) << condition("low-0").dump() << daemon_->log();
  ASSERT_TRUE(runs("low-1"));
  const std::string id = wait_for_job("Job/low");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  const std::string urgent = daemon_->submit(
      {"--gpus", "4", "--priority", "critical", "--image", "x", "--user", "backup", "--", "train"});
  ASSERT_TRUE(daemon_->reaches(urgent, "RUNNING")) << daemon_->job(urgent).dump(2);
  EXPECT_TRUE(eventually([&] { return pod("low-0").is_null() && pod("low-1").is_null(); }));
  for (const std::string name : {"low-2", "low-3"}) make_pod("low", name, 4, "low");
  ASSERT_TRUE(says("low-2", "NoCapacity")) << condition("low-2").dump();
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", urgent}).exit_code, 0);
  ASSERT_TRUE(runs("low-2")) << daemon_->job(id).dump(2);
  ASSERT_TRUE(runs("low-3"));
  const Json job = daemon_->job(id);
  EXPECT_EQ(job["attempts"].size(), 2U) << job.dump(2);
  EXPECT_EQ(job["preemptions"], 1);
}

TEST_F(KubernetesWorkloads, TheRolesOfAPyTorchJobStartTogether) {
  start_daemon();
  const Json roles = {{"Master", {{"replicas", 1}}}, {"Worker", {{"replicas", 1}}}};
  const Json owner = server_
                         .call("POST", "/apis/kubeflow.org/v1/namespaces/ml/pytorchjobs",
                               {{"apiVersion", "kubeflow.org/v1"},
                                {"kind", "PyTorchJob"},
                                {"metadata", {{"name", "dist"}}},
                                {"spec", {{"pytorchReplicaSpecs", roles}}}})
                         .json();
  const auto make_role = [&](const std::string& name) {
    Json pod = pod_of(name, 4);
    pod["metadata"]["labels"] = {{"training.kubeflow.org/job-name", "dist"}};
    pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "kubeflow.org/v1"},
                                                       {"kind", "PyTorchJob"},
                                                       {"name", "dist"},
                                                       {"uid", owner["metadata"]["uid"]},
                                                       {"controller", true}}});
    server_.call("POST", kTheirPods, pod);
  };
  make_role("dist-master-0");
  ASSERT_TRUE(says("dist-master-0", "Collecting")) << daemon_->log();
  EXPECT_FALSE(job_of("PyTorchJob/dist"));
  make_role("dist-worker-0");
  ASSERT_TRUE(runs("dist-master-0")) << daemon_->log();
  ASSERT_TRUE(runs("dist-worker-0"));
  EXPECT_EQ(daemon_->job(wait_for_job("PyTorchJob/dist"))["spec"]["workload_pods"], 2);
}

TEST_F(KubernetesWorkloads, APodThatFailedLeavesItsPlaceToTheNext) {
  start_daemon();
  make_job("train", 1, 2);
  ASSERT_TRUE(runs("train-0")) << daemon_->log();
  const std::string id = wait_for_job("Job/train");
  make_pod("train", "train-retry", 2);
  ASSERT_TRUE(end("train-0", 1));
  ASSERT_TRUE(runs("train-retry")) << daemon_->job(id).dump(2);
  EXPECT_EQ(pod("train-retry")["spec"]["nodeName"], pod("train-0")["spec"]["nodeName"]);
  ASSERT_TRUE(end("train-retry", 0));
  finish_job("train");
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["attempts"].size(), 1U);
}

TEST_F(KubernetesWorkloads, AQuotaRefusesAWorkloadInWordsAndAnUnknownUserToo) {
  start_daemon("quotas:\n  users:\n    backup: {max_gpus: 2}\n");
  make_job("wide", 1, 4);
  ASSERT_TRUE(says("wide-0", "Refused")) << condition("wide-0").dump() << daemon_->log();
  EXPECT_THAT(condition("wide-0")["message"].get<std::string>(), HasSubstr("2"));
  make_job("narrow", 1, 2);
  ASSERT_TRUE(runs("narrow-0")) << daemon_->log();
  server_.call("PATCH", "/api/v1/namespaces/ml",
               {{"metadata", {{"labels", {{"gpu-platform/user", "no-such-user"}}}}}});
  // Pods and namespaces come by watches of their own: a pod that is seen before the new label is
  // the former user's.
  std::string last;
  const auto is_next_refused = [&, number = 0]() mutable {
    const std::string name = fmt::format("nobodys{}", number++);
    last = name + "-0";
    make_job(name, 1, 1);
    const auto is_refused = [&] {
      const Json found = condition(last);
      return found.is_object() && found["reason"] == "Refused";
    };
    EXPECT_TRUE(eventually([&] { return is_refused() || job_of("Job/" + name); }));
    return is_refused();
  };
  ASSERT_TRUE(eventually(is_next_refused));
  EXPECT_THAT(condition(last)["message"].get<std::string>(), HasSubstr("no-such-user"));
}

TEST_F(KubernetesWorkloads, NoAnnotationOfAPodPassesTheHighestPriorityOfUsers) {
  start_daemon("policies: {highest_user_priority: medium}\n");
  const auto make_single = [&](const std::string& name, const std::string& priority) {
    Json pod = pod_of(name, 1);
    pod["metadata"]["annotations"]["gpu-platform/priority"] = priority;
    server_.call("POST", kTheirPods, pod);
  };
  make_single("proud", "critical");
  ASSERT_TRUE(says("proud", "Refused")) << condition("proud").dump() << daemon_->log();
  EXPECT_THAT(condition("proud")["message"].get<std::string>(),
              HasSubstr("policies.highest_user_priority"));
  make_single("modest", "low");
  EXPECT_TRUE(runs("modest")) << condition("modest").dump() << daemon_->log();
}

TEST_F(KubernetesWorkloads, ADaemonThatIsKilledAgainAndAgainAdmitsEachWorkloadOnce) {
  start_daemon();
  constexpr int kWorkloads = 10;
  const auto pods_of = [](int i) { return 1 + i % 2; };
  for (int i = 0; i < kWorkloads; ++i) {
    make_job(fmt::format("work-{}", i), pods_of(i), 1);
    if (i % 2 == 0) daemon_->kill_now();
    if (i > 0) (void)runner_.end(fmt::format("ml/work-{}-0", i - 1), {0});
    if (!daemon_->is_running()) {
      ASSERT_TRUE(daemon_->start()) << daemon_->log();
    }
  }
  for (int i = 0; i < kWorkloads; ++i) {
    for (int number = 0; number < pods_of(i); ++number) {
      const std::string name = fmt::format("work-{}-{}", i, number);
      const auto is_over = [&] {
        const Json found = pod(name);
        return found.is_object() && found["status"]["phase"] == "Succeeded";
      };
      ASSERT_TRUE(eventually([&] { return is_over() || runner_.end("ml/" + name, {0}); }))
          << pod(name).dump(2) << daemon_->log();
    }
    finish_job(fmt::format("work-{}", i));
  }
  for (int i = 0; i < kWorkloads; ++i) {
    const std::string workload = fmt::format("Job/work-{}", i);
    const std::string id = wait_for_job(workload);
    ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2);
    EXPECT_EQ(jobs_of(workload), 1U);
    EXPECT_EQ(daemon_->job(id)["attempts"].size(), 1U) << daemon_->job(id).dump(2);
  }
}

TEST_F(KubernetesWorkloads, OnlyThePlatformSaysWhichWorkloadAJobStandsFor) {
  start_daemon();
  make_job("train", 1, 1);
  const std::string id = wait_for_job("Job/train");
  const Finished update = daemon_->cli({"jobs", "update", id, "--gpus-per-node", "2"});
  EXPECT_EQ(update.exit_code, 4) << update.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
