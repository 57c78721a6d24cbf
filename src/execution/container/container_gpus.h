#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "execution/container/container_failure.h"
#include "execution/container/container_rules.h"
#include "model/container.h"
#include "node/protocol.h"

// The GPUs of a job's container. The device program of the attempt's cgroup refuses all others,
// for every engine; here the engine is told which to put into the container.

namespace gpu_platform::execution {

// A device node of the host, and where the container has it.
struct ContainerDevice {
  std::string source;
  std::string target;
};

// Returns which of the request's GPUs has a name that is no UUID: an engine knows names that mean
// all of them. Empty: none.
std::string strange_gpu_name(const node::LaunchRequest& request);

// How an engine gets the GPUs: a rule of the site, else GpuWay::kNodes for an emulated board, CDI
// for an engine that says that it can, and NVIDIA's runtime for the others.
enum class GpuWay : std::uint8_t { kNone, kNodes, kCdi, kNvidia };

// Returns whether only the engine's answer to GET /info tells; `minor`: of the version of its API.
bool is_gpu_way_the_engines(const node::LaunchRequest& request, const ContainerRules& rules,
                            int minor);

// `info`: that answer, or null where is_gpu_way_the_engines() is false.
GpuWay gpu_way(const node::LaunchRequest& request, const ContainerRules& rules,
               const nlohmann::json& info, int minor);

// The device nodes for GpuWay::kNodes: the driver's in /dev, or for an emulated board nodes with
// the same numbers in a folder of root's, which lie there until this object ends. Those are mounted
// and not asked for as devices: a runtime makes a device only of the node that the host has at the
// same place. Needs root's rights.
class GpuNodes {
 public:
  GpuNodes() = default;
  GpuNodes(const GpuNodes&) = delete;
  GpuNodes& operator=(const GpuNodes&) = delete;
  ~GpuNodes() { remove(); }

  // `begin`: of the name of that folder (mounts_folder_begin).
  ContainerDone<> find(const node::LaunchRequest& request, const std::string& begin);
  const std::vector<ContainerDevice>& found() const { return found_; }
  void remove();

 private:
  ContainerDone<> make(const node::LaunchRequest& request, std::string folder);

  std::vector<ContainerDevice> found_;
  std::string folder_;  // empty: there is none
};

// Adds what asks for the GPUs to the body of a create call. `nodes` is for GpuWay::kNodes.
void put_gpus(nlohmann::json& body, GpuWay way, const node::LaunchRequest& request,
              const std::vector<ContainerDevice>& nodes);

// The environment of a container: the request's, whose CUDA_VISIBLE_DEVICES names the GPUs as a
// container has them. NVIDIA's runtime hook is told to do nothing where it is not asked for: many
// images ask it for all GPUs.
std::vector<std::string> container_environment(const node::LaunchRequest& request, GpuWay way);

// The folders that a client of its user's MPS server needs, as `environment` (a request's) names
// them: the server's pipes at their own place, and its shared memory as /dev/shm, which is the
// host's where jobs have no folders of their own. Empty: it names none.
std::vector<model::ContainerMount> mps_mounts(const std::vector<std::string_view>& environment,
                                              bool private_folders);

// Returns which of the GPUs that were asked for the engine has dropped, from `HostConfig` of its
// answer to GET /containers/ID/json; empty: none.
std::string dropped_gpus(const nlohmann::json& asked, const nlohmann::json& made);

// Returns which GPU's device node is not below `root`, the container's file system as
// "/proc/PID/root"; empty: all of them are there, or there is no such root, because the process
// has ended or is just ending.
std::string missing_gpu_node(const node::LaunchRequest& request, const std::string& root);

}  // namespace gpu_platform::execution
