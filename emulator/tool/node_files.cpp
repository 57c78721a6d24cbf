#include "tool/node_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "mig_files.h"
#include "os/descriptor.h"
#include "tool/mig_layout.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::hash64;
using gpu_platform::base::system_error;

template <std::size_t N>
void copy_text(const std::string& text, char (&out)[N]) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(out, text.data(), size);
  out[size] = '\0';
}

// Returns an identifier that is the same for a node of this name on every machine and after every
// restart, and different for all others.
std::string uuid_of(const Board& board, const std::string& node, std::size_t index) {
  const std::string seed = fmt::format("{}/{}/{}", board.name, node, index);
  const std::uint64_t high = hash64(seed, 1);
  const std::uint64_t low = hash64(seed, 2);
  return fmt::format("GPU-{:08x}-{:04x}-5{:03x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
                     high & 0xfff, 0x8000 | (low >> 48 & 0x3fff), low & 0xffff'ffff'ffff);
}

std::string serial_of(const Board& board, const std::string& node, std::size_t index) {
  return fmt::format("16{:011}",
                     hash64(fmt::format("{}/{}/{}", board.name, node, index), 3) % 100'000'000'000);
}

TopologyLevel level_between(const BoardGpu& a, const BoardGpu& b) {
  if (a.pcie_path == b.pcie_path && a.pcie_path.size() > 1) return TopologyLevel::kSingleSwitch;
  if (a.pcie_path.front() == b.pcie_path.front()) {
    const bool share_switch =
        a.pcie_path.size() > 1 && b.pcie_path.size() > 1 && a.pcie_path[1] == b.pcie_path[1];
    return share_switch ? TopologyLevel::kMultipleSwitches : TopologyLevel::kHostBridge;
  }
  return a.numa_node == b.numa_node ? TopologyLevel::kNumaNode : TopologyLevel::kSystem;
}

// CUDA cores of one multiprocessor.
std::uint32_t cores_per_multiprocessor(const GpuModel& model) {
  const bool has_half =
      model.compute_major < 8 || (model.compute_major == 8 && model.compute_minor == 0);
  return has_half ? 64 : 128;
}

void fill_mig(const GpuModel& model, GpuState& gpu) {
  gpu.mig = model.mig;
  gpu.mig_profile_count = static_cast<std::uint32_t>(model.mig_profiles.size());
  for (std::size_t i = 0; i < model.mig_profiles.size(); ++i) {
    const MigSize& from = model.mig_profiles[i];
    MigProfile& to = gpu.mig_profiles[i];
    copy_text(from.name, to.name);
    to.profile = from.profile;
    to.id = from.id;
    to.slices = from.slices;
    to.instances = from.instances;
    to.starts = from.starts;
    to.memory_slices = from.memory_slices;
    to.memory_mib = from.memory_mib;
    to.multiprocessors = from.multiprocessors;
    to.copy_engines = from.copy_engines;
    to.decoders = from.decoders;
    to.jpeg_engines = from.jpeg_engines;
    to.ofa_engines = from.ofa_engines;
    gpu.max_mig_devices = std::max(gpu.max_mig_devices, from.instances);
  }
  gpu.mig_mode = gpu.mig_pending = static_cast<std::uint32_t>(model.mig);
}

// Makes the instances that the board begins with.
Status lay_out_instances(const GpuModel& model, GpuState& gpu) {
  for (const MigStart& wanted : model.mig_layout) {
    const MigProfile* profile = profile_called(gpu, wanted.profile.c_str());
    std::uint32_t id = 0;
    std::uint32_t compute = 0;
    const bool is_made =
        profile != nullptr &&
        create_gpu_instance(gpu, *profile, wanted.start.value_or(kNoId), &id) == MigResult::kDone &&
        create_compute_instance(gpu, id, profile->slices, kNoId, &compute) == MigResult::kDone;
    if (is_made) continue;
    return gpu_platform::base::invalid(
        "mig_layout",
        fmt::format("mig_layout: there is no place for {} on {}", wanted.profile, gpu.name));
  }
  return {};
}

void fill_model(const GpuModel& model, GpuState& gpu) {
  copy_text(model.name, gpu.name);
  copy_text(model.vbios, gpu.vbios_version);
  copy_text(model.part_number, gpu.part_number);
  copy_text(model.inforom_image, gpu.inforom_image);
  copy_text(model.inforom_oem, gpu.inforom_oem);
  copy_text(model.inforom_ecc, gpu.inforom_ecc);
  fill_mig(model, gpu);
  gpu.multiprocessors = model.multiprocessors;
  gpu.cores = model.multiprocessors * cores_per_multiprocessor(model);
  gpu.memory_bus_bits = model.memory_bus_bits;
  gpu.bar1_bytes = model.bar1_bytes;
  gpu.has_memory_temperature = model.has_memory_temperature ? 1 : 0;
  gpu.remap_banks = model.remap_banks;
  gpu.nvlink_version = model.nvlink_version;
  gpu.pci.device_id = model.pci_device;
  gpu.pci.subsystem_id = model.pci_subsystem;
  gpu.brand = model.brand;
  gpu.architecture = model.architecture;
  gpu.compute_major = model.compute_major;
  gpu.compute_minor = model.compute_minor;
  gpu.pcie_generation = model.pcie_generation;
  gpu.pcie_width = model.pcie_width;
  gpu.ecc = model.ecc;
  gpu.persistence = model.persistence;
  gpu.memory_bytes = model.memory_bytes;
  gpu.reserved_bytes = model.reserved_bytes;
  gpu.power_limit_mw = model.power_limit_watts * 1000;
  gpu.power_limit_min_mw = model.power_limit_min_watts * 1000;
  gpu.power_limit_max_mw = model.power_limit_max_watts * 1000;
  gpu.power_idle_mw = model.power_idle_watts * 1000;
  gpu.temperature_idle_c = model.temperature_idle_c;
  gpu.temperature_loaded_c = model.temperature_loaded_c;
  gpu.temperature_slowdown_c = model.temperature_slowdown_c;
  gpu.temperature_shutdown_c = model.temperature_shutdown_c;
  gpu.clock_sm_idle_mhz = model.clock_sm_idle_mhz;
  gpu.clock_sm_max_mhz = model.clock_sm_max_mhz;
  gpu.clock_memory_idle_mhz = model.clock_memory_idle_mhz;
  gpu.clock_memory_max_mhz = model.clock_memory_max_mhz;
}

void fill_gpu(const Board& board, const std::string& node, std::size_t index, GpuState& gpu) {
  const BoardGpu& from = board.gpus[index];
  const GpuModel& model = board.models[from.model];
  gpu.pci = from.pci;
  fill_model(model, gpu);
  copy_text(uuid_of(board, node, index), gpu.uuid);
  if (model.has_serial) copy_text(serial_of(board, node, index), gpu.serial);
  gpu.minor = static_cast<std::uint32_t>(index);
  if (model.is_on_baseboard) gpu.module_id = gpu.minor + 1;
  gpu.numa_node = from.numa_node;
  gpu.has_fabric = board.has_fabric ? 1 : 0;
  gpu.nvlink_count = model.nvlink_ports;
  for (NvLink& link : gpu.nvlinks) link.version = static_cast<std::uint8_t>(model.nvlink_version);
}

// Takes the next free port of each GPU, in the order of the board file.
class Wiring {
 public:
  explicit Wiring(BoardState& state) : state_(state) {}

  void to_switch(std::uint32_t gpu, const PciAddress& nvswitch, std::uint32_t switch_port) {
    connect(gpu, LinkPeer::kSwitch, switch_port, nvswitch);
  }
  void between(std::uint32_t first, std::uint32_t second) {
    const std::uint32_t port_of_first = used_[first];
    const std::uint32_t port_of_second = used_[second];
    connect(first, LinkPeer::kGpu, port_of_second, state_.gpus[second].pci);
    connect(second, LinkPeer::kGpu, port_of_first, state_.gpus[first].pci);
  }

 private:
  void connect(std::uint32_t gpu, LinkPeer peer, std::uint32_t remote_link,
               const PciAddress& remote) {
    NvLink& link = state_.gpus[gpu].nvlinks[used_[gpu]++];
    link.active = 1;
    link.peer = peer;
    link.remote_link = static_cast<std::uint8_t>(remote_link);
    link.remote = remote;
  }

  BoardState& state_;
  std::uint32_t used_[kMaxGpus] = {};
};

void wire(const Board& board, BoardState& state) {
  Wiring wiring(state);
  for (const NvSwitch& nvswitch : board.switches) {
    for (std::uint32_t gpu = 0; gpu < state.gpu_count; ++gpu) {
      for (std::uint32_t i = 0; i < nvswitch.links_per_gpu; ++i) {
        wiring.to_switch(gpu, nvswitch.pci, gpu * nvswitch.links_per_gpu + i);
      }
    }
  }
  for (const GpuLink& link : board.gpu_links) {
    for (std::uint32_t i = 0; i < link.links; ++i) {
      wiring.between(static_cast<std::uint32_t>(link.first),
                     static_cast<std::uint32_t>(link.second));
    }
  }
}

Result<std::unique_ptr<BoardState>> make_state(const Board& board, const std::string& node) {
  auto state = std::make_unique<BoardState>();
  std::memcpy(state->magic, kMagic, sizeof kMagic);
  state->version = kVersion;
  state->size = sizeof(BoardState);
  state->board_file_hash = board.file_hash;
  copy_text(board.name, state->board);
  copy_text(node, state->node_name);
  copy_text(board.driver_version, state->driver_version);
  copy_text(board.nvml_version, state->nvml_version);
  state->cuda_version = board.cuda_version;
  std::from_chars(board.driver_version.data(),
                  board.driver_version.data() + board.driver_version.size(), state->driver_major);
  state->numa_count = board.host.numa_nodes();
  for (std::uint32_t i = 0; i < state->numa_count; ++i) {
    for (const std::uint32_t cpu : cpus_of_numa_node(board.host, i)) {
      state->numa_nodes[i].cpus[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
    }
    state->numa_nodes[i].memory_bytes = board.host.memory_bytes / state->numa_count;
    state->numa_nodes[i].socket = i / board.host.numa_nodes_per_socket;
  }
  state->gpu_count = static_cast<std::uint32_t>(board.gpus.size());
  for (std::size_t i = 0; i < board.gpus.size(); ++i) {
    fill_gpu(board, node, i, state->gpus[i]);
    TRY(lay_out_instances(board.models[board.gpus[i].model], state->gpus[i]));
    for (std::size_t k = 0; k < board.gpus.size(); ++k) {
      state->topology[i][k] =
          i == k ? TopologyLevel::kInternal : level_between(board.gpus[i], board.gpus[k]);
    }
  }
  wire(board, *state);
  for (std::uint32_t i = 0; i < state->gpu_count; ++i) settle(state->gpus[i]);
  return state;
}

// "0-55,112-167", as Linux writes sets of CPUs.
std::string cpu_list(const std::vector<std::uint32_t>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] == cpus[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[end]);
    i = end + 1;
  }
  return text;
}

