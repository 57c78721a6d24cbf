#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/kubernetes_harness_fixture.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "kubernetes/kubeconfig.h"
#include "model/job_spec.h"
#include "os/clock.h"

namespace gpu_platform::execution::testing {

namespace {

using Json = nlohmann::json;
using kubernetes::PodRunner;

constexpr const char* kNamespace = "jobs";
constexpr const char* kCluster = "test";
constexpr std::uint32_t kNodes = 3;
constexpr std::uint32_t kGpusOfNode = 32;

std::string node_name(std::uint32_t number) {
  return fmt::format("node-{}", number);
}
std::string gpu_uuid(std::uint32_t node, std::uint32_t gpu) {
  return fmt::format("GPU-{:04}-{:04}", node, gpu);
}
std::string key_of_pod(const Json& pod) {
  return fmt::format("{}/{}", kNamespace, text_at(pod, {"metadata", "name"}));
}

}  // namespace

void ToldByAttempt::observe(Observation observation) {
  {
    const std::lock_guard lock(mutex_);
    is_new_ = true;
    if (const auto* started = std::get_if<Started>(&observation)) {
      told_[started->attempt].note(*started);
    } else if (const auto* ended = std::get_if<Ended>(&observation)) {
      told_[ended->attempt].note(*ended);
    } else if (const auto* cleaned = std::get_if<Cleaned>(&observation)) {
      told_[cleaned->attempt].note(*cleaned);
    } else if (const auto* node = std::get_if<NodeObserved>(&observation)) {
      nodes_[node->info.name] = node->info;
    } else if (const auto* reset = std::get_if<ResetEnded>(&observation)) {
      resets_.push_back(*reset);
    } else if (const auto* piece = std::get_if<EvidenceObserved>(&observation)) {
      evidence_.push_back(*piece);
    } else if (const auto* gpu = std::get_if<TaintObserved>(&observation);
               gpu != nullptr && !gpu->gpu_uuid.empty()) {
      unavailable_[gpu->gpu_uuid] = gpu->text;
    }
  }
  news_.notify_all();
}

std::vector<ResetEnded> ToldByAttempt::resets() const {
  const std::lock_guard lock(mutex_);
  return resets_;
}

std::vector<EvidenceObserved> ToldByAttempt::evidence() const {
  const std::lock_guard lock(mutex_);
  return evidence_;
}

Told ToldByAttempt::of(model::AttemptId attempt) const {
  const std::lock_guard lock(mutex_);
  const auto found = told_.find(attempt);
  return found == told_.end() ? Told{} : found->second;
}

std::map<std::string, model::NodeInfo> ToldByAttempt::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

std::string ToldByAttempt::unavailable(const std::string& uuid) const {
  const std::lock_guard lock(mutex_);
  const auto found = unavailable_.find(uuid);
  return found == unavailable_.end() ? std::string() : found->second;
}

void ToldByAttempt::clear() {
  const std::lock_guard lock(mutex_);
  told_.clear();
  unavailable_.clear();
  evidence_.clear();
}

void ToldByAttempt::wait_a_little() const {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(20), [this] { return is_new_; });
  is_new_ = false;
}

KubernetesHarness::KubernetesHarness() {
  char name[] = "/tmp/gp-kubernetes-XXXXXX";
  folder_ = mkdtemp(name);
}

KubernetesHarness::~KubernetesHarness() {
  engine_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string KubernetesHarness::open() {
  server_.call("POST", "/api/v1/namespaces",
               {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kNamespace}}}});
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    kubernetes::NodeOptions options;
    for (std::uint32_t gpu = 0; gpu < kGpusOfNode; ++gpu) {
      options.gpus.push_back(gpu_uuid(node, gpu));
    }
    runner_.add_node(node_name(node), options);
  }
  auto access = kubernetes::parse_kubeconfig(server_.kubeconfig(), "kubeconfig", folder_, "");
  EXPECT_TRUE(access.has_value()) << access.error().message;
  if (!access) return access.error().message;
  options_.access = *std::move(access);
  options_.settings.cluster = kCluster;
  options_.settings.namespace_name = kNamespace;
  options_.lease = {kNamespace, "gpu-platform-test", "harness"};
  options_.output_folder = folder_ + "/output";
  reopen();
  return {};
}

void KubernetesHarness::reopen() {
  engine_.reset();
  told_.clear();
  auto opened = KubernetesEngine::open(options_, environment_, told_);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  engine_ = *std::move(opened);
  EXPECT_TRUE(engine_->wait_for_nodes(std::chrono::seconds(20)));
}

StartOrder KubernetesHarness::order(std::uint64_t job, const Act& act) {
  return gang(job, act, 1);
}

