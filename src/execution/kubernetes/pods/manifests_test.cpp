#include "execution/kubernetes/pods/manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/names.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

model::JobSpec a_spec() {
  model::JobSpec spec;
  spec.name = "train";
  spec.user = "ann";
  spec.uid = 1000;
  spec.gid = 100;
  spec.team = "vision";
  spec.command = {"python", "train.py"};
  spec.image = "registry.example/torch:2";
  return spec;
}

LaunchNode a_node(const std::string& name, std::uint32_t gpus) {
  LaunchNode node;
  node.node_name = name;
  node.cpus = 16;
  node.memory = base::kGiB * 64;
  for (std::uint32_t i = 0; i < gpus; ++i) {
    model::GpuInfo gpu;
    gpu.uuid = "GPU-" + name + "-" + std::to_string(i);
    node.gpus.push_back({.info = gpu, .grant = {.gpu_index = i}});
  }
  return node;
}

StartOrder an_order(const model::JobSpec& spec, std::vector<LaunchNode> nodes) {
  StartOrder order;
  order.attempt = {model::JobId(42), 2};
  order.spec = std::make_shared<const model::JobSpec>(spec);
  order.nodes = std::move(nodes);
  order.stop_grace = base::milliseconds(30'500);
  return order;
}

KubernetesSettings settings() {
  KubernetesSettings settings;
  settings.cluster = "lab";
  settings.namespace_name = "jobs";
  return settings;
}

Json pod_of(const StartOrder& order, const KubernetesSettings& with = settings(),
            PodOptions options = {}) {
  const base::Result<Json> pod = pod_manifest(order, options, with);
  EXPECT_TRUE(pod.has_value()) << (pod ? "" : pod.error().message);
  return pod.value_or(Json());
}

std::string error_of(const StartOrder& order, const PodOptions& options = {}) {
  const base::Result<Json> pod = pod_manifest(order, options, settings());
  return pod ? "" : pod.error().field + ": " + pod.error().message;
}

TEST(Names, FollowFromTheAttempt) {
  const model::AttemptId attempt{model::JobId(42), 2};
  EXPECT_EQ(object_name("lab", attempt, 3), "gp-lab-42-2-3");
  EXPECT_EQ(service_name("lab", attempt), "gp-lab-42-2");
}

TEST(Names, TheServiceOfTheLargestAttemptIsADnsLabel) {
  const model::AttemptId largest{model::JobId(std::numeric_limits<std::uint64_t>::max()),
                                 std::numeric_limits<std::uint32_t>::max()};
  EXPECT_LE(service_name(std::string(24, 'c'), largest).size(), 63U);
}

TEST(PodManifest, IsWhatPodSecurityCallsRestricted) {
  const Json pod = pod_of(an_order(a_spec(), {a_node("n1", 2)}));
  const Json& spec = pod["spec"];
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["enableServiceLinks"], false);
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["securityContext"], Json::parse(R"({"runAsNonRoot":true,"runAsUser":1000,
    "runAsGroup":100,"seccompProfile":{"type":"RuntimeDefault"}})"));
  EXPECT_EQ(spec["containers"][0]["securityContext"],
            Json::parse(R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})"));
  EXPECT_FALSE(spec.contains("hostNetwork"));
}

TEST(PodManifest, IsBoundToItsNodeByTheScheduler) {
  const Json spec = pod_of(an_order(a_spec(), {a_node("n1", 2)}))["spec"];
  EXPECT_EQ(spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"],
            Json::parse(R"({"nodeSelectorTerms":[{"matchFields":[
              {"key":"metadata.name","operator":"In","values":["n1"]}]}]})"));
  EXPECT_FALSE(spec.contains("nodeName"));
  EXPECT_FALSE(spec.contains("schedulerName"));
  EXPECT_FALSE(spec.contains("schedulingGates"));
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 31);
}

