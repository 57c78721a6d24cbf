#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "execution/container/container_gpus.h"
#include "execution/container/container_rules.h"
#include "node/protocol.h"

// What the engine is asked for, and whether it is what came of it. Pure.

namespace gpu_platform::execution {

// A mount whose source was opened; with root's rights it is at a place of our own.
struct OpenMount {
  std::string source;
  std::string target;
  bool read_only = false;
};

struct ContainerPlan {
  const node::LaunchRequest* request = nullptr;
  const ContainerRules* rules = nullptr;
  std::string attempt;  // "42-1"
  std::string cluster;  // names the launcher's folder, so that engines may serve several
  std::string cgroup;   // of the attempt, as the engine names it; empty: rootless, no limits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::string> groups;
  std::vector<OpenMount> mounts;  // the engine's to make
  // The platform's program that the container starts with, and its arguments; the image's entry
  // point and the job's command follow them. Without: the engine starts the job's own program, and
  // makes its folders in memory and its directory.
  std::vector<std::string> start;
  std::vector<std::string> entrypoint;  // the image's, for `start`
  bool has_annotations = false;         // the engine knows annotations; else they are labels alone
  GpuWay gpu_way = GpuWay::kNone;
  std::vector<ContainerDevice> gpu_nodes;  // for GpuWay::kNodes
};

// The body of POST /containers/create, or why there can be none.
base::Result<nlohmann::json> create_body(const ContainerPlan& plan);

// Returns what the engine has made otherwise than it was asked to, from its answer to GET
// /containers/ID/json; empty: nothing. What it leaves out of its answer is not held against it: the
// running process is compared too.
std::string difference(const nlohmann::json& asked, const nlohmann::json& made);

// Returns why the process of a container may not go on, from the text of its /proc/PID/status;
// empty: it may. It has exactly the user, the group and, but for an engine without root's rights,
// the groups of the plan.
std::string error_in_process(std::string_view status, const ContainerPlan& plan);

}  // namespace gpu_platform::execution
