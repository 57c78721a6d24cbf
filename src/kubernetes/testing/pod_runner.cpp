#include "kubernetes/testing/pod_runner.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/testing/json_access.h"
#include "kubernetes/testing/object_rules.h"
#include "kubernetes/testing/pod_scheduler.h"

namespace gpu_platform::kubernetes {

using nlohmann::json;

// The store and its rules, while it is locked.
struct LockedCluster {
  ApiCalls& calls;
  ObjectStore& store;
};

namespace {

constexpr const char* kDriver = "gpu.nvidia.com";
constexpr const char* kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::int32_t kTerminated = 143;  // by SIGTERM
constexpr std::int32_t kKilled = 137;      // by SIGKILL

const ObjectKey kAllDeviceRequests = {
    .group = "resource.k8s.io", .resource = "resourceclaims", .namespace_name = "", .name = ""};

ObjectKey pod_key(const std::string& pod) {
  const std::size_t slash = std::min(pod.find('/'), pod.size());
  return {.group = "",
          .resource = "pods",
          .namespace_name = pod.substr(0, slash),
          .name = pod.substr(std::min(slash + 1, pod.size()))};
}

ObjectKey node_key(const std::string& node) {
  return {.group = "", .resource = "nodes", .namespace_name = "", .name = node};
}

bool is_being_deleted(const json& object) {
  return !value_at(object, "/metadata/deletionTimestamp").is_null();
}

bool is_node_ready(const LockedCluster& cluster, const std::string& node) {
  const ObjectPtr found = cluster.store.find(node_key(node));
  if (!found) return false;
  for (const json& condition : value_at(*found, "/status/conditions")) {
    if (text_at(condition, "/type") == "Ready") return text_at(condition, "/status") == "True";
  }
  return false;
}

// The pod, if it is bound and its kubelet works; else null.
ObjectPtr find_at_kubelet(const LockedCluster& cluster, const std::string& pod) {
  ObjectPtr found = cluster.store.find(pod_key(pod));
  if (!found || !is_node_ready(cluster, text_at(*found, "/spec/nodeName"))) return nullptr;
  return found;
}

void write(LockedCluster& cluster, const ObjectKey& key, json object) {
  cluster.calls.overwrite(path_of(key), std::move(object));
}

void remove(LockedCluster& cluster, const ObjectKey& key, const json& options) {
  const std::string where =
      (key.group.empty() ? std::string("/api/v1") : fmt::format("/apis/{}/v1", key.group)) +
      (key.namespace_name.empty() ? std::string() : "/namespaces/" + key.namespace_name);
  ApiRequest request{.method = "DELETE",
                     .path = fmt::format("{}/{}/{}", where, key.resource, key.name)};
  request.body = options.dump();
  cluster.calls.handle(request);
}

void set_containers(json& pod, const json& state) {
  const bool is_running = state.contains("running");
  json statuses = json::array();
  for (const json& container : value_at(pod, "/spec/containers")) {
    statuses.push_back({{"name", text_at(container, "/name")},
                        {"image", text_at(container, "/image")},
                        {"ready", is_running},
                        {"started", is_running},
                        {"restartCount", 0},
                        {"state", state}});
  }
  pod["status"]["containerStatuses"] = std::move(statuses);
}

bool is_reserved(const json& object, const std::string& pod_uid) {
  const json& reserved = value_at(object, "/status/reservedFor");
  return !value_at(object, "/status/allocation").is_null() &&
         std::any_of(reserved.begin(), reserved.end(),
                     [&](const json& entry) { return text_at(entry, "/uid") == pod_uid; });
}

bool has_devices(const LockedCluster& cluster, const ObjectKey& key, const json& pod) {
  const std::vector<ObjectKey> wanted = device_requests_of(key, value_at(pod, "/spec"));
  return std::ranges::all_of(wanted, [&](const ObjectKey& one) {
    const ObjectPtr found = cluster.store.find(one);
    return found && is_reserved(*found, text_at(pod, "/metadata/uid"));
  });
}

bool start_pod(LockedCluster& cluster, const std::string& name) {
  const ObjectPtr before = find_at_kubelet(cluster, name);
  if (!before || text_at(*before, "/status/phase") != "Pending" || is_being_deleted(*before) ||
      !has_devices(cluster, pod_key(name), *before)) {
    return false;
  }
  json pod = *before;
  const std::string now = cluster.calls.now();
  set_containers(pod, {{"running", {{"startedAt", now}}}});
  pod["status"]["phase"] = "Running";
  pod["status"]["startTime"] = now;
  pod["status"]["hostIP"] = "192.0.2.1";
  pod["status"]["podIP"] = "198.51.100.1";
  for (const char* type : {"Initialized", "ContainersReady", "Ready"}) {
    set_condition(pod, {.type = type, .status = "True"}, now);
  }
  write(cluster, pod_key(name), std::move(pod));
  return true;
}

void set_not_ready(json& pod, const std::string& reason, const std::string& now) {
  for (const char* type : {"ContainersReady", "Ready"}) {
    set_condition(pod, {.type = type, .status = "False", .reason = reason}, now);
  }
}

// Ends what runs of a pod; one that never ran has no container's end.
void end_containers(LockedCluster& cluster, json& pod, const PodEnd& end) {
  const std::string now = cluster.calls.now();
  const std::string started = text_at(pod, "/status/containerStatuses/0/state/running/startedAt");
  pod["status"]["phase"] = end.exit_code == 0 && !started.empty() ? "Succeeded" : "Failed";
  set_not_ready(pod, end.exit_code == 0 ? "PodCompleted" : "PodFailed", now);
  if (started.empty()) return;
  const std::string reason = !end.reason.empty()  ? end.reason
                             : end.exit_code == 0 ? "Completed"
                                                  : "Error";
  json state = {
      {"exitCode", end.exit_code}, {"reason", reason}, {"startedAt", started}, {"finishedAt", now}};
  if (!end.message.empty()) state["message"] = end.message;
  set_containers(pod, {{"terminated", state}});
}

// The end of a pod, and of its deletion if there is one.
void finish(LockedCluster& cluster, const ObjectKey& key, json pod, const PodEnd& end) {
  const bool is_deleted = is_being_deleted(pod);
  end_containers(cluster, pod, end);
  write(cluster, key, std::move(pod));
  if (is_deleted) remove(cluster, key, {{"gracePeriodSeconds", 0}});
}

bool end_pod(LockedCluster& cluster, const std::string& name, const PodEnd& end) {
  const ObjectPtr pod = find_at_kubelet(cluster, name);
  if (!pod || text_at(*pod, "/status/phase") != "Running") return false;
  finish(cluster, pod_key(name), *pod, end);
  return true;
}

bool stop_pod(LockedCluster& cluster, const std::string& name, PodRunner::Stop manner) {
  const ObjectPtr pod = find_at_kubelet(cluster, name);
  if (!pod || !is_being_deleted(*pod) || is_pod_over(*pod)) return false;
  finish(cluster, pod_key(name), *pod,
         {.exit_code = manner == PodRunner::Stop::kObeys ? kTerminated : kKilled});
  return true;
}

// A pod that fails as a whole, without an end of its container.
bool fail_pod(LockedCluster& cluster, const std::string& name, const std::string& reason,
              const std::string& message, bool is_disruption) {
  const ObjectPtr before = find_at_kubelet(cluster, name);
  if (!before || is_pod_over(*before)) return false;
  json pod = *before;
  if (is_disruption) {
    set_condition(pod,
                  {.type = "DisruptionTarget",
                   .status = "True",
                   .reason = "TerminationByKubelet",
                   .message = message},
                  cluster.calls.now());
  }
  pod["status"]["reason"] = reason;
  pod["status"]["message"] = message;
  finish(cluster, pod_key(name), std::move(pod), {.exit_code = kKilled});
  return true;
}

bool fail_pod_image(LockedCluster& cluster, const std::string& name, const std::string& message,
                    const std::string& reason) {
  const ObjectPtr before = find_at_kubelet(cluster, name);
  if (!before || text_at(*before, "/status/phase") != "Pending") return false;
  json pod = *before;
  set_containers(pod, {{"waiting", {{"reason", reason}, {"message", message}}}});
  write(cluster, pod_key(name), std::move(pod));
  return true;
}

bool disrupt_pod(LockedCluster& cluster, const std::string& name, const std::string& reason,
                 const std::string& message) {
  const ObjectPtr before = cluster.store.find(pod_key(name));
  if (!before || is_pod_over(*before)) return false;
  json pod = *before;
  set_condition(
      pod, {.type = "DisruptionTarget", .status = "True", .reason = reason, .message = message},
      cluster.calls.now());
  write(cluster, pod_key(name), std::move(pod));
  remove(cluster, pod_key(name), json::object());
  return true;
}

bool is_reservation_over(const LockedCluster& cluster, const ObjectKey& key, const json& entry) {
  if (text_at(entry, "/resource") != "pods") return false;
  const ObjectPtr pod =
      cluster.store.find(pod_key(key.namespace_name + "/" + text_at(entry, "/name")));
  return !pod || text_at(*pod, "/metadata/uid") != text_at(entry, "/uid") || is_pod_over(*pod);
}

void release(LockedCluster& cluster) {
  for (const StoredObject& stored : cluster.store.list(kAllDeviceRequests)) {
    json object = *stored.object;
    json kept = json::array();
    for (const json& entry : value_at(object, "/status/reservedFor")) {
      if (!is_reservation_over(cluster, stored.key, entry)) kept.push_back(entry);
    }
    const bool is_free = kept.empty();
    if (is_free) {
      object["status"].erase("reservedFor");
    } else {
      object["status"]["reservedFor"] = std::move(kept);
    }
    json finalizers = value_at(object, "/metadata/finalizers");
    const auto own = std::find(finalizers.begin(), finalizers.end(), json(kClaimFinalizer));
    const bool is_allocated = !value_at(object, "/status/allocation").is_null();
    if (is_free && is_allocated && own != finalizers.end()) {
      object["status"].erase("allocation");
      finalizers.erase(own);
      object["metadata"]["finalizers"] = std::move(finalizers);
    }
    write(cluster, stored.key, std::move(object));
  }
}

void remove_pods_without_node(LockedCluster& cluster) {
  for (const StoredObject& stored : cluster.store.list(kAllPods)) {
    const std::string node = text_at(*stored.object, "/spec/nodeName");
    if (node.empty() || cluster.store.find(node_key(node))) continue;
    json pod = *stored.object;
    if (!is_pod_over(pod)) {
      set_condition(pod,
                    {.type = "DisruptionTarget",
                     .status = "True",
                     .reason = "DeletionByPodGC",
                     .message = "PodGC: node no longer exists"},
                    cluster.calls.now());
      pod["status"]["phase"] = "Failed";
      write(cluster, stored.key, std::move(pod));
    }
    remove(cluster, stored.key, {{"gracePeriodSeconds", 0}});
  }
}

void remove_orphans(LockedCluster& cluster) {
  std::set<std::string> uids;
  for (const auto& [key, object] : cluster.store.all()) {
    uids.insert(text_at(*object, "/metadata/uid"));
  }
  const std::map<ObjectKey, ObjectPtr> objects = cluster.store.all();
  for (const auto& [key, object] : objects) {
    const json& owners = value_at(*object, "/metadata/ownerReferences");
    const bool has_owner =
        owners.empty() || std::any_of(owners.begin(), owners.end(), [&](const json& owner) {
          return uids.contains(text_at(owner, "/uid"));
        });
    if (!has_owner) remove(cluster, key, json::object());
  }
}

json node_object(const std::string& name, const NodeOptions& options, const std::string& now) {
  json node = {{"metadata", {{"name", name}, {"labels", options.labels}}},
               {"spec", json::object()}};
  node["metadata"]["labels"]["kubernetes.io/hostname"] = name;
  json& capacity = node["status"]["capacity"];
  capacity = {{"cpu", std::to_string(options.cpus)}, {"memory", options.memory}, {"pods", "110"}};
  if (options.counted_gpus > 0) capacity["nvidia.com/gpu"] = std::to_string(options.counted_gpus);
  node["status"]["allocatable"] = capacity;
  set_condition(node, {.type = "Ready", .status = "True", .reason = "KubeletReady"}, now);
  return node;
}

json slice_object(const std::string& node, const std::vector<std::string>& uuids) {
  json devices = json::array();
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    json attributes;
    attributes["type"]["string"] = "gpu";
    attributes["uuid"]["string"] = uuids[i];
    attributes["productName"]["string"] = "NVIDIA H100 80GB HBM3";
    json device = {{"name", fmt::format("gpu-{}", i)}, {"attributes", attributes}};
    device["capacity"]["memory"]["value"] = "81559Mi";
    devices.push_back(std::move(device));
  }
  return {{"metadata", {{"name", fmt::format("{}-{}", node, kDriver)}}},
          {"spec",
           {{"driver", kDriver},
            {"nodeName", node},
            {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", devices}}}};
}

void set_node_ready(LockedCluster& cluster, const std::string& name, bool is_ready) {
  const ObjectPtr before = cluster.store.find(node_key(name));
  if (!before) return;
  json node = *before;
  node["spec"].erase("taints");
  if (is_ready) {
    set_condition(node, {.type = "Ready", .status = "True", .reason = "KubeletReady"},
                  cluster.calls.now());
  } else {
    for (const char* effect : {"NoSchedule", "NoExecute"}) {
      node["spec"]["taints"].push_back({{"key", kUnreachable}, {"effect", effect}});
    }
    set_condition(node,
                  {.type = "Ready",
                   .status = "Unknown",
                   .reason = "NodeStatusUnknown",
                   .message = "Kubelet stopped posting node status."},
                  cluster.calls.now());
  }
  write(cluster, node_key(name), std::move(node));
}

std::vector<std::string> pod_names(const ObjectStore& store) {
  std::vector<std::string> names;
  for (const StoredObject& pod : store.list(kAllPods)) {
    names.push_back(pod.key.namespace_name + "/" + pod.key.name);
  }
  return names;
}

}  // namespace

void PodRunner::add_node(const std::string& name, const NodeOptions& options) {
  server_.change([&](ApiCalls& calls, ObjectStore&) {
    ApiRequest request{.method = "POST", .path = "/api/v1/nodes"};
    request.body = node_object(name, options, calls.now()).dump();
    calls.handle(request);
    if (options.gpus.empty()) return;
    request.path = "/apis/resource.k8s.io/v1/resourceslices";
    request.body = slice_object(name, options.gpus).dump();
    calls.handle(request);
  });
}

void PodRunner::lose_node(const std::string& name) {
  change([&](LockedCluster& cluster) {
    set_node_ready(cluster, name, false);
    return true;
  });
}

void PodRunner::recover_node(const std::string& name) {
  change([&](LockedCluster& cluster) {
    set_node_ready(cluster, name, true);
    return true;
  });
}

void PodRunner::remove_node(const std::string& name) {
  change([&](LockedCluster& cluster) {
    remove(cluster, node_key(name), json::object());
    const ObjectKey slices = {
        .group = "resource.k8s.io", .resource = "resourceslices", .namespace_name = "", .name = ""};
    for (const StoredObject& slice : cluster.store.list(slices)) {
      if (text_at(*slice.object, "/spec/nodeName") == name) {
        remove(cluster, slice.key, json::object());
      }
    }
    return true;
  });
}

bool PodRunner::change(const std::function<bool(LockedCluster&)>& work) {
  bool is_done = false;
  server_.change([&](ApiCalls& calls, ObjectStore& store) {
    LockedCluster cluster{calls, store};
    is_done = work(cluster);
    if (has_controllers_) release(cluster);
  });
  return is_done;
}

std::uint32_t PodRunner::bind_all() {
  std::uint32_t bound = 0;
  server_.change(
      [&](ApiCalls& calls, ObjectStore& store) { bound = PodScheduler(calls, store).bind_all(); });
  return bound;
}

bool PodRunner::disrupt(const std::string& pod, const std::string& reason,
                        const std::string& message) {
  return change([&](LockedCluster& cluster) { return disrupt_pod(cluster, pod, reason, message); });
}

bool PodRunner::start(const std::string& pod) {
  return change([&](LockedCluster& cluster) { return start_pod(cluster, pod); });
}

std::uint32_t PodRunner::start_all() {
  std::uint32_t started = 0;
  change([&](LockedCluster& cluster) {
    for (const std::string& pod : pod_names(cluster.store))
      started += start_pod(cluster, pod) ? 1 : 0;
    return true;
  });
  return started;
}

bool PodRunner::end(const std::string& pod, const PodEnd& end) {
  return change([&](LockedCluster& cluster) { return end_pod(cluster, pod, end); });
}

bool PodRunner::fail_image(const std::string& pod, const std::string& message,
                           const std::string& reason) {
  return change(
      [&](LockedCluster& cluster) { return fail_pod_image(cluster, pod, message, reason); });
}

bool PodRunner::fail_for_pressure(const std::string& pod, const std::string& message) {
  return change(
      [&](LockedCluster& cluster) { return fail_pod(cluster, pod, "Evicted", message, true); });
}

bool PodRunner::reject(const std::string& pod, const std::string& reason,
                       const std::string& message) {
  return change([&](LockedCluster& cluster) {
    const ObjectPtr found = cluster.store.find(pod_key(pod));
    if (!found || text_at(*found, "/status/phase") != "Pending") return false;
    return fail_pod(cluster, pod, reason, message, false);
  });
}

bool PodRunner::stop(const std::string& pod, Stop manner) {
  return change([&](LockedCluster& cluster) { return stop_pod(cluster, pod, manner); });
}

std::uint32_t PodRunner::stop_all(Stop manner) {
  std::uint32_t stopped = 0;
  change([&](LockedCluster& cluster) {
    for (const std::string& pod : pod_names(cluster.store)) {
      stopped += stop_pod(cluster, pod, manner) ? 1 : 0;
    }
    return true;
  });
  return stopped;
}

void PodRunner::release_devices() {
  server_.change([](ApiCalls& calls, ObjectStore& store) {
    LockedCluster cluster{calls, store};
    release(cluster);
  });
}

void PodRunner::collect_garbage() {
  change([&](LockedCluster& cluster) {
    remove_pods_without_node(cluster);
    remove_orphans(cluster);
    return true;
  });
}

void PodRunner::advance() {
  bind_all();
  start_all();
  stop_all(Stop::kObeys);
  if (has_controllers_) collect_garbage();
}

}  // namespace gpu_platform::kubernetes