TEST(PodManifest, NamesTheAttempt) {
  const Json pod = pod_of(an_order(a_spec(), {a_node("n1", 2)}));
  EXPECT_EQ(pod["apiVersion"], "v1");
  EXPECT_EQ(pod["kind"], "Pod");
  EXPECT_EQ(pod["metadata"], Json::parse(R"({"name":"gp-lab-42-2-0","namespace":"jobs",
    "labels":{"gpu-platform/cluster":"lab","gpu-platform/job":"42","gpu-platform/attempt":"2",
              "gpu-platform/rank":"0","gpu-platform/user":"ann","gpu-platform/team":"vision"},
    "annotations":{"gpu-platform/job-name":"train"},
    "finalizers":["gpu-platform/attempt"]})"));
}

TEST(PodManifest, HasItsGpusByAClaim) {
  const Json spec = pod_of(an_order(a_spec(), {a_node("n1", 2)}))["spec"];
  EXPECT_EQ(spec["resourceClaims"],
            Json::parse(R"([{"name":"gpus","resourceClaimName":"gp-lab-42-2-0"}])"));
  EXPECT_EQ(spec["containers"][0]["resources"]["claims"], Json::parse(R"([{"name":"gpus"}])"));
  EXPECT_FALSE(pod_of(an_order(a_spec(), {a_node("n1", 0)}))["spec"].contains("resourceClaims"));
}

TEST(PodManifest, CountsItsGpusWhereNothingElseIsPossible) {
  KubernetesSettings counts = settings();
  counts.devices = DeviceMode::kCounts;
  const Json spec = pod_of(an_order(a_spec(), {a_node("n1", 2)}), counts)["spec"];
  EXPECT_FALSE(spec.contains("resourceClaims"));
  EXPECT_EQ(spec["containers"][0]["resources"], Json::parse(R"({
    "requests":{"cpu":"16","memory":"68719476736"},"limits":{"nvidia.com/gpu":"2"}})"));
}

TEST(PodManifest, IsLimitedOnlyByWhatItsJobAskedFor) {
  model::JobSpec spec = a_spec();
  const auto resources = [&] {
    return pod_of(an_order(spec, {a_node("n1", 0)}))["spec"]["containers"][0]["resources"];
  };
  EXPECT_FALSE(resources().contains("limits"));
  spec.request.memory = base::kGiB * 64;
  EXPECT_EQ(resources()["limits"], Json::parse(R"({"memory":"68719476736"})"));
  spec.request.cpus = 16;
  EXPECT_EQ(resources()["limits"], resources()["requests"]);
}

TEST(PodManifest, WePlaceItOurselvesWhereThePoolsAreOurs) {
  KubernetesSettings owned = settings();
  owned.devices = DeviceMode::kOwned;
  const StartOrder order = an_order(a_spec(), {a_node("n1", 1)});
  EXPECT_EQ(pod_of(order, owned)["spec"]["schedulerName"], "gpu-platform");
  EXPECT_EQ(claim_manifest(order, 0, owned)["metadata"]["finalizers"],
            Json::parse(R"(["resource.kubernetes.io/delete-protection"])"));
  EXPECT_FALSE(claim_manifest(order, 0, settings())["metadata"].contains("finalizers"));
}

TEST(PodManifest, StaysOnANodeThatIsAwayForAMoment) {
  KubernetesSettings with = settings();
  with.lost_after = base::seconds(90);
  EXPECT_EQ(pod_of(an_order(a_spec(), {a_node("n1", 1)}), with)["spec"]["tolerations"],
            Json::parse(R"([
    {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
     "tolerationSeconds":90},
    {"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",
     "tolerationSeconds":90},
    {"key":"nvidia.com/gpu","operator":"Exists"},
    {"key":"kubernetes.azure.com/scalesetpriority","operator":"Exists"},
    {"key":"cloud.google.com/gke-spot","operator":"Exists"}])"));
}

