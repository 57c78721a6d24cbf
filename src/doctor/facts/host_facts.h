#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/findings.h"

// Facts that the kernel and the file system of this host tell. Nothing is changed.

namespace gpu_platform::doctor {

// Returns the type of the file system that holds the path ("ext4"): that of the longest mount point
// above it. `mounts`: the text of /proc/self/mounts. "unknown" if no mount point holds the path.
std::string file_system_of(std::string_view path, std::string_view mounts);

// About the data directory, or the nearest folder above it that exists.
DiskFacts look_at_disk(const std::string& data_dir);

KernelFacts look_at_kernel();

// Returns whether the daemon's unit lies in one of these folders.
bool has_unit_in(const std::vector<std::filesystem::path>& folders);

// Fills in what this host's service manager has; the daemon is not asked.
void look_at_service_manager(ServiceFacts& service);

}  // namespace gpu_platform::doctor
