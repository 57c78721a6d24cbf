#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "board_state.h"
#include "tool/state_file.h"

// Board files: one machine type in YAML, every field required (but mig_layout), nothing unknown
// allowed. An error
// names file, line, field and what is allowed.

namespace gpu_emulator {

struct MigSize {
  std::uint32_t profile = 0;  // NVML_GPU_INSTANCE_PROFILE_*
  std::uint32_t id = 0;
  std::string name;
  std::uint32_t slices = 0;
  std::uint32_t instances = 0;
  std::uint32_t starts = 0;  // bit mask of memory slices
  std::uint32_t memory_slices = 0;
  std::uint32_t memory_mib = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t copy_engines = 0;
  std::uint32_t decoders = 0;
  std::uint32_t jpeg_engines = 0;
  std::uint32_t ofa_engines = 0;
};

// An instance that a new board's GPUs have.
struct MigStart {
  std::string profile;                 // "3g.40gb"
  std::optional<std::uint32_t> start;  // its first memory slice; where the driver likes it
};

struct GpuModel {
  std::string id;  // by which the board's GPUs refer to it
  std::string name;
  std::uint32_t brand = 0;
  std::uint32_t architecture = 0;
  std::uint32_t compute_major = 0;
  std::uint32_t compute_minor = 0;
  std::string vbios;
  std::string part_number;
  std::string inforom_image;
  std::string inforom_oem;
  std::string inforom_ecc;
  bool is_on_baseboard = false;  // one of several modules of a machine, not a card
  bool has_serial = false;
  std::uint32_t multiprocessors = 0;
  std::uint32_t memory_bus_bits = 0;
  std::uint64_t bar1_bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint32_t pci_device = 0;
  std::uint32_t pci_subsystem = 0;
  std::uint32_t pcie_generation = 0;
  std::uint32_t pcie_width = 0;
  std::uint32_t power_limit_watts = 0;
  std::uint32_t power_limit_min_watts = 0;
  std::uint32_t power_limit_max_watts = 0;
  std::uint32_t power_idle_watts = 0;
  std::uint32_t temperature_idle_c = 0;
  std::uint32_t temperature_loaded_c = 0;
  std::uint32_t temperature_slowdown_c = 0;
  std::uint32_t temperature_shutdown_c = 0;
  std::uint32_t clock_sm_idle_mhz = 0;
  std::uint32_t clock_sm_max_mhz = 0;
  std::uint32_t clock_memory_idle_mhz = 0;
  std::uint32_t clock_memory_max_mhz = 0;
  Support mig = Support::kUnsupported;
  std::vector<MigSize> mig_profiles;
  std::vector<MigStart> mig_layout;  // each with one compute instance of its size
  std::uint32_t nvlink_version = 0;  // NVML's number; 0: no NVLink
  std::uint32_t nvlink_ports = 0;
  bool has_memory_temperature = false;
  std::uint32_t remap_banks = 0;  // 0: retires pages instead of remapping rows
  Support ecc = Support::kUnsupported;
  Support persistence = Support::kUnsupported;
};

struct NvSwitch {
  PciAddress pci{};
  std::uint32_t links_per_gpu = 0;
};

// NVLinks between two GPUs without a switch.
struct GpuLink {
  std::size_t first = 0;
  std::size_t second = 0;
  std::uint32_t links = 0;
};

struct BoardGpu {
  std::size_t model = 0;  // index in Board::models
  PciAddress pci{};
  std::uint32_t numa_node = 0;
  std::vector<std::string> pcie_path;  // host bridge first
};

struct BoardHost {
  std::uint32_t sockets = 0;
  std::uint32_t cores_per_socket = 0;
  std::uint32_t threads_per_core = 0;
  std::uint32_t numa_nodes_per_socket = 0;
  std::uint64_t memory_bytes = 0;

  std::uint32_t cpus() const { return sockets * cores_per_socket * threads_per_core; }
  std::uint32_t numa_nodes() const { return sockets * numa_nodes_per_socket; }
};

struct Board {
  std::string name;
  std::string description;
  std::string driver_version;
  std::string nvml_version;
  std::uint32_t cuda_version = 0;  // 12040 = 12.4
  BoardHost host;
  std::vector<GpuModel> models;
  bool has_fabric = false;         // a fabric manager joins the GPUs on the switches
  std::vector<NvSwitch> switches;  // every GPU has links to each
  std::vector<GpuLink> gpu_links;
  std::vector<BoardGpu> gpus;  // in PCI order, as NVML counts them
  std::uint64_t file_hash = 0;
};

// `file` is only named in errors.
Result<Board> parse_board(const std::string& text, const std::string& file);
Result<Board> load_board(const std::string& path);

// CPUs of one NUMA node as Linux numbers them: first threads of all cores before the second ones.
std::vector<std::uint32_t> cpus_of_numa_node(const BoardHost& host, std::uint32_t numa_node);

}  // namespace gpu_emulator
