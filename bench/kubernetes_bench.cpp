// Jobs as pods of a large cluster, beside the same pods without the platform in the same run:
//   scripts/check_kubernetes --with build/release/kubernetes_bench [--nodes N] [--pods N]
//     [--rounds N] [--jobs N]
// N nodes of eight GPUs (default 1,000), N pods for the comparison (default 1,000) and its rounds
// (default 2; an even number is fair to both), and N jobs of one GPU (default 10,000) that must all
// end, each with one pod, and leave nothing. kwok plays the kubelets. Prints one line for each
// figure; exit 1 if a job or a pod was lost, doubled or left.
//
// Definitions. plain: the pods and claims that the platform makes of such jobs, with their labels
// and annotations, written by this program as the user that the platform is. bound: the time from
// the first create to the last pod that has a node, as a watch tells it. decision to pod: from the
// journal's time of a start to the watch's word of its pod, one job after the other. CPU: of the
// daemon and of kube-apiserver, user and system time.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/convert/text_forms.h"
#include "base/units.h"
#include "base/utc.h"
#include "harness.h"
#include "kubernetes/client.h"
#include "kubernetes/reflector.h"
#include "os/clock.h"

namespace gpu_platform::bench {
namespace {

using Json = nlohmann::json;
using e2e::run_command;
using kubernetes::Answer;
using kubernetes::Method;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr const char* kServices = "/api/v1/namespaces/default/services";
constexpr int kGpusOfNode = 8;
constexpr std::chrono::minutes kTimeout{30};

struct Sizes {
  int nodes = 1000;
  int pods = 1000;
  int jobs = 10'000;
  int rounds = 2;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "kubernetes_bench: {}\n", why);
  std::exit(1);
}

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

// The pods of the namespace as a watch tells of them, and requests to the same server.
class Cluster {
 public:
  explicit Cluster(std::string folder)
      : folder_(std::move(folder)), user_(client_of("platform")), admin_(client_of("admin")) {
    kubernetes::FollowHandlers handlers;
    handlers.on_object = [this](const Json& pod) { see(pod); };
    handlers.on_deleted = [this](const Json& pod) { pods_.erase(name_of(pod)); };
    handlers.on_list_begin = [] {};
    handlers.on_listed = [] {};
    pods_follower_.emplace(*user_, kubernetes::Followed{kPods, {}}, std::move(handlers));
  }

  const std::string& folder() const { return folder_; }

  void poll(base::Duration time = base::milliseconds(20)) {
    pods_follower_->advance(os::monotonic_ns());
    if (admin_->pending() == 0) return user_->poll(time);
    user_->poll({});
    admin_->poll(base::milliseconds(1));
  }
  void until(const std::function<bool()>& holds, const std::string& what) {
    const auto begin = SteadyClock::now();
    while (!holds()) {
      if (SteadyClock::now() - begin > kTimeout) give_up("waited too long: " + what);
      poll();
    }
  }

  // The answer counts only when it is a success.
  void send(kubernetes::Request request) { send_by(*admin_, std::move(request)); }
  // As the user that the platform is. The server lets an administrator pass without looking at
  // rights, and without waiting for a turn.
  void send_as_user(kubernetes::Request request) { send_by(*user_, std::move(request)); }
  bool is_idle() const { return under_way_ == 0; }
  Json get(const std::string& path) {
    std::optional<Answer> answer;
    admin_->send({.path = path}, [&](const Answer& came) { answer = came; });
    while (!answer) poll();
    return Json::parse(answer->body, nullptr, false);
  }
  // Ends the container of a pod, as kwok's stages have it.
  void end(const std::string& pod) {
    const Json body = {{"metadata", {{"annotations", {{"gpu-platform.test/run-seconds", "0"}}}}}};
    send({.method = Method::kPatch,
          .path = fmt::format("{}/{}", kPods, pod),
          .body = body.dump(),
          .content_type = "application/merge-patch+json"});
  }
  void remove_all(const std::string& path) {
    send({.method = Method::kDelete, .path = path, .timeout = base::minutes(5)});
  }

