#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/letters.h"
#include "base/prng.h"
#include "harness.h"
#include "kubernetes/client.h"

// The real daemon on a real control plane, as the platform's own user: kwok plays the kubelets of
// nodes with eight GPUs each. Run by scripts/check_kubernetes --with, which says where the cluster
// is.

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using kubernetes::Method;

constexpr const char* kPodsOfCluster = "/api/v1/namespaces/default/pods";
constexpr const char* kClaimsOfCluster =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

class KubernetesCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("GPU_PLATFORM_TEST_KUBERNETES");
    if (folder == nullptr) GTEST_SKIP() << "there is no cluster; see scripts/check_kubernetes";
    folder_ = folder;
    const Finished nodes = run_command({GP_SOURCE_DIRECTORY "/scripts/check_kubernetes", "--nodes",
                                        "4", "--of", folder_, "--name", "gpu-node"});
    ASSERT_EQ(nodes.exit_code, 0) << nodes.out << nodes.err;
    auto access = kubernetes::load_kubeconfig(folder_ + "/admin.kubeconfig", "");
    ASSERT_TRUE(access.has_value()) << access.error().message;
    admin_ = *kubernetes::Client::make(*std::move(access));
    apply_policies("admission_account.yaml");
    apply_policies("admission_labels.yaml");
    prepare();
    remove_leftovers();
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .emulate = "",
        .config = "engines:\n  local: false\n  kubernetes:\n    kubeconfig: " + folder_ +
                  "/platform.kubeconfig\n    namespace: default\n" + further_config()});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    ASSERT_TRUE(eventually([&] { return daemon_->json({"status"})["total_gpus"] == 32; }))
        << daemon_->json({"status"}).dump(2) << daemon_->log();
  }

  // What the administrator does before the daemon starts.
  virtual void prepare() {}
  virtual std::string further_config() const { return {}; }

  Json ask(kubernetes::Request request) {
    std::optional<kubernetes::Answer> answer;
    admin_->send(std::move(request), [&](const kubernetes::Answer& came) { answer = came; });
    while (!answer) admin_->poll(base::seconds(1));
    return Json::parse(answer->body, nullptr, false);
  }
  // Gives the platform's user further roles of deploy/kubernetes: "access-allocate" or
  // "access-queue" of tests/kubernetes/objects.jq.
  void give_access(const std::string& access) {
    const Finished objects =
        run_command({"jq", "-cn", "-f", GP_SOURCE_DIRECTORY "/tests/kubernetes/objects.jq", "--arg",
                     "what", access, "--arg", "name", "default", "--argjson", "count", "0"});
    ASSERT_EQ(objects.exit_code, 0) << objects.err;
    std::istringstream lines(objects.out);
    for (std::string line; std::getline(lines, line);) {
      const Json binding = Json::parse(line);
      const std::string place = binding["metadata"].contains("namespace")
                                    ? "namespaces/default/rolebindings"
                                    : "clusterrolebindings";
      const Json bound = ask({.method = Method::kPost,
                              .path = "/apis/rbac.authorization.k8s.io/v1/" + place,
                              .body = line});
      EXPECT_TRUE(bound["kind"] == binding["kind"] || bound["reason"] == "AlreadyExists")
          << bound.dump(2);
    }
  }
  // The user of the test's cluster stands for the platform's service account.
  void apply_policies(const std::string& file) {
    std::string text = read_file(GP_SOURCE_DIRECTORY "/deploy/kubernetes/" + file);
    const std::string account = "'system:serviceaccount:gpu-platform:gpu-platform'";
    for (std::size_t at = 0; (at = text.find(account)) != std::string::npos;) {
      text.replace(at, account.size(), "'gpu-platform'");
    }
    const std::string separator = "\n---\n";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(separator, at), text.size());
      apply_document(text.substr(at, end - at));
      at = end + separator.size();
    }
  }
  void apply_document(const std::string& document) {
    const std::size_t at = document.find("\nkind: ") + 7;
    const std::string kind = document.substr(at, document.find('\n', at) - at);
    const bool is_binding = kind.ends_with("Binding");
    const std::string plural = base::to_lower(
        is_binding ? kind + "s" : kind.substr(0, kind.size() - 1) + "ies");  // a policy
    const Json made = ask({.method = Method::kPost,
                           .path = "/apis/admissionregistration.k8s.io/v1/" + plural,
                           .body = document,
                           .content_type = "application/yaml"});
    EXPECT_TRUE(made["kind"] != "Status" || made["reason"] == "AlreadyExists") << made.dump(2);
  }
  // Each test has a new data directory, and pods of others that an earlier one admitted stay.
  void remove_leftovers() {
    const std::string label = "labelSelector=gpu-platform%2Fcluster%3Ddefault";
    for (const std::string path : {kPodsOfCluster, kClaimsOfCluster}) {
      const Json removed =
          ask({.method = Method::kDelete, .path = path + "?gracePeriodSeconds=0&" + label});
      EXPECT_NE(removed.value("status", Json()), "Failure") << removed.dump(2);
      EXPECT_TRUE(eventually([&] { return ask({.path = path + "?" + label})["items"].empty(); }))
          << "what has a finalizer is of a test that did not end well";
    }
  }
  // Objects of the platform; pods of others that it has admitted stay.
  std::size_t count(const std::string& path) {
    const Json list = ask({.path = path + "?labelSelector=gpu-platform%2Fcluster%3Ddefault"
                                          "%2C%21gpu-platform%2Fadopted"});
    return list["items"].size();
  }
  bool is_clean(std::chrono::seconds limit = std::chrono::seconds(30)) {
    return eventually([&] { return count(kPodsOfCluster) == 0 && count(kClaimsOfCluster) == 0; },
                      limit);
  }
  std::string submit(std::vector<std::string> options) {
    options.insert(options.end(),
                   {"--image", "registry.example.org/torch:2", "--user", "backup", "--", "train"});
    return daemon_->submit(std::move(options));
  }
  static std::string pod_name(const std::string& job, int rank = 0) {
    return fmt::format("gp-default-{}-1-{}", job, rank);
  }
  // Ends the container of a pod; false while there is no such pod.
  bool end(const std::string& job, int code, int rank = 0) {
    const Json annotations = {{"gpu-platform.test/run-seconds", "0"},
                              {"gpu-platform.test/exit-code", std::to_string(code)}};
    const Json pod = ask({.method = Method::kPatch,
                          .path = fmt::format("{}/{}", kPodsOfCluster, pod_name(job, rank)),
                          .body = Json{{"metadata", {{"annotations", annotations}}}}.dump(),
                          .content_type = "application/merge-patch+json"});
    return pod["kind"] == "Pod";
  }

  std::string folder_;
  std::unique_ptr<kubernetes::Client> admin_;
  std::unique_ptr<Daemon> daemon_;
};

