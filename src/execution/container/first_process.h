#pragma once

#include <functional>
#include <string>

#include "execution/container/attempt_container.h"
#include "execution/container/container_failure.h"
#include "execution/container/create_body.h"
#include "execution/container/start_hold.h"

// The look at a container's first process while it is held (start_hold.h).

namespace gpu_platform::execution {

// Waits until the process executes the platform's program; `goes_on` waits a little
// and returns false if what waits is to be given up. A handle that is not open: the process has
// ended, or the wait was given up.
ContainerDone<HeldProcess> wait_for_held(int pid, const std::string& cgroup, const KeptStart& start,
                                         const std::function<bool()>& goes_on);

// Returns why the process may not go on; empty: it may.
std::string error_in_held(const HeldProcess& first, const ContainerPlan& plan,
                          const KeptStart& start);

}  // namespace gpu_platform::execution