TEST(PodManifest, TheCommandGoesToTheImagesEntryPointUnlessTheJobHasItsOwn) {
  model::JobSpec spec = a_spec();
  Json container = pod_of(an_order(spec, {a_node("n1", 1)}))["spec"]["containers"][0];
  EXPECT_FALSE(container.contains("command"));
  EXPECT_EQ(container["args"], Json::parse(R"(["python","train.py"])"));
  EXPECT_FALSE(container.contains("workingDir"));
  spec.entrypoint = "/bin/sh";
  spec.container_workdir = "/work";
  spec.pull = model::ImagePull::kAlways;
  container = pod_of(an_order(spec, {a_node("n1", 1)}))["spec"]["containers"][0];
  EXPECT_EQ(container["command"], Json::parse(R"(["/bin/sh"])"));
  EXPECT_EQ(container["args"], Json::parse(R"(["python","train.py"])"));
  EXPECT_EQ(container["workingDir"], "/work");
  EXPECT_EQ(container["imagePullPolicy"], "Always");
}

TEST(PodManifest, TakesInputOnlyWhereItsJobDoes) {
  model::JobSpec spec = a_spec();
  const auto container = [&] {
    return pod_of(an_order(spec, {a_node("n1", 1)}))["spec"]["containers"][0];
  };
  EXPECT_FALSE(container().contains("stdin"));
  spec.takes_input = true;
  EXPECT_EQ(container()["stdin"], true);
  EXPECT_EQ(container()["stdinOnce"], true) << "the end of input reaches the job";
  EXPECT_EQ(container()["tty"], false);
  spec.terminal.emplace();
  EXPECT_EQ(container()["stdin"], true);
  EXPECT_EQ(container()["stdinOnce"], false) << "a terminal stays open when its client leaves";
  EXPECT_EQ(container()["tty"], true);
}

TEST(PodManifest, KubernetesReplacesNothingInTexts) {
  model::JobSpec spec = a_spec();
  spec.command = {"echo", "$(HOME) $$ $x"};
  PodOptions options;
  options.environment = {"A=$(B)", "BASH_FUNC_ml%%=() { :; }", "NO NAME=1", "C="};
  const Json container =
      pod_of(an_order(spec, {a_node("n1", 1)}), settings(), options)["spec"]["containers"][0];
  EXPECT_EQ(container["args"][1], "$$(HOME) $$$$ $$x");
  EXPECT_EQ(container["env"], Json::parse(R"json([{"name":"A","value":"$$(B)"},
    {"name":"BASH_FUNC_ml%%","value":"() { :; }"},{"name":"C","value":""}])json"));
}