StartOrder KubernetesHarness::gang(std::uint64_t job, const Act& act, std::uint32_t nodes) {
  acts_[job] = act;
  StartOrder order;
  order.attempt = {model::JobId(job), 1};
  order.boot_id =
      std::string(text_at(server_.object("/api/v1/nodes/" + node_name(0)), {"metadata", "uid"}));
  order.stop_grace = base::seconds(30);
  auto spec = std::make_shared<model::JobSpec>();
  spec->image = "registry.example.org/test:1";
  spec->command = {"act"};
  spec->user = "ann";
  spec->uid = 1001;
  spec->gid = 1001;
  spec->request.gpus = 1;
  spec->request.nodes = nodes;
  order.spec = spec;
  for (std::uint32_t number = 0; number < nodes; ++number) {
    LaunchNode node;
    node.node = model::NodeId(number + 1);
    node.node_name = node_name(number);
    node.cpus = 1;
    node.memory = base::kGiB;
    const auto index = static_cast<std::uint32_t>(job % kGpusOfNode);
    node.gpus.push_back({.info = {.uuid = gpu_uuid(number, index)}, .grant = {.gpu_index = index}});
    order.nodes.push_back(std::move(node));
  }
  return order;
}

std::vector<Json> KubernetesHarness::pods_of(model::AttemptId attempt) const {
  std::vector<Json> pods;
  for (Json& pod : server_.objects(fmt::format("/api/v1/namespaces/{}/pods", kNamespace))) {
    const auto view = view_of_pod(pod, kCluster);
    if (view && view->attempt == attempt) pods.push_back(std::move(pod));
  }
  return pods;
}

void KubernetesHarness::kill_supervisor(model::AttemptId attempt) {
  for (const Json& pod : pods_of(attempt)) {
    const std::string path = fmt::format("/api/v1/namespaces/{}/pods/{}", kNamespace,
                                         text_at(pod, {"metadata", "name"}));
    server_.call("PATCH", path, {{"metadata", {{"finalizers", nullptr}}}});
    server_.call("DELETE", path + "?gracePeriodSeconds=0");
  }
}

void KubernetesHarness::move() {
  runner_.bind_all();
  for (const Json& pod : server_.objects(fmt::format("/api/v1/namespaces/{}/pods", kNamespace))) {
    move(pod);
  }
  runner_.release_devices();
  runner_.collect_garbage();
}

// The kubelet's part for one pod.
void KubernetesHarness::move(const Json& pod) {
  const auto view = view_of_pod(pod, kCluster);
  if (!view || view->node.empty() || view->is_over()) return;
  const std::string key = key_of_pod(pod);
  const Act& act = acts_[view->attempt.job.value];
  if (view->is_being_deleted && view->phase == PodPhase::kPending) {
    runner_.reject(key, "Deleted", "it was deleted before its container ran");
    return;
  }
  if (view->is_being_deleted) {
    const base::Instant by = parse_time(text_at(pod, {"metadata", "deletionTimestamp"}));
    const bool obeys = act.kind == Act::Kind::kObeysTerm;
    if (obeys) runner_.stop(key, PodRunner::Stop::kObeys);
    if (!obeys && os::wall_now() >= by) runner_.stop(key, PodRunner::Stop::kKilled);
    return;
  }
  if (view->phase == PodPhase::kPending) {
    if (!runner_.start(key)) return;
    if (act.kind == Act::Kind::kMissing) {
      runner_.end(key, {128, "StartError", "exec: \"act\": executable file not found in $PATH"});
      return;
    }
    started_[view->uid] = view->attempt;
  }
  if (act.kind == Act::Kind::kEnds) runner_.end(key, {act.code});
  if (act.kind == Act::Kind::kCrashes) runner_.end(key, {139});
  if (act.kind == Act::Kind::kWaits && let_end_.contains(view->attempt)) {
    runner_.end(key, {act.code});
  }
}

bool KubernetesHarness::wait_until(const std::function<bool()>& condition) {
  const std::int64_t end = os::monotonic_ms() + 20'000;
  while (!condition()) {
    if (os::monotonic_ms() > end) return false;
    if (moves_) move();
    told_.wait_a_little();
  }
  return true;
}

int KubernetesHarness::runs(model::AttemptId attempt) const {
  int runs = 0;
  for (const auto& [uid, of] : started_) runs += of == attempt ? 1 : 0;
  return runs;
}

bool KubernetesHarness::is_ready(model::AttemptId attempt) const {
  const std::vector<Json> pods = pods_of(attempt);
  return !pods.empty() && std::ranges::all_of(pods, [](const Json& pod) {
    const auto view = view_of_pod(pod, kCluster);
    return view && view->started_at.is_set();
  });
}

bool KubernetesHarness::is_over(model::AttemptId attempt) const {
  return std::ranges::all_of(pods_of(attempt), [](const Json& pod) {
    const auto view = view_of_pod(pod, kCluster);
    return view && view->is_over();
  });
}

}  // namespace gpu_platform::execution::testing