  struct Pod {
    base::Instant seen;
    bool is_bound = false;
    bool is_running = false;
    bool is_ended = false;
  };
  const std::map<std::string, Pod>& pods() const { return pods_; }
  int bound() const {
    return count([](const Pod& pod) { return pod.is_bound; });
  }
  int running() const {
    return count([](const Pod& pod) { return pod.is_running; });
  }
  std::size_t made() const { return made_; }  // different pods that were ever seen
  void set_on_running(std::function<void(const std::string&)> call) {
    on_running_ = std::move(call);
  }

 private:
  std::unique_ptr<kubernetes::Client> client_of(const std::string& user) const {
    auto access = kubernetes::load_kubeconfig(fmt::format("{}/{}.kubeconfig", folder_, user), "");
    if (!access) give_up(access.error().message);
    auto client = kubernetes::Client::make(*std::move(access));
    if (!client) give_up(client.error().message);
    return *std::move(client);
  }
  void send_by(kubernetes::Client& client, kubernetes::Request request) {
    ++under_way_;
    client.send(std::move(request), [this](const Answer& answer) {
      --under_way_;
      if (!answer.is_ok()) give_up(kubernetes::error_message_of(answer));
    });
  }

  static std::string name_of(const Json& pod) { return pod["metadata"]["name"]; }
  int count(const std::function<bool(const Pod&)>& holds) const {
    return static_cast<int>(
        std::ranges::count_if(pods_, [&](const auto& each) { return holds(each.second); }));
  }

  void see(const Json& json) {
    const auto [place, is_new] = pods_.try_emplace(name_of(json));
    Pod& pod = place->second;
    if (is_new) {
      pod.seen = os::wall_now();
      ++made_;
    }
    pod.is_bound = json["spec"].contains("nodeName");
    const bool was_running = pod.is_running;
    pod.is_running = json["status"].value("phase", "") == "Running";
    if (pod.is_running && !was_running && on_running_) on_running_(place->first);
  }

