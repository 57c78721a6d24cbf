#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mig_names.h"

// The files with which NVIDIA's driver tells of the capabilities of MIG: the minor numbers of the
// devices that open the way to the instances. They lie beside the state file, in proc/driver as on
// a machine, and each program that makes or destroys an instance keeps them up to date. Header only
// and without allocation, because the emulated library writes them, too.

namespace gpu_emulator {

inline constexpr char kCapabilityFolder[] = "proc/driver/nvidia/capabilities";
inline constexpr char kMigMinorsFile[] = "proc/driver/nvidia-caps/mig-minors";

// The text of one capability's file; `mode` is that of its device.
inline constexpr unsigned kModeOfConfig = 0400;
inline constexpr unsigned kModeOfAccess = 0444;
inline int write_capability_text(char (&out)[96], std::uint32_t minor, unsigned mode) {
  return snprintf(out, sizeof out, "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n",
                  minor, mode);
}

// The folder of an instance's file "access": "gpu0/mig/gi13", "gpu0/mig/gi13/ci0".
inline int write_instance_folder(char (&out)[64], std::uint32_t gpu_minor, const InstanceId& id) {
  if (id.compute_instance == kNoId) {
    return snprintf(out, sizeof out, "gpu%u/mig/gi%u", gpu_minor, id.gpu_instance);
  }
  return snprintf(out, sizeof out, "gpu%u/mig/gi%u/ci%u", gpu_minor, id.gpu_instance,
                  id.compute_instance);
}

// A path below the folder that the state file lies in. Bounded; an overlong one names nothing.
class NodePath {
 public:
  NodePath(const char* state_path, const char* below) {
    const char* slash = state_path == nullptr ? nullptr : strrchr(state_path, '/');
    const int folder = slash == nullptr ? 0 : static_cast<int>(slash - state_path);
    const int size =
        snprintf(text_, sizeof text_, "%.*s%s%s", folder, slash == nullptr ? "" : state_path,
                 slash == nullptr ? "" : "/", below);
    if (size < 0 || static_cast<std::size_t>(size) >= sizeof text_) text_[0] = '\0';
  }
  const char* text() const { return text_; }

  // Makes all folders above the path. One that is there already is no failure.
  void make_folders() {
    for (char* at = strchr(text_ + 1, '/'); at != nullptr; at = strchr(at + 1, '/')) {
      *at = '\0';
      mkdir(text_, 0755);
      *at = '/';
    }
  }

 private:
  char text_[4096];
};

inline bool write_node_file(NodePath& path, const char* text, std::size_t size) {
  path.make_folders();
  const int fd = open(path.text(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0444);
  if (fd < 0) return false;
  const bool is_written = write(fd, text, size) == static_cast<ssize_t>(size);
  close(fd);
  return is_written;
}

// The path of an instance's folder, or of its file below it.
inline NodePath capability_path(const char* state_path, const GpuState& gpu, const InstanceId& id,
                                const char* file) {
  char folder[64];
  char below[192];
  write_instance_folder(folder, gpu.minor, id);
  snprintf(below, sizeof below, "%s/%s%s", kCapabilityFolder, folder, file);
  return {state_path, below};
}

inline bool has_capability_file(const char* state_path, const GpuState& gpu, const InstanceId& id) {
  return access(capability_path(state_path, gpu, id, "/access").text(), F_OK) == 0;
}

// Makes the file of one instance, or removes it with its folder.
inline void write_capability(const char* state_path, const GpuState& gpu, const InstanceId& id) {
  const bool is_wanted = is_there(gpu, id);
  if (has_capability_file(state_path, gpu, id) == is_wanted) return;
  NodePath of_file = capability_path(state_path, gpu, id, "/access");
  if (is_wanted) {
    char text[96];
    const int size = write_capability_text(text, capability_minor(gpu.minor, id), kModeOfAccess);
    write_node_file(of_file, text, static_cast<std::size_t>(size));
  } else {
    unlink(of_file.text());
    rmdir(capability_path(state_path, gpu, id, "").text());
  }
}

// Brings the files of a GPU's instances up to date. The caller holds the lock of the state file. A
// program that may change the state but not its folder leaves the files as they are.
inline void write_capabilities(const char* state_path, const GpuState& gpu) {
  for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) {
    const InstanceId id{i, kNoId};
    const bool is_owner_there = is_there(gpu, id);
    // Those of compute instances are there at most as long as that of their GPU instance.
    if (!is_owner_there && !has_capability_file(state_path, gpu, id)) continue;
    if (is_owner_there) write_capability(state_path, gpu, id);
    for (std::uint32_t k = 0; k < kMaxComputeInstances; ++k) {
      write_capability(state_path, gpu, {i, k});
    }
    if (!is_owner_there) write_capability(state_path, gpu, id);
  }
}

}  // namespace gpu_emulator
