#include "tool/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

namespace gpu_emulator {
namespace {

namespace fs = std::filesystem;
using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::system_error;

constexpr std::uint32_t kGpuClass = 0x030200;     // 3D controller
constexpr std::uint32_t kSwitchClass = 0x068000;  // another bridge

// Files and links below one folder. The first failure is kept and all after it is skipped.
class Folder {
 public:
  explicit Folder(fs::path root) : root_(std::move(root)) {}

  void file(const std::string& path, std::string_view text) {
    if (!result_ || !make_parent(path)) return;
    errno = 0;
    std::ofstream out(root_ / path, std::ios::binary);
    out << text;
    out.close();
    if (!out) result_ = std::unexpected(system_error("write " + (root_ / path).string(), errno));
  }
  void link(const std::string& path, const std::string& target) {
    if (!result_ || !make_parent(path)) return;
    std::error_code error;
    fs::create_symlink(target, root_ / path, error);
    keep("link ", path, error);
  }
  const Status& result() const { return result_; }

 private:
  bool make_parent(const std::string& path) {
    std::error_code error;
    fs::create_directories((root_ / path).parent_path(), error);
    keep("create the folder of ", path, error);
    return !error;
  }
  void keep(const char* what, const std::string& path, const std::error_code& error) {
    if (error)
      result_ = std::unexpected(system_error(what + (root_ / path).string(), error.value()));
  }