  std::string folder_;
  std::unique_ptr<kubernetes::Client> user_;
  std::unique_ptr<kubernetes::Client> admin_;
  std::optional<kubernetes::Reflector> pods_follower_;
  std::map<std::string, Pod> pods_;
  std::size_t made_ = 0;
  std::size_t under_way_ = 0;
  std::function<void(const std::string&)> on_running_;
};

pid_t process_of(const std::string& folder, const std::string& name) {
  for (const std::string& line : e2e::lines_of(e2e::read_file(folder + "/processes"))) {
    if (line.starts_with(name + " ")) return std::atoi(line.c_str() + name.size() + 1);
  }
  give_up("no process " + name);
}

double cpu_seconds(pid_t pid) {
  const std::string stat = e2e::read_file(fmt::format("/proc/{}/stat", pid));
  unsigned long user = 0;
  unsigned long system = 0;
  const std::size_t at = stat.rfind(')');
  if (at == std::string::npos) return 0;
  std::sscanf(stat.c_str() + at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
              &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double memory_mb(pid_t pid, const char* field) {
  const std::string status = e2e::read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = status.find(field);
  return at == std::string::npos
             ? 0
             : std::atof(status.c_str() + at + std::string(field).size() + 1) * 1024 / 1e6;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The same object as its writer would create it: without what the server adds, and without the
// owner and the finalizer that tie it to the platform. Its labels name another cluster.
Json as_written(Json object) {
  Json metadata = {{"name", object["metadata"]["name"]}};
  for (const char* part : {"labels", "annotations"}) {
    if (object["metadata"].contains(part)) metadata[part] = object["metadata"][part];
  }
  metadata["labels"]["gpu-platform/cluster"] = "written-by-hand";
  object["metadata"] = std::move(metadata);
  object.erase("status");
  object["spec"].erase("nodeName");
  return object;
}

// A pod that the platform has made and its claim, as text in which names can be replaced.
struct Sample {
  std::string name;
  std::string node;
  std::string gpu;
  std::string pod;
  std::string claim;
};

class Bench {
 public:
  Bench(Cluster& cluster, Sizes sizes) : cluster_(cluster), sizes_(sizes) {}

  bool run() {
    make_nodes();
    start();
    const Sample sample = take_sample();
    latency();
    stop();
    compare(sample);
    start();
    return many();
  }

 private:
  // The control plane gets slower with its age, so the one that is first changes from round to
  // round.
  void compare(const Sample& sample) {
    double plain = 0;
    double ours = 0;
    for (int round = 0; round < sizes_.rounds; ++round) {
      const bool is_plain_first = round % 2 == 0;
      if (is_plain_first) plain += plain_pods(sample);
      start();
      ours += platform_pods();
      stop();
      if (!is_plain_first) plain += plain_pods(sample);
    }
    fmt::print("the platform adds               {:6.1f} %\n", (ours / plain - 1) * 100);
  }

  static std::string node_name(int index) { return fmt::format("gpu-node-{}", index); }
  // As tests/kubernetes/objects.jq has it.
  static std::string gpu_uuid(int node, int gpu) {
    return fmt::format("GPU-00000000-0000-4000-8000-0000{:04x}00{:02x}", node, gpu);
  }

  void make_nodes() {
    const auto made = run_command({GP_SOURCE_DIRECTORY "/scripts/check_kubernetes", "--nodes",
                                   std::to_string(sizes_.nodes), "--of", cluster_.folder(),
                                   "--name", "gpu-node"});
    if (made.exit_code != 0) give_up(made.out + made.err);
  }

  void start() {
    if (!daemon_) {
      daemon_ = std::make_unique<e2e::Daemon>(e2e::DaemonOptions{
          .emulate = "",
          .config =
              "engines:\n  local: false\n  kubernetes:\n    kubeconfig: " + cluster_.folder() +
              "/platform.kubeconfig\n    namespace: default\n"
              "scheduling:\n  max_queue_size: 200000\n"});
    }
    const auto begin = SteadyClock::now();
    if (!daemon_->start()) give_up(daemon_->log());
    const int gpus = sizes_.nodes * kGpusOfNode;
    cluster_.until([&] { return daemon_->json({"status"})["total_gpus"] == gpus; },
                   "the daemon knows all nodes: " + daemon_->log());
    fmt::print("start until {} nodes are known {:6.2f} s\n", sizes_.nodes, seconds_since(begin));
  }

  std::string submit(const std::vector<std::string>& options) {
    std::vector<std::string> words = {"--gpus", "1",     "--image", "registry.example.org/torch:2",
                                      "--user", "backup"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "train"});
    return daemon_->submit(words);
  }

  Sample take_sample() {
    const std::string job = submit({});
    Sample sample;
    sample.name = fmt::format("gp-default-{}-1-0", job);
    cluster_.until([&] { return cluster_.running() == 1; }, "the first pod runs");
    const Json described = daemon_->job(job);
    sample.node = described["gpus"][0]["node"];
    sample.gpu = described["gpus"][0]["uuid"];
    sample.pod = as_written(cluster_.get(fmt::format("{}/{}", kPods, sample.name))).dump();
    sample.claim = as_written(cluster_.get(fmt::format("{}/{}", kClaims, sample.name))).dump();
    return sample;
  }

  // One job after the other, so that none waits for the pod of another.
  void latency() {
    constexpr int kJobs = 100;
    std::vector<double> times;
    for (int i = 0; i < kJobs; ++i) {
      const std::string job = submit({});
      const std::string pod = fmt::format("gp-default-{}-1-0", job);
      cluster_.until([&] { return cluster_.pods().contains(pod); }, "a pod is made");
      const std::string text = daemon_->job(job)["attempts"][0]["requested_at"];
      const auto decided = base::parse_rfc3339(text);
      if (!decided) give_up("no time: " + text);
      const base::Duration took = cluster_.pods().at(pod).seen - *decided;
      times.push_back(static_cast<double>(took.value()) / 1e6);
    }
    std::ranges::sort(times);
    fmt::print("decision to pod                 {:6.1f} ms p50, {:.1f} ms p99\n", times[kJobs / 2],
               times[kJobs * 99 / 100]);
  }

  // Ends what runs, waits until nothing of it is left, and ends the daemon.
  void stop() {
    for (const auto& [name, pod] : cluster_.pods()) cluster_.end(name);
    cluster_.until([&] { return cluster_.pods().empty() && cluster_.is_idle(); }, "all pods end");
    until_all_free();
    const int status = daemon_->terminate();
    if (status != 0) give_up(fmt::format("the daemon ended with {}", status));
  }

  void until_all_free() {
    cluster_.until(
        [&] {
          const Json status = daemon_->json({"status"});
          return status["available_gpus"] == status["total_gpus"];
        },
        "all jobs end");
  }

  // Seconds of CPU of each program of the control plane, by its name.
  std::map<std::string, double> control_plane_cpu() const {
    std::map<std::string, double> all;
    for (const char* name :
         {"kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager"}) {
      all[name] = cpu_seconds(process_of(cluster_.folder(), name));
    }
    return all;
  }

  void print_cpu(const char* of, const std::map<std::string, double>& before) const {
    std::string line;
    for (const auto& [name, now] : control_plane_cpu()) {
      line += fmt::format("{}{} {:.1f} s", line.empty() ? "" : ", ", name, now - before.at(name));
    }
    fmt::print("{:<32}{}\n", of, line);
  }

  double plain_pods(const Sample& sample) {
    const auto before = control_plane_cpu();
    const auto begin = SteadyClock::now();
    for (int i = 0; i < sizes_.pods; ++i) {
      const int node = i / kGpusOfNode % sizes_.nodes;
      const auto of_this = [&](const std::string& text) {
        const std::string named = replaced(text, sample.name, fmt::format("plain-{}", i));
        const std::string placed = replaced(named, sample.gpu, gpu_uuid(node, i % kGpusOfNode));
        return replaced(placed, "\"" + sample.node + "\"", "\"" + node_name(node) + "\"");
      };
      cluster_.send_as_user(
          {.method = Method::kPost, .path = kClaims, .body = of_this(sample.claim)});
      cluster_.send_as_user({.method = Method::kPost, .path = kPods, .body = of_this(sample.pod)});
    }
    const double took = until_bound("plain pods bound in", begin);
    print_cpu("CPU for plain pods", before);
    cluster_.remove_all(kPods);
    cluster_.until([&] { return cluster_.pods().empty() && cluster_.is_idle(); }, "plain pods go");
    cluster_.remove_all(kClaims);
    cluster_.until([&] { return left(kClaims) == 0; }, "plain claims go");
    return took;
  }

  // Returns the seconds from `begin` until all pods of a comparison have a node.
  double until_bound(const char* what, SteadyClock::time_point begin) {
    const auto count = static_cast<std::size_t>(sizes_.pods);
    cluster_.until([&] { return cluster_.pods().size() == count; }, "all pods are made");
    const double made = seconds_since(begin);
    cluster_.until([&] { return cluster_.bound() == sizes_.pods; }, "all pods are bound");
    const double took = seconds_since(begin);
    fmt::print("{} {:<28}{:6.1f} s, {:.1f}/s; all were made after {:.1f} s\n", count, what, took,
               sizes_.pods / took, made);
    return took;
  }

  double platform_pods() {
    const double cpu = cpu_seconds(daemon_->pid());
    const auto before = control_plane_cpu();
    const auto begin = SteadyClock::now();
    submit({"--array", fmt::format("0-{}", sizes_.pods - 1)});
    const double took = until_bound("jobs submitted and bound in", begin);
    const double used = cpu_seconds(daemon_->pid()) - cpu;
    const double theirs = control_plane_cpu()["kube-apiserver"] - before.at("kube-apiserver");
    print_cpu("CPU for jobs", before);
    fmt::print("CPU of the daemon               {:6.1f} s, {:.1f} % of kube-apiserver's {:.1f} s\n",
               used, used / theirs * 100, theirs);
    return took;
  }

  std::size_t left(const char* path) {
    return cluster_.get(std::string(path) + "?labelSelector=gpu-platform%2Fcluster")["items"]
        .size();
  }

  // Runs as many as there are GPUs at once, then ends them as they come.
  bool many() {
    const auto begin = SteadyClock::now();
    const std::size_t before = cluster_.made();
    const std::string array = submit({"--array", fmt::format("0-{}", sizes_.jobs - 1)});
    const int full = std::min(sizes_.jobs, sizes_.nodes * kGpusOfNode);
    cluster_.until([&] { return cluster_.running() == full; }, "as many run as fit");
    fmt::print(
        "{} pods run after            {:6.1f} s; the daemon has {:.0f} MB, {:.0f} MB at most\n",
        full, seconds_since(begin), memory_mb(daemon_->pid(), "VmRSS:"),
        memory_mb(daemon_->pid(), "VmHWM:"));
    cluster_.set_on_running([this](const std::string& name) { cluster_.end(name); });
    for (const auto& [name, pod] : cluster_.pods()) cluster_.end(name);
    cluster_.until(
        [&] {
          return cluster_.made() - before >= static_cast<std::size_t>(sizes_.jobs) &&
                 cluster_.pods().empty() && cluster_.is_idle();
        },
        "all pods end");
    until_all_free();
    fmt::print("{} jobs done after           {:6.1f} s\n", sizes_.jobs, seconds_since(begin));
    return judge(array, cluster_.made() - before);
  }

  bool judge(const std::string& array, std::size_t made) {
    int completed = 0;
    int doubled = 0;
    const Json list = daemon_->json({"jobs", "list", "--all"})["jobs"];
    for (const Json& job : list) {
      if (job["array_id"] != array) continue;
      completed += job["state"] == "COMPLETED" ? 1 : 0;
      doubled += job["attempts"].size() == 1 ? 0 : 1;
    }
    const std::size_t pods = left(kPods);
    const std::size_t claims = left(kClaims);
    const std::size_t services = left(kServices);
    fmt::print(
        "{} of {} jobs completed, {} pods made, {} jobs with other than one attempt; left: {} "
        "pods, {} claims, {} services\n",
        completed, sizes_.jobs, made, doubled, pods, claims, services);
    return completed == sizes_.jobs && made == static_cast<std::size_t>(sizes_.jobs) &&
           doubled == 0 && pods + claims + services == 0;
  }

  Cluster& cluster_;
  const Sizes sizes_;
  std::unique_ptr<e2e::Daemon> daemon_;
};

Sizes sizes_of(int argc, char** argv) {
  Sizes sizes;
  const std::map<std::string, int*> options = {{"--nodes", &sizes.nodes},
                                               {"--pods", &sizes.pods},
                                               {"--jobs", &sizes.jobs},
                                               {"--rounds", &sizes.rounds}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) give_up(fmt::format("unknown option: {}", argv[i]));
    *option->second = std::atoi(argv[i + 1]);
  }
  if (sizes.pods > sizes.nodes * kGpusOfNode) give_up("more pods than GPUs");
  return sizes;
}

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  using namespace gpu_platform::bench;
  const char* folder = std::getenv("GPU_PLATFORM_TEST_KUBERNETES");
  if (folder == nullptr) give_up("there is no cluster; see scripts/check_kubernetes --with");
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Sizes sizes = sizes_of(argc, argv);
  Cluster cluster(folder);
  return Bench(cluster, sizes).run() ? 0 : 1;
}