// Nodes whose GPUs are counted, a labelled namespace, and the policy of deploy/kubernetes.
class KubernetesClusterWorkloads : public KubernetesCluster {
 protected:
  void prepare() override {
    const Json gpus = {{"nvidia.com/gpu", "8"}};
    for (int node = 0; node < 4; ++node) {
      patch(fmt::format("/api/v1/nodes/gpu-node-{}/status", node),
            {{"status", {{"capacity", gpus}, {"allocatable", gpus}}}});
    }
    give_access("access-queue");
    const Json labels = {{"gpu-platform/queue", "default"}, {"gpu-platform/user", "backup"}};
    patch("/api/v1/namespaces/default", {{"metadata", {{"labels", labels}}}});
    apply_policy();
  }
  std::string further_config() const override {
    return "    devices: counts\n    workloads: {enabled: true}\n";
  }
  void patch(const std::string& path, const Json& change) {
    const Json answer = ask({.method = Method::kPatch,
                             .path = path,
                             .body = change.dump(),
                             .content_type = "application/strategic-merge-patch+json"});
    EXPECT_NE(answer["kind"], "Status") << path << answer.dump(2);
  }
  void apply_policy() {
    apply_policies("admission_gate.yaml");
    // They are in force a moment later.
    ASSERT_TRUE(eventually([&] { return is_gated("8"); })) << "the policy puts no gate on a pod";
    EXPECT_FALSE(is_gated("")) << "a pod without GPUs is left alone";
    ASSERT_TRUE(eventually([&] { return probe("", {{"gpu-platform/job", "1"}})["code"] == 422; }))
        << probe("", {{"gpu-platform/job", "1"}}).dump(2);
  }
  // What the server makes of a pod that asks for so many GPUs; it is not made.
  Json probe(const std::string& gpus, const Json& labels) {
    const Json pod = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", {{"name", "probe"}, {"labels", labels}}},
                      {"spec", {{"containers", Json::array({container(gpus)})}}}};
    return ask({.method = Method::kPost,
                .path = std::string(kPodsOfCluster) + "?dryRun=All",
                .body = pod.dump()});
  }
  // Whether it gets the gate.
  bool is_gated(const std::string& gpus) {
    const Json made = probe(gpus, Json::object());
    return made["spec"].is_object() && made["spec"].contains("schedulingGates");
  }
  static Json container(const std::string& gpus) {
    Json container = {{"name", "worker"}, {"image", "example.org/job:1"}};
    if (!gpus.empty()) container["resources"]["limits"]["nvidia.com/gpu"] = gpus;
    return container;
  }
  void make_job(const std::string& name, int pods, const std::string& run_seconds) {
    const Json annotations = {{"gpu-platform.test/run-seconds", run_seconds}};
    const Json pod = {
        {"metadata", {{"annotations", annotations}}},
        {"spec", {{"restartPolicy", "Never"}, {"containers", Json::array({container("8")})}}}};
    const Json job = {{"apiVersion", "batch/v1"},
                      {"kind", "Job"},
                      {"metadata", {{"name", name}}},
                      {"spec", {{"parallelism", pods}, {"completions", pods}, {"template", pod}}}};
    const Json made = ask({.method = Method::kPost,
                           .path = "/apis/batch/v1/namespaces/default/jobs",
                           .body = job.dump()});
    EXPECT_EQ(made["kind"], "Job") << made.dump(2);
  }
  Json pods_of_job(const std::string& name) {
    return ask({.path = fmt::format("{}?labelSelector=batch.kubernetes.io%2Fjob-name%3D{}",
                                    kPodsOfCluster, name)})["items"];
  }
  std::string wait_for_job(const std::string& name) {
    const std::string prefix = "default/Job/" + name + "/";
    std::string id;
    EXPECT_TRUE(eventually([&] {
      const Json list = daemon_->json({"jobs", "list", "--all"});
      for (const Json& job : list["jobs"]) {
        const Json& of = job["spec"]["workload"];
        if (of.is_string() && of.get<std::string>().starts_with(prefix)) id = job["id"];
      }
      return !id.empty();
    })) << pods_of_job(name).dump(2)
        << daemon_->log();
    return id;
  }
  // Whether a pod of it has a condition with this reason.
  bool says(const std::string& job, const std::string& reason) {
    return eventually([&] {
      return pods_of_job(job).dump().find("\"reason\":\"" + reason + "\"") != std::string::npos;
    });
  }
};

