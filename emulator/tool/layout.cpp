#include "tool/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include "tool/mig_layout.h"

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
  void copy(const std::string& path, const std::string& source) {
    if (!result_ || !make_parent(path)) return;
    std::error_code error;
    fs::copy_file(source, root_ / path, error);
    keep("copy ", path, error);
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

// A range of addresses of a PCI device: a BAR.
struct Region {
  std::uint32_t bar;
  std::uint64_t bytes;  // a power of two
  std::uint32_t bits;   // that a BAR has beside its address
  std::uint32_t flags;  // as the kernel shows them
};
constexpr std::uint32_t kMemory32 = 0x0;
constexpr std::uint32_t kMemory64 = 0xc;  // that may be fetched ahead
constexpr std::uint32_t kFlags32 = 0x40200;
constexpr std::uint32_t kFlags64 = 0x14220c;

// From Hopper on all regions have 64 bits and take two BARs each.
std::vector<Region> regions_of(const GpuState& gpu) {
  constexpr std::uint64_t kMib = 1 << 20;
  constexpr std::uint32_t kHopper = 9;
  const std::uint64_t memory = std::bit_ceil(std::max(gpu.bar1_bytes, kMib));
  if (gpu.architecture >= kHopper) {
    return {{0, 16 * kMib, kMemory64, kFlags64},
            {2, memory, kMemory64, kFlags64},
            {4, 32 * kMib, kMemory64, kFlags64}};
  }
  return {{0, 16 * kMib, kMemory32, kFlags32},
          {1, memory, kMemory64, kFlags64},
          {3, 32 * kMib, kMemory64, kFlags64}};
}

// Each device has 32 MiB below 4 GiB and 1 TiB above it, a quarter of that for each region.
std::uint64_t start_of(std::uint32_t ordinal, const Region& region) {
  const std::uint64_t place = ordinal;
  if (region.bits == kMemory32) return 0x8000'0000 + (place << 25);
  return ((place + 1) << 40) + (std::uint64_t{region.bar / 2} << 38);
}

// The six BARs, the ROM, and the six of virtual functions, of which there are none.
std::string resources(std::uint32_t ordinal, const std::vector<Region>& regions) {
  constexpr std::size_t kLines = 13;
  std::vector<std::string> lines(kLines, fmt::format("0x{0:016x} 0x{0:016x} 0x{0:016x}\n", 0));
  for (const Region& region : regions) {
    const std::uint64_t start = start_of(ordinal, region);
    lines[region.bar] = fmt::format("0x{:016x} 0x{:016x} 0x{:016x}\n", start,
                                    start + region.bytes - 1, region.flags);
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

// The configuration space, as root reads it: the header, and the capabilities of power management
// and of PCI Express with the link.
class Configuration {
 public:
  Configuration() : bytes_(4096, '\0') {}
  void put(std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_[at + i] = static_cast<char>(value >> (8 * i));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct PciDevice {
  PciAddress address;
  std::uint32_t ordinal = 0;  // among the devices of the board
  std::uint32_t class_code = 0;
  std::uint32_t numa_node = 0;
  std::uint32_t generation = 0;
  std::uint32_t width = 0;
  std::vector<Region> regions;
};

std::string configuration(const PciDevice& device) {
  constexpr std::uint32_t kRevision = 0xa1;
  constexpr std::size_t kPower = 0x60;
  constexpr std::size_t kExpress = 0x78;
  Configuration space;
  space.put(0x00, device.address.device_id, 4);
  space.put(0x04, 0x0406, 2);  // memory, bus master, no legacy interrupts
  space.put(0x06, 0x0010, 2);  // has capabilities
  space.put(0x08, device.class_code << 8 | kRevision, 4);
  for (const Region& region : device.regions) {
    const std::size_t size = region.bits == kMemory64 ? 8 : 4;
    space.put(0x10 + std::size_t{4} * region.bar, start_of(device.ordinal, region) | region.bits,
              size);
  }
  space.put(0x2c, device.address.subsystem_id, 4);
  space.put(0x34, kPower, 1);
  space.put(kPower, 0x0003 << 16 | kExpress << 8 | 0x01, 4);
  space.put(kExpress, 0x0002 << 16 | 0x10, 4);  // an endpoint, the last in the list
  space.put(kExpress + 0x0c, device.width << 4 | device.generation, 4);
  space.put(kExpress + 0x12, device.width << 4 | device.generation, 2);
  return space.bytes();
}

void write_pci(Folder& out, const PciDevice& device) {
  const PciAddress& pci = device.address;
  const std::string dir = "sys/bus/pci/devices/" + name_of(pci) + "/";
  const auto hex = [&](const char* name, std::uint32_t value) {
    out.file(dir + name, fmt::format("0x{:04x}\n", value));
  };
  hex("vendor", pci.device_id & 0xffff);
  hex("device", pci.device_id >> 16);
  hex("subsystem_vendor", pci.subsystem_id & 0xffff);
  hex("subsystem_device", pci.subsystem_id >> 16);
  out.file(dir + "class", fmt::format("0x{:06x}\n", device.class_code));
  out.file(dir + "enable", "1\n");
  out.file(dir + "numa_node", fmt::format("{}\n", device.numa_node));
  out.file(dir + "resource", resources(device.ordinal, device.regions));
  out.file(dir + "config", configuration(device));
}

void write_gpu_pci(Folder& out, const BoardState& state, const GpuState& gpu) {
  const std::string name = name_of(gpu.pci);
  const std::string dir = "sys/bus/pci/devices/" + name + "/";
  const std::uint32_t generation = read_gpu(gpu).pcie_generation;
  const auto ordinal = static_cast<std::uint32_t>(&gpu - state.gpus);
  write_pci(out, {gpu.pci, ordinal, kGpuClass, gpu.numa_node, generation, gpu.pcie_width,
                  regions_of(gpu)});
  out.file(dir + "local_cpulist", cpu_list(state.numa_nodes[gpu.numa_node % kMaxNumaNodes]) + "\n");
  out.file(dir + "current_link_speed", fmt::format("{}\n", speed_of(generation)));
  out.file(dir + "max_link_speed", fmt::format("{}\n", speed_of(gpu.pcie_generation)));
  out.file(dir + "current_link_width", fmt::format("{}\n", pcie_width(gpu)));
  out.file(dir + "max_link_width", fmt::format("{}\n", gpu.pcie_width));
  out.file(dir + "uevent",
           fmt::format("DRIVER=nvidia\nPCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\n"
                       "PCI_SLOT_NAME={}\n",
                       kGpuClass, gpu.pci.device_id & 0xffff, gpu.pci.device_id >> 16, name));
  out.link(dir + "driver", "../../drivers/nvidia");
  out.link("sys/bus/pci/drivers/nvidia/" + name, "../../devices/" + name);
}

// A board says nothing about where its switches are: each is shown near the first GPU that has a
// link to it.
void write_switches(Folder& out, const BoardState& state) {
  constexpr std::uint64_t kRegisters = 32 << 20;
  const std::vector<Region> regions = {{0, kRegisters, kMemory32, kFlags32}};
  std::set<std::string> known;
  for (std::uint32_t i = 0; i < std::min(state.gpu_count, kMaxGpus); ++i) {
    const GpuState& gpu = state.gpus[i];
    for (std::uint32_t k = 0; k < std::min(gpu.nvlink_count, kMaxNvLinks); ++k) {
      const NvLink& link = gpu.nvlinks[k];
      if (link.active == 0 || link.peer != LinkPeer::kSwitch) continue;
      if (!known.insert(name_of(link.remote)).second) continue;
      const auto ordinal = static_cast<std::uint32_t>(kMaxGpus + known.size() - 1);
      write_pci(out, {link.remote, ordinal, kSwitchClass, gpu.numa_node, 2, 4, regions});
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
  if (!board_has_mig(state)) return;
  for (const NodeFile& file : mig_files_of(state)) out.file(file.path, file.text);
}

void write_driver_root(Folder& out, const BoardState& state, const std::string& library) {
  const std::string libraries = "driver/usr/lib/x86_64-linux-gnu/";
  const std::string name = fmt::format("libnvidia-ml.so.{}", state.driver_version);
  out.copy(libraries + name, library);
  out.link(libraries + "libnvidia-ml.so.1", name);
  out.link(libraries + "libnvidia-ml.so", "libnvidia-ml.so.1");
  for (const char* device : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}) {
    out.file(fmt::format("driver/dev/{}", device), "");
  }
  for (std::uint32_t i = 0; i < std::min(state.gpu_count, kMaxGpus); ++i) {
    out.file(fmt::format("driver/dev/nvidia{}", state.gpus[i].minor), "");
  }
  if (!board_has_mig(state)) return;
  for (const std::string& device : mig_devices_of(state)) out.file("driver/dev/" + device, "");
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
