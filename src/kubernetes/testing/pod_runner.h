#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/fake_api_server.h"

// What runs pods in a cluster: scheduler, kubelets and controllers, as a puppet. Nothing happens by
// itself: a test calls each step, so that every order of steps can be had. Each call is one change
// of the server's store.
//
// Pods are named "NAMESPACE/POD". A call for a pod that is not in the state that it needs changes
// nothing and returns false. Thread: any.

namespace gpu_platform::kubernetes {

struct LockedCluster;

struct PodEnd {
  std::int32_t exit_code = 0;
  std::string reason =
      "";  // empty: "Completed" or "Error"; or "OOMKilled", "ContainerCannotRun", …
  std::string message = "";
};

struct NodeOptions {
  std::vector<std::string> gpus =
      {};                         // the UUIDs of its devices "gpu-0", "gpu-1", …; see add_node()
  std::int64_t counted_gpus = 0;  // "nvidia.com/gpu" of its capacity
  std::int64_t cpus = 64;
  std::string memory = "512Gi";
  std::map<std::string, std::string> labels = {};
};

class PodRunner {
 public:
  // The server outlives it.
  explicit PodRunner(FakeApiServer& server) : server_(server) {}

  // ---- Nodes ----

  // A ready node and, if it has GPUs, a ResourceSlice "NODE-gpu.nvidia.com" of its pool.
  void add_node(const std::string& name, const NodeOptions& options = {});
  // The kubelet does not report any more: Ready is Unknown and the node has the taints
  // unreachable. Its pods stay as they are.
  void lose_node(const std::string& name);
  void recover_node(const std::string& name);  // it is ready again
  void remove_node(const std::string& name);   // with its slices

  // ---- Scheduler ----

  // Binds all pods that can be bound, by namespace and name; returns how many. Allocates and
  // reserves ResourceClaims: requests for devices by UUID, or for any. A pod that cannot be bound
  // gets the condition PodScheduled False with reason Unschedulable. A pod whose ResourceClaim does
  // not exist yet waits without a condition. A node fits by name, nodeSelector, taints, devices and
  // counts.
  std::uint32_t bind_all();
  // Has a pod deleted in favour of others, or because of its node: sets the condition
  // DisruptionTarget with this reason ("PreemptionByScheduler", "DeletionByTaintManager", …).
  bool disrupt(const std::string& pod, const std::string& reason, const std::string& message);

  // ---- Kubelet ----

  // Has a bound pod run. Refused, as a kubelet does, if a ResourceClaim is not allocated or not
  // reserved for the pod.
  bool start(const std::string& pod);
  std::uint32_t start_all();  // returns how many
  // The pod's container ends by itself.
  bool end(const std::string& pod, const PodEnd& end);
  // The image cannot be fetched: waiting ErrImagePull, or ImagePullBackOff.
  bool fail_image(const std::string& pod, const std::string& message,
                  const std::string& reason = "ImagePullBackOff");
  // The kubelet ends the pod itself for lack of memory or disk: phase Failed, reason Evicted.
  bool fail_for_pressure(const std::string& pod, const std::string& message);
  // The kubelet refuses a bound pod: phase Failed with a reason ("OutOfcpu", "NodeAffinity", …).
  bool reject(const std::string& pod, const std::string& reason, const std::string& message);
  // Ends the container of a pod that is being deleted, and then the deletion: it obeys SIGTERM
  // (exit status 143), or is killed at the end of its grace (137).
  enum class Stop : std::uint8_t { kObeys, kKilled };
  bool stop(const std::string& pod, Stop manner);
  std::uint32_t stop_all(Stop manner);  // returns how many

  // ---- Controllers ----

  // Without them, allocations and reservations stay when their pods are over.
  void set_has_controllers(bool has_controllers) { has_controllers_ = has_controllers; }
  // Clears reservations of pods that are over or gone, and allocations without a reservation whose
  // ResourceClaim has the finalizer delete-protection, which goes, too. The calls above do this
  // themselves after an end.
  void release_devices();
  // Ends pods of nodes that are gone (DisruptionTarget DeletionByPodGC), and deletes objects whose
  // owners are all gone.
  void collect_garbage();

  // All that a cluster in good order does: binds, starts, stops pods that obey, releases devices
  // and collects garbage.
  void advance();

 private:
  // Does `work` with the store locked, and then what controllers do.
  bool change(const std::function<bool(LockedCluster&)>& work);

  bool has_controllers_ = true;
  FakeApiServer& server_;
};

}  // namespace gpu_platform::kubernetes