TEST_F(KubernetesClusterWorkloads, ABatchJobOfOthersIsGatedQueuedAdmittedAndRuns) {
  make_job("first", 4, "15");
  const std::string first = wait_for_job("first");
  ASSERT_TRUE(daemon_->reaches(first, "RUNNING"))
      << daemon_->job(first).dump(2) << pods_of_job("first").dump(2);
  EXPECT_EQ(daemon_->json({"status"})["available_gpus"], 0);
  make_job("second", 2, "1");
  const std::string second = wait_for_job("second");
  EXPECT_TRUE(says("second", "NoCapacity")) << pods_of_job("second").dump(2);
  ASSERT_TRUE(daemon_->reaches(first, "COMPLETED")) << daemon_->job(first).dump(2);
  ASSERT_TRUE(daemon_->reaches(second, "COMPLETED")) << daemon_->job(second).dump(2);
  EXPECT_TRUE(says("second", "Admitted"));
  EXPECT_TRUE(eventually([&] {
    const Json job = ask({.path = "/apis/batch/v1/namespaces/default/jobs/second"});
    return job["status"].is_object() && job["status"].value("succeeded", 0) == 2;
  }));
}

TEST_F(KubernetesClusterWorkloads, AUserNeitherWritesThePlatformsLabelsNorLiftsItsGate) {
  for (const std::string label : {"cluster", "job", "attempt", "rank", "adopted"}) {
    const Json refused = probe("8", {{"gpu-platform/" + label, "default"}});
    EXPECT_EQ(refused["kind"], "Status") << label;
    EXPECT_THAT(refused["message"].get<std::string>(), HasSubstr("the platform alone")) << label;
  }
  EXPECT_EQ(probe("8", {{"gpu-platform/group", "mine"}})["kind"], "Pod");
  make_job("patient", 4, "15");
  const std::string patient = wait_for_job("patient");
  ASSERT_TRUE(daemon_->reaches(patient, "RUNNING")) << daemon_->job(patient).dump(2);
  make_job("hasty", 1, "1");
  const std::string hasty = wait_for_job("hasty");
  EXPECT_TRUE(says("hasty", "NoCapacity")) << pods_of_job("hasty").dump(2);
  const std::string pod = pods_of_job("hasty")[0]["metadata"]["name"];
  const auto change = [&](const Json& what) {
    return ask({.method = Method::kPatch,
                .path = std::string(kPodsOfCluster) + "/" + pod,
                .body = what.dump(),
                .content_type = "application/merge-patch+json"});
  };
  const Json without_gate = change({{"spec", {{"schedulingGates", nullptr}}}});
  EXPECT_EQ(without_gate["kind"], "Status") << without_gate.dump(2);
  EXPECT_THAT(without_gate.dump(), HasSubstr("is lifted by the platform"));
  const Json labelled = change({{"metadata", {{"labels", {{"gpu-platform/adopted", "default"}}}}}});
  EXPECT_EQ(labelled["kind"], "Status") << labelled.dump(2);
  EXPECT_EQ(change({{"metadata", {{"labels", {{"mine", "1"}}}}}})["kind"], "Pod");
  ASSERT_TRUE(daemon_->reaches(hasty, "COMPLETED")) << daemon_->job(hasty).dump(2);
}

