#include "node/launcher/launch_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

// Nothing where there is no driver of NVIDIA's.
std::optional<std::vector<std::uint32_t>> read_gpu_minors() {
  const std::string path = "/proc/driver/nvidia/gpus";
  DIR* const folder = opendir(path.c_str());
  if (folder == nullptr) return std::nullopt;
  std::vector<std::uint32_t> minors;
  while (const dirent* entry = readdir(folder)) {
    const std::string file = path + "/" + entry->d_name + "/information";
    const auto minor = parse_device_minor(os::read_small_file(AT_FDCWD, file.c_str()));
    if (minor) minors.push_back(*minor);
  }
  closedir(folder);
  return minors;
}

}  // namespace

std::string LaunchCheck::run(const LaunchRequest& request) {
  if (std::string why = error_of(request, host_.boot_id); !why.empty()) return why;
  if (std::string why = check_devices(request.devices); !why.empty()) return why;
  return check_container(request);
}

// GPUs may come while we run, with their driver.
std::string LaunchCheck::check_devices(const std::vector<DeviceNumber>& devices) {
  if (devices.empty()) return {};
  DriverList& drivers = host_.confinement.drivers;
  const std::int64_t now_ms = os::boot_ms();
  if (!gpu_minors_) gpu_minors_ = read_gpu_minors();
  if (error_in_devices(devices, drivers.text(now_ms), gpu_minors_).empty()) return {};
  gpu_minors_ = read_gpu_minors();
  return error_in_devices(devices, drivers.read_again(now_ms), gpu_minors_);
}

// A container is held by the attempt's cgroup, into which its engine puts it. The engine of our own
// user has no rights but ours, and its containers are held as our processes are.
std::string LaunchCheck::check_container(const LaunchRequest& request) const {
  if (!request.container.is_given()) return {};
  if (host_.container_client.empty()) {
    return "this launcher starts no jobs with an image (--containers)";
  }
  if (geteuid() == 0 && host_.base_fd < 0)
    return "jobs with an image need cgroups: " + host_.base.why;
  return {};
}

}  // namespace gpu_platform::node