std::string host_description(const Board& board, const std::string& node) {
  nlohmann::ordered_json host;
  host["version"] = 1;
  host["board"] = board.name;
  host["host_name"] = node;
  host["sockets"] = board.host.sockets;
  host["memory_bytes"] = board.host.memory_bytes;
  host["numa_nodes"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < board.host.numa_nodes(); ++i) {
    host["numa_nodes"].push_back(
        {{"id", i},
         {"socket", i / board.host.numa_nodes_per_socket},
         {"cpus", cpu_list(cpus_of_numa_node(board.host, i))},
         {"memory_bytes", board.host.memory_bytes / board.host.numa_nodes()}});
  }
  return host.dump(2) + "\n";
}

Status write_all(int fd, const char* data, std::size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error("write " + path, errno));
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

// The file appears whole or not at all.
Status replace_file(const std::string& path, const char* data, std::size_t size, mode_t mode) {
  const std::string temporary = fmt::format("{}.{}.new", path, ::getpid());
  {
    const gpu_platform::os::Descriptor fd(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd.get() < 0) return std::unexpected(system_error("create " + temporary, errno));
    // The umask does not decide: readings are no secret, and only the board's owner changes them.
    if (::fchmod(fd.get(), mode) != 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return std::unexpected(system_error("set the mode of " + temporary, error));
    }
    if (auto written = write_all(fd.get(), data, size, temporary); !written) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return std::unexpected(system_error("rename to " + path, error));
  }
  return {};
}

