#pragma once

namespace gpu_platform::node {

// The life of the keeper: its service owns a delegated cgroup in which jobs' cgroups are made, and
// lasts as long as the keeper does. It moves itself into `keeper` below that cgroup, since a cgroup
// with processes of its own cannot give controllers to its children, and waits for SIGTERM. Jobs
// are not ended with it. The exit code of the program.
int keep_cgroup();

}  // namespace gpu_platform::node
