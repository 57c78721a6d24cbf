#include "execution/container/first_process.h"

#include <fcntl.h>

#include <fmt/format.h>

#include "execution/container/container_gpus.h"
#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

constexpr std::int64_t kHoldMs = 20'000;  // for the engine to execute the program

std::string status_of(int pid) {
  return os::read_small_file(AT_FDCWD, fmt::format("/proc/{}/status", pid).c_str());
}

}  // namespace

ContainerDone<HeldProcess> wait_for_held(int pid, const std::string& cgroup, const KeptStart& start,
                                         const std::function<bool()>& goes_on) {
  HeldProcess first = hold_process_in(cgroup, pid);
  const std::string status = status_of(pid);
  const bool is_over = status.empty() || status.find("\nState:\tZ") != std::string::npos;
  if (!first.is_there() && !is_over) {
    return container_failed("the engine started it outside of the job's cgroup");
  }
  const std::int64_t until = os::boot_ms() + kHoldMs;
  while (first.is_there() && !is_held(pid, start)) {
    if (first.has_ended() || !goes_on()) return HeldProcess();
    if (os::boot_ms() > until) return container_failed("the engine started another program");
  }
  return first;
}

std::string error_in_held(const HeldProcess& first, const ContainerPlan& plan,
                          const KeptStart& start) {
  if (std::string why = error_in_process(status_of(first.pid), plan); !why.empty()) return why;
  const std::string root = fmt::format("/proc/{}/root", first.pid);
  if (!has_our_files(root, start)) {
    return "the image covers /etc or /dev with links or volumes of its own";
  }
  const std::string gpu = missing_gpu_node(*plan.request, root);
  return gpu.empty() ? gpu : "the engine started it without the GPU " + gpu;
}

}  // namespace gpu_platform::execution