// The files of MIG beside the state: what is there already is of a board that is no more.
Status write_capability_files(const BoardState& state, const std::string& dir) {
  std::error_code error;
  const std::string capabilities = dir + "/" + kCapabilityFolder;
  std::filesystem::remove_all(capabilities, error);
  if (error) return std::unexpected(system_error("remove " + capabilities, error.value()));
  if (!board_has_mig(state)) return {};
  for (const NodeFile& file : mig_files_of(state)) {
    const std::filesystem::path path = std::filesystem::path(dir) / file.path;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return std::unexpected(system_error("create " + path.string(), error.value()));
    TRY(replace_file(path.string(), file.text.data(), file.text.size(), 0444));
  }
  return {};
}

bool is_current(const std::string& path, const Board& board, const std::string& node) {
  const auto file = StateFile::open(path, StateFile::Access::kRead);
  if (!file) return false;
  const BoardState& state = file->state();
  return state.board_file_hash == board.file_hash && board.name == state.board &&
         node == state.node_name;
}

}  // namespace

bool is_node_name(std::string_view name) {
  if (name.empty() || name.size() > 200 || name.front() == '.') return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Status create_node(const Board& board, const std::string& node_name, const std::string& dir) {
  if (!is_node_name(node_name)) {
    return gpu_platform::base::invalid(
        "node-name",
        fmt::format("\"{}\" is not a node name: letters, digits, '.', '_' and '-'", node_name));
  }
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return std::unexpected(system_error("create " + dir, error.value()));
  const gpu_platform::os::Descriptor folder(
      ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return std::unexpected(system_error("open " + dir, errno));
  while (flock(folder.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return std::unexpected(system_error("lock " + dir, errno));
  }
  const std::string host = host_description(board, node_name);
  TRY(replace_file(dir + "/" + kHostName, host.data(), host.size(), 0644));
  const std::string path = dir + "/" + kStateName;
  constexpr mode_t kForItsOwner = 0644;
  if (is_current(path, board, node_name)) {
    // Boards that were made before are writable for all users.
    if (::chmod(path.c_str(), kForItsOwner) == 0) return {};
    return std::unexpected(system_error("set the mode of " + path, errno));
  }
  TRY_ASSIGN(const auto state, make_state(board, node_name));
  TRY(replace_file(path, reinterpret_cast<const char*>(state.get()), sizeof *state, kForItsOwner));
  return write_capability_files(*state, dir);
}

}  // namespace gpu_emulator