TEST_F(KubernetesClusterWorkloads, ACancelledJobsReplacementsStayGated) {
  make_job("endless", 1, "1000");
  const std::string id = wait_for_job("endless");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2);
  EXPECT_TRUE(says("endless", "Cancelled")) << pods_of_job("endless").dump(2);
  ask({.method = Method::kDelete,
       .path = "/apis/batch/v1/namespaces/default/jobs/endless?propagationPolicy=Background"});
}

TEST_F(KubernetesCluster, KubeSchedulerAllocatesJustTheDevicesThatTheJobWasGiven) {
  const std::string id = submit({"--gpus", "2"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  const Json job = daemon_->job(id);
  const Json used = ask({.path = fmt::format("{}/{}", kClaimsOfCluster, pod_name(id))});
  EXPECT_EQ(used["status"]["allocation"]["devices"]["results"].size(), 2U) << used.dump(2);
  std::string rules;
  for (const Json& request : used["spec"]["devices"]["requests"]) rules += request.dump();
  for (const Json& gpu : job["gpus"]) {
    EXPECT_THAT(rules, HasSubstr(gpu["uuid"].get<std::string>()));
  }
  ASSERT_TRUE(end(id, 7));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["exit_code"], 7);
  EXPECT_TRUE(is_clean());
}

// Run on a cluster that has DeviceTaintRules.
class KubernetesTaintRules : public KubernetesCluster {
 protected:
  static constexpr const char* kRules = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
  static constexpr const char* kRule = "quarantine";

  void TearDown() override {
    if (admin_) ask({.method = Method::kDelete, .path = rule_path()});
  }
  static std::string rule_path() { return fmt::format("{}/{}", kRules, kRule); }
  void taint(const std::string& node, const std::string& device) {
    const Json rule = {
        {"metadata", {{"name", kRule}}},
        {"spec",
         {{"deviceSelector", {{"driver", "gpu.nvidia.com"}, {"pool", node}, {"device", device}}},
          {"taint",
           {{"key", "example.org/quarantine"}, {"value", "xid-79"}, {"effect", "NoSchedule"}}}}}};
    const Json made = ask({.method = Method::kPost, .path = kRules, .body = rule.dump()});
    ASSERT_EQ(made["kind"], "DeviceTaintRule") << made.dump(2);
  }
  bool has_free(int gpus) {
    return eventually([&] { return daemon_->json({"status"})["available_gpus"] == gpus; });
  }
};

TEST_F(KubernetesTaintRules, ADeviceThatARuleTaintsIsNotGivenUntilTheRuleIsGone) {
  taint("gpu-node-1", "gpu-3");
  ASSERT_TRUE(has_free(31)) << daemon_->json({"status"}).dump(2) << daemon_->log();
  EXPECT_THAT(daemon_->json({"status"}).dump(),
              HasSubstr("taint example.org/quarantine=xid-79:NoSchedule of rule quarantine"));
  const std::string rest = submit({"--nodes", "3", "--gpus-per-node", "8"});
  ASSERT_TRUE(daemon_->reaches(rest, "RUNNING")) << daemon_->job(rest).dump(2);
  const std::string whole = submit({"--gpus", "8"});
  const std::string part = submit({"--gpus", "7"});
  ASSERT_TRUE(daemon_->reaches(part, "RUNNING")) << daemon_->job(part).dump(2);
  EXPECT_EQ(daemon_->job(whole)["state"], "QUEUED");
  ASSERT_TRUE(end(part, 0));
  ASSERT_TRUE(daemon_->reaches(part, "COMPLETED"));
  ask({.method = Method::kDelete, .path = rule_path()});
  ASSERT_TRUE(daemon_->reaches(whole, "RUNNING")) << daemon_->job(whole).dump(2);
  ASSERT_TRUE(end(whole, 0));
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(end(rest, 0, rank));
  ASSERT_TRUE(daemon_->reaches(rest, "COMPLETED"));
  EXPECT_TRUE(is_clean());
}

// The platform allocates the devices, of a class with a configuration.
class KubernetesClusterOwned : public KubernetesCluster {
 protected:
  void prepare() override {
    give_access("access-allocate");
    configure(Json::array({{{"opaque", opaque_}}}));
  }
  void TearDown() override {
    if (admin_) configure(nullptr);
  }
  std::string further_config() const override { return "    devices: owned\n"; }

  // Of the class; null: none.
  void configure(const Json& config) {
    const Json after = ask({.method = Method::kPatch,
                            .path = "/apis/resource.k8s.io/v1/deviceclasses/gpu.nvidia.com",
                            .body = Json{{"spec", {{"config", config}}}}.dump(),
                            .content_type = "application/merge-patch+json"});
    EXPECT_EQ(after["kind"], "DeviceClass") << after.dump(2);
  }

  // Runs a job with so many GPUs, whose allocation must have this configuration.
  void expect_config(int gpus, const Json& expected) {
    const std::string id = submit({"--gpus", std::to_string(gpus)});
    ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
    const Json claim = ask({.path = fmt::format("{}/{}", kClaimsOfCluster, pod_name(id))});
    EXPECT_EQ(claim["status"]["allocation"]["devices"]["config"], expected) << claim.dump(2);
    ASSERT_TRUE(end(id, 0));
    ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2);
    EXPECT_TRUE(is_clean());
  }

  const Json opaque_ = {{"driver", "gpu.nvidia.com"},
                        {"parameters", {{"kind", "GpuConfig"}, {"strategy", "TimeSlicing"}}}};
};