  fs::path root_;
  Status result_;
};

// As Linux writes it; NVML has eight digits for the domain.
std::string name_of(const PciAddress& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

std::string cpu_list(const NumaNode& node) {
  std::string text;
  const auto has = [&](std::uint32_t cpu) { return (node.cpus[cpu / 64] >> cpu % 64 & 1) != 0; };
  constexpr std::uint32_t kCpus = kCpuWords * 64;
  for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
    if (!has(cpu)) continue;
    const std::uint32_t first = cpu;
    while (cpu + 1 < kCpus && has(cpu + 1)) ++cpu;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (cpu > first) text += fmt::format("-{}", cpu);
  }
  return text;
}

std::string_view speed_of(std::uint32_t generation) {
  constexpr std::string_view kSpeeds[] = {"Unknown",        "2.5 GT/s PCIe",  "5.0 GT/s PCIe",
                                          "8.0 GT/s PCIe",  "16.0 GT/s PCIe", "32.0 GT/s PCIe",
                                          "64.0 GT/s PCIe", "128.0 GT/s PCIe"};
  return kSpeeds[generation % std::size(kSpeeds)];
}

void write_pci(Folder& out, const PciAddress& pci, std::uint32_t class_code) {
  const std::string dir = "sys/bus/pci/devices/" + name_of(pci) + "/";
  const auto hex = [&](const char* name, std::uint32_t value) {
    out.file(dir + name, fmt::format("0x{:04x}\n", value));
  };
  hex("vendor", pci.device_id & 0xffff);
  hex("device", pci.device_id >> 16);
  hex("subsystem_vendor", pci.subsystem_id & 0xffff);
  hex("subsystem_device", pci.subsystem_id >> 16);
  out.file(dir + "class", fmt::format("0x{:06x}\n", class_code));
  out.file(dir + "enable", "1\n");
}

void write_gpu_pci(Folder& out, const BoardState& state, const GpuState& gpu) {
  write_pci(out, gpu.pci, kGpuClass);
  const std::string name = name_of(gpu.pci);
  const std::string dir = "sys/bus/pci/devices/" + name + "/";
  const std::uint32_t generation = read_gpu(gpu).pcie_generation;
  out.file(dir + "numa_node", fmt::format("{}\n", gpu.numa_node));
  out.file(dir + "local_cpulist", cpu_list(state.numa_nodes[gpu.numa_node % kMaxNumaNodes]) + "\n");
  out.file(dir + "current_link_speed", fmt::format("{}\n", speed_of(generation)));
  out.file(dir + "max_link_speed", fmt::format("{}\n", speed_of(gpu.pcie_generation)));
  out.file(dir + "current_link_width", fmt::format("{}\n", gpu.pcie_width));
  out.file(dir + "max_link_width", fmt::format("{}\n", gpu.pcie_width));
  out.file(dir + "uevent",
           fmt::format("DRIVER=nvidia\nPCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\n"
                       "PCI_SLOT_NAME={}\n",
                       kGpuClass, gpu.pci.device_id & 0xffff, gpu.pci.device_id >> 16, name));
  out.link(dir + "driver", "../../drivers/nvidia");
  out.link("sys/bus/pci/drivers/nvidia/" + name, "../../devices/" + name);
}

void write_switches(Folder& out, const BoardState& state) {
  std::set<std::string> known;
  for (std::uint32_t i = 0; i < std::min(state.gpu_count, kMaxGpus); ++i) {
    const GpuState& gpu = state.gpus[i];
    for (std::uint32_t k = 0; k < std::min(gpu.nvlink_count, kMaxNvLinks); ++k) {
      const NvLink& link = gpu.nvlinks[k];
      if (link.active == 0 || link.peer != LinkPeer::kSwitch) continue;
      if (known.insert(name_of(link.remote)).second) write_pci(out, link.remote, kSwitchClass);
    }
  }
}

void write_gpu_information(Folder& out, const BoardState& state, const GpuState& gpu) {
  const std::string dir = "proc/driver/nvidia/gpus/" + name_of(gpu.pci) + "/";
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{}: \t {}\n", name, value);
  };
  line("Model", gpu.name);
  line("GPU UUID", gpu.uuid);
  line("Video BIOS", gpu.vbios_version);
  line("Bus Type", "PCIe");
  line("Bus Location", name_of(gpu.pci));
  line("Device Minor", fmt::format("{}", gpu.minor));
  line("GPU Firmware", state.driver_version);
  line("GPU Excluded", "No");
  out.file(dir + "information", text);
}

void write_driver(Folder& out, const BoardState& state) {
  const std::string version = state.driver_version;
  out.file("sys/module/nvidia/version", version + "\n");
  out.file("sys/module/nvidia/initstate", "live\n");
  out.file("sys/module/nvidia/refcnt", "1\n");
  out.file("proc/driver/nvidia/version",
           fmt::format("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}\n", version));
  out.file("proc/driver/nvidia/params",
           "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n");
  out.file("proc/modules",
           "nvidia_uvm 1540096 0 - Live 0x0000000000000000 (O)\n"
           "nvidia_modeset 1306624 0 - Live 0x0000000000000000 (O)\n"
           "nvidia 56717312 2 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (O)\n");
  out.file("proc/devices",
           "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n234 nvidia-caps\n"
           "510 nvidia-uvm\n\nBlock devices:\n");
  const bool has_mig =
      std::any_of(state.gpus, state.gpus + std::min(state.gpu_count, kMaxGpus),
                  [](const GpuState& gpu) { return gpu.mig != Support::kUnsupported; });
  if (!has_mig) return;
  for (const auto& [name, minor] : {std::pair("config", 1), std::pair("monitor", 2)}) {
    out.file(fmt::format("proc/driver/nvidia/capabilities/mig/{}", name),
             fmt::format("DeviceFileMinor: {}\nDeviceFileMode: 256\nDeviceFileModify: 1\n", minor));
  }
}

void write_driver_root(Folder& out, const BoardState& state, const std::string& library) {
  const std::string libraries = "driver/usr/lib/x86_64-linux-gnu/";
  const std::string name = fmt::format("libnvidia-ml.so.{}", state.driver_version);
  out.link(libraries + name, library);
  out.link(libraries + "libnvidia-ml.so.1", name);
  out.link(libraries + "libnvidia-ml.so", "libnvidia-ml.so.1");
  for (const char* device : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}) {
    out.file(fmt::format("driver/dev/{}", device), "");
  }
  for (std::uint32_t i = 0; i < std::min(state.gpu_count, kMaxGpus); ++i) {
    out.file(fmt::format("driver/dev/nvidia{}", state.gpus[i].minor), "");
  }
}

}  // namespace

Status write_layout(const BoardState& state, const std::string& library, const std::string& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_empty(dir, error)) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("{} is not empty; name a folder that is, or that does not exist", dir));
  }
  Folder out(dir);
  for (std::uint32_t i = 0; i < std::min(state.gpu_count, kMaxGpus); ++i) {
    write_gpu_pci(out, state, state.gpus[i]);
    write_gpu_information(out, state, state.gpus[i]);
  }
  write_switches(out, state);
  write_driver(out, state);
  write_driver_root(out, state, library);
  return out.result();
}

}  // namespace gpu_emulator
