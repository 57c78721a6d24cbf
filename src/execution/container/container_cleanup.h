#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// Removes what attempts have left with the engine and on the host because the process that spoke to
// the engine for them was killed, or the engine was away at their end; and images that no job has
// used for as long as the site's rules say.

namespace gpu_platform::execution {

struct ContainerCleanOptions {
  std::string rules;  // path of the site's rules
  // The absolute path of the launcher's base, below which the attempts' are; or empty, and
  std::string cgroup;
  std::string cluster;  // as in ContainerRunOptions
  std::string root;     // the launcher's folder
};

// Runs in a process of its own, with the launcher's rights. Waits for an engine that is away.
// Several at once take turns, and one that would find nothing new ends at once. Returns an exit
// code.
int clean_containers(const ContainerCleanOptions& options);

// Returns the attempt ("42-1") of a container of this cluster, from the answer to GET
// /containers/ID/json. Empty: it is none of ours, also if its labels say so: only the engine can
// put a container below `engine_cgroup`, the launcher's base as the engine names it.
std::string attempt_of(const nlohmann::json& container, std::string_view engine_cgroup);
// The same where containers are in no cgroup of ours: the engine is our own user's, so the labels
// are, too.
std::string rootless_attempt_of(const nlohmann::json& container, std::string_view cluster);

// The folder with the sources of an attempt's mounts. `cluster`: "gpu-platform-TOKEN".
std::string mounts_folder_begin(std::string_view cluster, std::string_view attempt);

}  // namespace gpu_platform::execution
