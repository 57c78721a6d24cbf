#include "doctor/facts/host_facts.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace gpu_platform::doctor {

namespace fs = std::filesystem;

std::string file_system_of(std::string_view path, std::string_view mounts) {
  std::istringstream lines{std::string(mounts)};
  std::string line;
  std::string best;
  std::string type = "unknown";
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string device;
    std::string point;
    std::string kind;
    fields >> device >> point >> kind;
    const bool holds = point == "/" || path == point || path.starts_with(point + "/");
    // Of two on one point the later one lies on top.
    if (holds && point.size() >= best.size()) {
      best = point;
      type = kind;
    }
  }
  return type;
}

DiskFacts look_at_disk(const std::string& data_dir) {
  fs::path path = fs::absolute(data_dir);
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  std::ostringstream mounts;
  mounts << std::ifstream("/proc/self/mounts").rdbuf();
  DiskFacts disk;
  disk.path = path.string();
  disk.file_system = file_system_of(disk.path, mounts.str());
  disk.is_writable = access(disk.path.c_str(), W_OK) == 0;
  struct statvfs about{};
  if (statvfs(disk.path.c_str(), &about) == 0) {
    disk.available = base::Bytes(static_cast<std::int64_t>(about.f_bavail * about.f_frsize));
  }
  return disk;
}

KernelFacts look_at_kernel() {
  KernelFacts kernel;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) kernel.open_files = files.rlim_cur;
  timex clock{};
  kernel.is_clock_synchronised = adjtimex(&clock) != TIME_ERROR;
  return kernel;
}

bool has_unit_in(const std::vector<fs::path>& folders) {
  return std::ranges::any_of(folders, [](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / "gpu-platform.service", error);
  });
}

void look_at_service_manager(ServiceFacts& service) {
  std::error_code error;
  service.has_systemd = fs::is_directory("/run/systemd/system", error);
  service.has_units =
      has_unit_in({"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"});
}

}  // namespace gpu_platform::doctor