TEST(PodManifest, HasFoldersInMemory) {
  model::JobSpec spec = a_spec();
  spec.shm_size = base::kGiB;
  spec.tmpfs = {"/scratch:2G"};
  const Json pod = pod_of(an_order(spec, {a_node("n1", 1)}))["spec"];
  EXPECT_EQ(pod["volumes"], Json::parse(R"([
    {"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"1073741824"}},
    {"name":"tmpfs-0","emptyDir":{"medium":"Memory","sizeLimit":"2147483648"}}])"));
  EXPECT_EQ(pod["containers"][0]["volumeMounts"], Json::parse(R"([
    {"name":"shm","mountPath":"/dev/shm"},{"name":"tmpfs-0","mountPath":"/scratch"}])"));
}

TEST(PodManifest, ASitesPriorityAndSecretsAreThere) {
  KubernetesSettings with = settings();
  with.priority_class = "gpu-platform";
  with.image_pull_secrets = {"registry"};
  with.runs_as_user = false;
  const Json spec = pod_of(an_order(a_spec(), {a_node("n1", 1)}), with)["spec"];
  EXPECT_EQ(spec["priorityClassName"], "gpu-platform");
  EXPECT_EQ(spec["imagePullSecrets"], Json::parse(R"([{"name":"registry"}])"));
  EXPECT_FALSE(spec["securityContext"].contains("runAsUser"));
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
}

TEST(PodManifest, NoLabelOfAUserSteersTheCluster) {
  model::JobSpec spec = a_spec();
  spec.user = "ann@corp.example";
  spec.labels = {{"gpu-platform/cluster", "other"},
                 {"kueue.x-k8s.io/queue-name", "q"},
                 {"run", "7"},
                 {"note", "two words"}};
  const Json metadata = pod_of(an_order(spec, {a_node("n1", 1)}))["metadata"];
  EXPECT_EQ(metadata["labels"]["gpu-platform/cluster"], "lab");
  EXPECT_EQ(metadata["labels"]["job.gpu-platform/run"], "7");
  EXPECT_FALSE(metadata["labels"].contains("run"))
      << "a Service of others that selects by this label would send its clients to the job";
  EXPECT_FALSE(metadata["labels"].contains("kueue.x-k8s.io/queue-name"));
  EXPECT_FALSE(metadata["labels"].contains("note"));
  EXPECT_EQ(metadata["annotations"]["gpu-platform/user"], "ann@corp.example");
  EXPECT_EQ(Json::parse(metadata["annotations"]["gpu-platform/labels"].get<std::string>()),
            Json::parse(R"({"gpu-platform/cluster":"other","kueue.x-k8s.io/queue-name":"q",
                            "note":"two words"})"));
}

TEST(PodManifest, HasTheAnnotationsOfItsJobBesideThePlatforms) {
  model::JobSpec spec = a_spec();
  spec.annotations = {{"gpu-fraction", "0.5"},
                      {"nvidia.com/container.main.gpu-memory.limit", "8Gi $(HOME)"}};
  const Json pod = pod_of(an_order(spec, {a_node("n1", 1)}));
  EXPECT_EQ(pod["metadata"]["annotations"],
            Json::parse(R"json({"gpu-fraction":"0.5","gpu-platform/job-name":"train",
              "nvidia.com/container.main.gpu-memory.limit":"8Gi $(HOME)"})json"));
  EXPECT_EQ(pod["spec"]["containers"][0]["name"], "main") << "keys name the container";
  EXPECT_EQ(pod["metadata"]["labels"].size(), 6U) << "no label comes of it";
  EXPECT_EQ(pod["spec"]["containers"][0]["resources"]["claims"],
            Json::parse(R"([{"name":"gpus"}])"))
      << "the pod has the whole device";
}

TEST(PodManifest, NoAnnotationOfAJobReplacesOneOfThePlatform) {
  model::JobSpec spec = a_spec();
  spec.user = "ann@corp.example";
  spec.labels = {{"note", "two words"}};
  spec.annotations = {
      {"gpu-platform/job-name", "x"}, {"gpu-platform/labels", "x"}, {"gpu-platform/user", "root"}};
  const Json annotations = pod_of(an_order(spec, {a_node("n1", 1)}))["metadata"]["annotations"];
  EXPECT_EQ(annotations["gpu-platform/job-name"], "train");
  EXPECT_EQ(annotations["gpu-platform/user"], "ann@corp.example");
  EXPECT_NE(annotations["gpu-platform/labels"], "x");
}

TEST(PodManifest, RefusesWhatKubernetesWouldNotTake) {
  model::JobSpec spec = a_spec();
  spec.uid = 0;
  EXPECT_THAT(error_of(an_order(spec, {a_node("n1", 1)})), HasSubstr("user: "));
  spec = a_spec();
  spec.command = {"a\xff"};
  EXPECT_THAT(error_of(an_order(spec, {a_node("n1", 1)})), HasSubstr("command: "));
  spec = a_spec();
  spec.annotations = {{"a", "\xff"}};
  EXPECT_THAT(error_of(an_order(spec, {a_node("n1", 1)})), HasSubstr("annotations: "));
  const StartOrder order = an_order(a_spec(), {a_node("n1", 1)});
  EXPECT_THAT(error_of(order, {.environment = {"A=\xff"}}), HasSubstr("the value of A"));
  EXPECT_THAT(error_of(order, {.environment = {"A=" + std::string(std::size_t{1} << 20, 'x')}}),
              HasSubstr("at most 1048576"));
  EXPECT_EQ(error_of(order, {.environment = {"A=" + std::string(1'000'000, 'x')}}), "");
}

TEST(PodManifest, AnyBytesOfAJobCanBeWrittenAsJson) {
  model::JobSpec spec = a_spec();
  spec.name = "a\xff\n";
  spec.team = "\xfe";
  spec.labels = {{"\xff", "\xff"}};
  const Json pod = pod_of(an_order(spec, {a_node("n1", 1)}));
  EXPECT_NO_THROW(static_cast<void>(pod.dump()));
}

TEST(Gangs, RanksKnowEachOtherByTheService) {
  model::JobSpec spec = a_spec();
  spec.request.nodes = 2;
  const StartOrder order = an_order(spec, {a_node("n1", 2), a_node("n2", 2)});
  const Json pod = pod_of(order, settings(), {.rank = 1, .has_gate = true});
  EXPECT_EQ(pod["spec"]["hostname"], "rank-1");
  EXPECT_EQ(pod["spec"]["subdomain"], "gp-lab-42-2");
  EXPECT_EQ(pod["spec"]["schedulingGates"], Json::parse(R"([{"name":"gpu-platform/gang"}])"));
  const Json service = service_manifest(order, settings());
  EXPECT_EQ(service["metadata"]["name"], "gp-lab-42-2");
  EXPECT_EQ(service["spec"], Json::parse(R"({"clusterIP":"None","publishNotReadyAddresses":true,
    "selector":{"gpu-platform/cluster":"lab","gpu-platform/job":"42","gpu-platform/attempt":"2"}})"));
  for (const auto& [key, value] : service["spec"]["selector"].items()) {
    EXPECT_EQ(pod["metadata"]["labels"][key], value);
  }
}

TEST(Claims, ArePinnedToTheGpusByTheirUuids) {
  StartOrder order = an_order(a_spec(), {a_node("n1", 2)});
  auto nodes = order.nodes;
  nodes[0].gpus[1].info.uuid = "MIG-7";
  order.nodes = nodes;
  const Json claim = claim_manifest(order, 0, settings());
  EXPECT_EQ(claim["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(claim["metadata"]["name"], "gp-lab-42-2-0");
  EXPECT_EQ(claim["metadata"]["namespace"], "jobs");
  EXPECT_EQ(claim["metadata"]["labels"]["gpu-platform/cluster"], "lab");
  EXPECT_EQ(claim["spec"]["devices"]["requests"], Json::parse(R"json([
    {"name":"gpu-0","exactly":{"deviceClassName":"gpu.nvidia.com","allocationMode":"ExactCount",
     "count":1,"selectors":[{"cel":{"expression":
       "device.attributes[\"gpu.nvidia.com\"].uuid == \"GPU-n1-0\""}}]}},
    {"name":"gpu-1","exactly":{"deviceClassName":"mig.nvidia.com","allocationMode":"ExactCount",
     "count":1,"selectors":[{"cel":{"expression":
       "device.attributes[\"gpu.nvidia.com\"].uuid == \"MIG-7\""}}]}}])json"));
}

TEST(Claims, AnAllocationIsWhatTheAllocatorOfKubernetesWrites) {
  const Json status =
      claim_status(an_order(a_spec(), {a_node("kn1", 2)}), 0,
                   {{"gpu.nvidia.com", "kn1", "gpu-3"}, {"gpu.nvidia.com", "kn1", "gpu-5"}},
                   "b017ec50", settings());
  EXPECT_EQ(status, Json::parse(R"({"allocation":{"devices":{"results":[
    {"request":"gpu-0","driver":"gpu.nvidia.com","pool":"kn1","device":"gpu-3"},
    {"request":"gpu-1","driver":"gpu.nvidia.com","pool":"kn1","device":"gpu-5"}]},
    "nodeSelector":{"nodeSelectorTerms":[{"matchFields":[
      {"key":"metadata.name","operator":"In","values":["kn1"]}]}]}},
    "reservedFor":[{"resource":"pods","name":"gp-lab-42-2-0","uid":"b017ec50"}]})"));
}

}  // namespace
}  // namespace gpu_platform::execution
