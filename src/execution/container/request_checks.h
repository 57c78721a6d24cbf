#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "execution/container/container_failure.h"
#include "execution/container/container_rules.h"
#include "model/container.h"
#include "node/protocol.h"

// The checks of a job's container before its engine is asked for anything. Nothing is taken on the
// daemon's word.

namespace gpu_platform::execution {

// Compares a request with the site's rules. Returns its mounts.
ContainerDone<std::vector<model::ContainerMount>> check_request(const ContainerRules& rules,
                                                                const node::LaunchRequest& request);

// Returns a failure if this host does not execute programs of that platform, as which the kernel
// would refuse them ("exec format error"). An empty one is this host's. `what` names it.
ContainerDone<> check_host_platform(const std::string& what, const std::string& platform);

// The exit code of a container that did not start, by the words of its runtime.
int code_of_start(std::string_view message);

}  // namespace gpu_platform::execution