// Claims that a policy of the site configures when they are made.
class KubernetesClusterOwnedAndConfigured : public KubernetesClusterOwned {
 protected:
  void prepare() override {
    KubernetesClusterOwned::prepare();
    const Json claims = {{"apiGroups", Json::array({"resource.k8s.io"})},
                         {"apiVersions", Json::array({"v1"})},
                         {"operations", Json::array({"CREATE"})},
                         {"resources", Json::array({"resourceclaims"})}};
    const Json change = {
        {"patchType", "JSONPatch"},
        {"jsonPatch",
         {{"expression",
           fmt::format(
               "[JSONPatch{{op: 'add', path: '/spec/devices/config', value: dyn([{{'opaque': "
               "{{'driver': dyn('gpu.nvidia.com'), 'parameters': dyn({})}}}}])}}]",
               opaque_["parameters"].dump())}}}};
    make("mutatingadmissionpolicies",
         {{"matchConstraints", {{"resourceRules", Json::array({claims})}}},
          {"failurePolicy", "Fail"},
          {"reinvocationPolicy", "Never"},
          {"mutations", Json::array({change})}});
    make("mutatingadmissionpolicybindings", {{"policyName", kPolicy}});
    // It is in force a moment later.
    EXPECT_TRUE(eventually([&] { return probe()["spec"]["devices"].contains("config"); }))
        << probe().dump(2);
  }
  void TearDown() override {
    if (admin_) {
      for (const char* plural : {"mutatingadmissionpolicybindings", "mutatingadmissionpolicies"}) {
        ask({.method = Method::kDelete, .path = path_of(plural) + "/" + kPolicy});
      }
    }
    KubernetesClusterOwned::TearDown();
  }

  static constexpr const char* kPolicy = "test-config";
  static std::string path_of(const std::string& plural) {
    return "/apis/admissionregistration.k8s.io/v1/" + plural;
  }
  void make(const std::string& plural, const Json& spec) {
    const Json made = ask({.method = Method::kPost,
                           .path = path_of(plural),
                           .body = Json{{"metadata", {{"name", kPolicy}}}, {"spec", spec}}.dump()});
    EXPECT_NE(made["kind"], "Status") << made.dump(2);
  }
  // What the server makes of a claim; it is not made.
  Json probe() {
    const Json exactly = {{"deviceClassName", "gpu.nvidia.com"}};
    const Json request = {{"name", "gpu-0"}, {"exactly", exactly}};
    const Json claim = {{"metadata", {{"name", "probe"}}},
                        {"spec", {{"devices", {{"requests", Json::array({request})}}}}}};
    return ask({.method = Method::kPost,
                .path = std::string(kClaimsOfCluster) + "?dryRun=All",
                .body = claim.dump()});
  }
};

TEST_F(KubernetesClusterOwned, AnAllocationOfThePlatformHasTheConfigurationOfItsClass) {
  expect_config(
      2, Json::array(
             {{{"source", "FromClass"}, {"requests", {"gpu-0", "gpu-1"}}, {"opaque", opaque_}}}));
}

TEST_F(KubernetesClusterOwnedAndConfigured, AnAllocationHasThatOfItsClaimToo) {
  const Json of_class = {
      {"source", "FromClass"}, {"requests", Json::array({"gpu-0"})}, {"opaque", opaque_}};
  expect_config(1, Json::array({of_class, {{"source", "FromClaim"}, {"opaque", opaque_}}}));
}

TEST_F(KubernetesCluster, AGangStartsTogetherAndLeavesNothing) {
  const std::string id = submit({"--nodes", "3", "--gpus", "24"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  EXPECT_EQ(count(kPodsOfCluster), 3U);
  ASSERT_TRUE(end(id, 4, 1));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->job(id)["exit_code"], 4) << daemon_->job(id).dump(2);
  EXPECT_TRUE(is_clean());
}

TEST_F(KubernetesCluster, ACancelledJobsGpusAreFreeForTheNext) {
  const std::string first = submit({"--nodes", "4", "--gpus", "32"});
  ASSERT_TRUE(daemon_->reaches(first, "RUNNING"));
  const std::string next = submit({"--gpus", "8"});
  ASSERT_TRUE(daemon_->reaches(next, "QUEUED"));
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", first}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(first, "CANCELLED"));
  ASSERT_TRUE(daemon_->reaches(next, "RUNNING")) << daemon_->job(next).dump(2);
  ASSERT_TRUE(end(next, 0));
  ASSERT_TRUE(daemon_->reaches(next, "COMPLETED"));
  EXPECT_TRUE(is_clean());
}

TEST_F(KubernetesCluster, EveryPodIsAccountedForWhenTheDaemonIsKilledAtTwentyMoments) {
  base::Prng prng(16);
  constexpr int kKills = 20;
  std::vector<std::string> ids;
  std::set<std::string> ended;
  for (int kill = 0; kill < kKills; ++kill) {
    for (std::uint64_t n = 1 + prng.below(2); n > 0; --n) ids.push_back(submit({"--gpus", "1"}));
    const std::string& id = ids[prng.below(ids.size())];
    const bool is_away = prng.chance(1, 2);
    if (is_away) daemon_->kill_now();
    if (!ended.contains(id) && end(id, std::stoi(id) % 100)) ended.insert(id);
    if (!is_away) daemon_->kill_now();
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  for (const std::string& id : ids) {
    if (!ended.contains(id)) {
      ASSERT_TRUE(eventually([&] { return end(id, std::stoi(id) % 100); }))
          << daemon_->job(id).dump(2);
    }
    ASSERT_TRUE(eventually([&] { return !daemon_->job(id)["ended_at"].is_null(); }))
        << daemon_->job(id).dump(2);
    const Json job = daemon_->job(id);
    EXPECT_EQ(job["exit_code"], std::stoi(id) % 100) << job.dump(2);
    EXPECT_EQ(job["attempts"].size(), 1U) << job.dump(2);
  }
  // A pod that two daemons may have asked for goes a minute after the last start at the earliest.
  EXPECT_TRUE(is_clean(std::chrono::seconds(180)));
}

}  // namespace
}  // namespace gpu_platform::e2e
