#include "tool/board_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/hash.h"
#include "tool/parse.h"
#include "tool/yaml_fields.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;

// nvmlBrandType_t
const std::vector<Choice> kBrands{{"quadro", 1}, {"tesla", 2}, {"geforce", 5},
                                  {"titan", 6},  {"rtx", 13},  {"nvidia", 14}};

// nvmlDeviceArchitecture_t
const std::vector<Choice> kArchitectures{{"volta", 5}, {"turing", 6}, {"ampere", 7},
                                         {"ada", 8},   {"hopper", 9}, {"blackwell", 10}};

const std::vector<Choice> kSupport{
    {"unsupported", static_cast<std::uint32_t>(Support::kUnsupported)},
    {"off", static_cast<std::uint32_t>(Support::kOff)},
    {"on", static_cast<std::uint32_t>(Support::kOn)}};

// NVML's numbers of NVLink versions.
const std::vector<Choice> kNvLinkGenerations{{"none", 0}, {"1.0", 1}, {"2.0", 2},
                                             {"3.0", 4},  {"4.0", 6}, {"5.0", 7}};

// NVML_GPU_INSTANCE_PROFILE_*
const std::vector<Choice> kMigProfiles{
    {"1_slice", 0}, {"2_slice", 1},       {"3_slice", 2},       {"4_slice", 3},
    {"7_slice", 4}, {"1_slice_media", 7}, {"2_slice_media", 8}, {"1_slice_double_memory", 9}};

Support support(YamlFields& fields, std::string_view key) {
  return static_cast<Support>(fields.choice(key, kSupport));
}

bool truth(YamlFields& fields, std::string_view key) {
  return fields.choice(key, {{"false", 0}, {"true", 1}}) == 1;
}

PciAddress pci(YamlFields& fields, std::string_view key) {
  const std::string text = fields.text(key, 16);
  if (text.empty()) return {};
  const auto address = parse_pci(text);
  if (!address) {
    fields.reject(key, fmt::format("\"{}\" is not a PCI address such as 00000000:1b:00.0", text));
    return {};
  }
  return *address;
}

void read_limits(YamlFields& fields, GpuModel& model) {
  constexpr std::uint64_t kMaxWatts = 10'000;
  constexpr std::uint64_t kMaxDegrees = 150;
  constexpr std::uint64_t kMaxMhz = 20'000;
  model.power_limit_min_watts = fields.number("power_limit_min_watts", 1, kMaxWatts);
  model.power_limit_max_watts =
      fields.number("power_limit_max_watts", model.power_limit_min_watts, kMaxWatts);
  model.power_limit_watts =
      fields.number("power_limit_watts", model.power_limit_min_watts, model.power_limit_max_watts);
  model.power_idle_watts = fields.number("power_idle_watts", 1, model.power_limit_watts);
  model.temperature_shutdown_c = fields.number("temperature_shutdown_c", 1, kMaxDegrees);
  model.temperature_slowdown_c =
      fields.number("temperature_slowdown_c", 1, model.temperature_shutdown_c);
  model.temperature_loaded_c =
      fields.number("temperature_loaded_c", 1, model.temperature_slowdown_c);
  model.temperature_idle_c = fields.number("temperature_idle_c", 1, model.temperature_loaded_c);
  model.clock_sm_max_mhz = fields.number("clock_sm_max_mhz", 1, kMaxMhz);
  model.clock_sm_idle_mhz = fields.number("clock_sm_idle_mhz", 1, model.clock_sm_max_mhz);
  model.clock_memory_max_mhz = fields.number("clock_memory_max_mhz", 1, kMaxMhz);
  model.clock_memory_idle_mhz =
      fields.number("clock_memory_idle_mhz", 1, model.clock_memory_max_mhz);
}

void read_nvlink_ports(YamlFields& fields, GpuModel& model) {
  model.nvlink_version = fields.choice("nvlink", kNvLinkGenerations);
  model.nvlink_ports = fields.number("nvlink_ports", 0, kMaxNvLinks);
  if ((model.nvlink_ports > 0) != (model.nvlink_version > 0)) {
    fields.reject("nvlink_ports", "give both the ports and a generation of nvlink, or neither");
  }
}

MigSize read_mig_size(YamlErrors& errors, const YAML::Node& node, const std::string& path) {
  constexpr std::uint32_t kMemorySlices = 8;
  YamlFields fields(errors, node, path,
                    {"profile", "id", "name", "slices", "instances", "starts", "memory_slices",
                     "memory", "multiprocessors", "copy_engines", "decoders", "jpeg", "ofa"});
  MigSize size;
  size.profile = fields.choice("profile", kMigProfiles);
  size.id = fields.number("id", 0, 255);
  size.name = fields.text("name", sizeof(MigProfile::name) - 1);
  size.slices = fields.number("slices", 1, 7);
  size.instances = fields.number("instances", 1, 7);
  size.memory_slices = fields.number("memory_slices", 1, kMemorySlices);
  for (const YAML::Node& start : fields.list("starts", 1, kMemorySlices)) {
    const auto at = start.IsScalar() ? parse_number(start.Scalar()) : std::nullopt;
    if (!at || *at + size.memory_slices > kMemorySlices) {
      errors.add(start, path + ".starts",
                 fmt::format("a memory slice from 0 to {} is needed, for {} from there on fit",
                             kMemorySlices - size.memory_slices, size.memory_slices));
      break;
    }
    size.starts |= 1u << *at;
  }
  size.memory_mib = static_cast<std::uint32_t>(fields.size("memory") >> 20);
  size.multiprocessors = fields.number("multiprocessors", 1, 1024);
  size.copy_engines = fields.number("copy_engines", 0, 32);
  size.decoders = fields.number("decoders", 0, 32);
  size.jpeg_engines = fields.number("jpeg", 0, 32);
  size.ofa_engines = fields.number("ofa", 0, 32);
  return size;
}

// "3g.40gb" or, at a memory slice, "3g.40gb@4".
void read_mig_layout(YamlFields& fields, GpuModel& model) {
  if (!fields.has("mig_layout")) return;
  for (const YAML::Node& node : fields.list("mig_layout", 0, kMaxMigDevices)) {
    const std::string text = node.IsScalar() ? node.Scalar() : "";
    const std::size_t at = std::min(text.find('@'), text.size());
    MigStart one{text.substr(0, at), std::nullopt};
    const bool is_known = std::ranges::find(model.mig_profiles, one.profile, &MigSize::name) !=
                          model.mig_profiles.end();
    std::optional<std::uint64_t> start;
    if (at < text.size()) start = parse_number(std::string_view(text).substr(at + 1));
    if (!is_known || (at < text.size() && !start)) {
      fields.reject("mig_layout",
                    fmt::format("\"{}\" is not one of the mig_profiles, such as {}", text,
                                model.mig_profiles.empty() ? std::string("none")
                                                           : model.mig_profiles.front().name));
      return;
    }
    if (start) one.start = static_cast<std::uint32_t>(*start);
    model.mig_layout.push_back(std::move(one));
  }
  if (model.mig != Support::kOn && !model.mig_layout.empty()) {
    fields.reject("mig_layout", "needs mig: on");
  }
}

void read_mig(YamlErrors& errors, YamlFields& fields, GpuModel& model) {
  model.mig = support(fields, "mig");
  for (const YAML::Node& node : fields.list("mig_profiles", 0, kMaxMigProfiles)) {
    const std::string path =
        fmt::format("{}[{}]", fields.path("mig_profiles"), model.mig_profiles.size());
    model.mig_profiles.push_back(read_mig_size(errors, node, path));
  }
  read_mig_layout(fields, model);
  if ((model.mig != Support::kUnsupported) != !model.mig_profiles.empty()) {
    fields.reject("mig_profiles", "needed where mig is off or on, empty where it is unsupported");
  }
}

GpuModel read_model(YamlErrors& errors, const YAML::Node& node, const std::string& path) {
  YamlFields fields(errors, node, path,
                    {"id",
                     "part_number",
                     "inforom_image",
                     "inforom_oem",
                     "inforom_ecc",
                     "on_baseboard",
                     "multiprocessors",
                     "memory_bus_bits",
                     "bar1",
                     "memory_temperature",
                     "remap_banks",
                     "nvlink",
                     "nvlink_ports",
                     "mig_profiles",
                     "name",
                     "brand",
                     "architecture",
                     "compute_capability",
                     "vbios",
                     "serial",
                     "memory",
                     "reserved_memory",
                     "pci_device",
                     "pci_subsystem",
                     "pcie_generation",
                     "pcie_width",
                     "power_limit_watts",
                     "power_limit_min_watts",
                     "power_limit_max_watts",
                     "power_idle_watts",
                     "temperature_idle_c",
                     "temperature_loaded_c",
                     "temperature_slowdown_c",
                     "temperature_shutdown_c",
                     "clock_sm_idle_mhz",
                     "clock_sm_max_mhz",
                     "clock_memory_idle_mhz",
                     "clock_memory_max_mhz",
                     "mig",
                     "ecc",
                     "persistence"},
                    {"mig_layout"});
  GpuModel model;
  model.id = fields.text("id", 32);
  model.name = fields.text("name", sizeof(GpuState::name) - 1);
  model.brand = fields.choice("brand", kBrands);
  model.architecture = fields.choice("architecture", kArchitectures);
  std::tie(model.compute_major, model.compute_minor) = fields.dotted("compute_capability");
  model.vbios = fields.text("vbios", sizeof(GpuState::vbios_version) - 1);
  model.part_number = fields.text("part_number", sizeof(GpuState::part_number) - 1);
  model.inforom_image = fields.text("inforom_image", sizeof(GpuState::inforom_image) - 1);
  model.inforom_oem = fields.text("inforom_oem", sizeof(GpuState::inforom_oem) - 1);
  model.inforom_ecc = fields.text("inforom_ecc", sizeof(GpuState::inforom_ecc) - 1);
  model.is_on_baseboard = truth(fields, "on_baseboard");
  model.has_serial = truth(fields, "serial");
  model.multiprocessors = fields.number("multiprocessors", 1, 1024);
  model.memory_bus_bits = fields.number("memory_bus_bits", 32, 16384);
  model.bar1_bytes = fields.size("bar1");
  model.has_memory_temperature = truth(fields, "memory_temperature");
  model.remap_banks = fields.number("remap_banks", 0, 65536);
  model.memory_bytes = fields.size("memory");
  model.reserved_bytes = fields.size("reserved_memory");
  if (model.reserved_bytes >= model.memory_bytes && model.memory_bytes > 0) {
    fields.reject("reserved_memory", "must be less than memory");
  }
  model.pci_device = fields.number("pci_device", 1, 0xffffffff);
  model.pci_subsystem = fields.number("pci_subsystem", 1, 0xffffffff);
  model.pcie_generation = fields.number("pcie_generation", 1, 7);
  model.pcie_width = fields.number("pcie_width", 1, 32);
  read_limits(fields, model);
  read_nvlink_ports(fields, model);
  read_mig(errors, fields, model);
  model.ecc = support(fields, "ecc");
  model.persistence = support(fields, "persistence");
  return model;
}

BoardHost read_host(YamlErrors& errors, const YAML::Node& node) {
  YamlFields fields(
      errors, node, "host",
      {"sockets", "cores_per_socket", "threads_per_core", "numa_nodes_per_socket", "memory"});
  BoardHost host;
  host.sockets = fields.number("sockets", 1, 8);
  host.cores_per_socket = fields.number("cores_per_socket", 1, 512);
  host.threads_per_core = fields.number("threads_per_core", 1, 8);
  host.numa_nodes_per_socket = fields.number("numa_nodes_per_socket", 1, 8);
  host.memory_bytes = fields.size("memory");
  if (host.cpus() > kCpuWords * 64) {
    fields.reject("cores_per_socket", fmt::format("at most {} CPUs are allowed", kCpuWords * 64));
  }
  if (host.numa_nodes() > kMaxNumaNodes) {
    fields.reject("numa_nodes_per_socket",
                  fmt::format("at most {} NUMA nodes are allowed", kMaxNumaNodes));
  }
  if (host.numa_nodes_per_socket > 0 && host.cores_per_socket % host.numa_nodes_per_socket != 0) {
    fields.reject("numa_nodes_per_socket", "must divide cores_per_socket");
  }
  return host;
}

void read_switches(YamlErrors& errors, YamlFields& fields, Board& board) {
  std::size_t index = 0;
  for (const YAML::Node& entry : fields.list("switches", 0, kMaxNvLinks)) {
    YamlFields one(errors, entry, fmt::format("nvlink.switches[{}]", index++),
                   {"pci", "pci_device", "links_per_gpu"});
    NvSwitch found{pci(one, "pci"), one.number("links_per_gpu", 1, kMaxNvLinks)};
    found.pci.device_id = one.number("pci_device", 1, 0xffffffff);
    board.switches.push_back(found);
  }
}

void read_gpu_links(YamlErrors& errors, YamlFields& fields, Board& board) {
  std::size_t index = 0;
  for (const YAML::Node& entry : fields.list("gpu_links", 0, kMaxGpus * kMaxGpus)) {
    const std::string path = fmt::format("nvlink.gpu_links[{}]", index++);
    YamlFields one(errors, entry, path, {"gpus", "links"});
    GpuLink link;
    link.links = one.number("links", 1, kMaxNvLinks);
    std::vector<std::uint64_t> ends;
    for (const YAML::Node& gpu : one.list("gpus", 2, 2)) {
      const auto number = gpu.IsScalar() ? parse_number(gpu.Scalar()) : std::nullopt;
      if (!number || *number >= board.gpus.size()) {
        errors.add(gpu, path + ".gpus",
                   fmt::format("numbers of GPUs are needed, from 0 to {}", board.gpus.size() - 1));
        return;
      }
      ends.push_back(*number);
    }
    if (ends.size() != 2) return;
    link.first = ends[0];
    link.second = ends[1];
    if (link.first >= link.second) one.reject("gpus", "the lower of two numbers comes first");
    for (const GpuLink& other : board.gpu_links) {
      if (other.first == link.first && other.second == link.second) {
        one.reject("gpus", "the pair is given twice");
      }
    }
    board.gpu_links.push_back(link);
  }
}

std::uint32_t used_ports(const Board& board, std::size_t gpu) {
  std::uint32_t links = 0;
  for (const NvSwitch& nvswitch : board.switches) links += nvswitch.links_per_gpu;
  for (const GpuLink& link : board.gpu_links) {
    if (link.first == gpu || link.second == gpu) links += link.links;
  }
  return links;
}

void read_nvlink(YamlErrors& errors, const YAML::Node& node, Board& board) {
  YamlFields fields(errors, node, "nvlink", {"fabric", "switches", "gpu_links"});
  board.has_fabric = truth(fields, "fabric");
  read_switches(errors, fields, board);
  read_gpu_links(errors, fields, board);
  for (std::size_t i = 0; i < board.gpus.size(); ++i) {
    const std::uint32_t ports = board.models[board.gpus[i].model].nvlink_ports;
    if (const std::uint32_t used = used_ports(board, i); used > ports) {
      errors.add(node, "nvlink",
                 fmt::format("GPU {} would use {} links and has {}", i, used, ports));
    }
  }
  if (board.has_fabric && board.switches.empty()) fields.reject("fabric", "needs switches");
}

BoardGpu read_gpu(YamlErrors& errors, const YAML::Node& node, const std::string& path,
                  const Board& board) {
  YamlFields fields(errors, node, path, {"model", "pci", "numa_node", "pcie_path"});
  BoardGpu gpu;
  std::vector<Choice> models;
  models.reserve(board.models.size());
  for (std::size_t i = 0; i < board.models.size(); ++i) {
    models.push_back({board.models[i].id, static_cast<std::uint32_t>(i)});
  }
  gpu.model = fields.choice("model", models);
  gpu.pci = pci(fields, "pci");
  gpu.numa_node = fields.number("numa_node", 0, std::max(board.host.numa_nodes(), 1u) - 1);
  for (const YAML::Node& part : fields.list("pcie_path", 1, 8)) {
    if (!part.IsScalar() || part.Scalar().empty()) {
      fields.reject("pcie_path", "names of the host bridge and the switches below it");
      break;
    }
    gpu.pcie_path.push_back(part.Scalar());
  }
  return gpu;
}

auto order_of(const PciAddress& pci) {
  return std::tie(pci.domain, pci.bus, pci.device);
}

void read_gpus(YamlErrors& errors, YamlFields& fields, Board& board) {
  std::size_t index = 0;
  for (const YAML::Node& node : fields.list("gpus", 1, kMaxGpus)) {
    const std::string path = fmt::format("gpus[{}]", index++);
    BoardGpu gpu = read_gpu(errors, node, path, board);
    // NVML counts GPUs in the order of their PCI addresses.
    if (!board.gpus.empty() && order_of(board.gpus.back().pci) >= order_of(gpu.pci)) {
      errors.add(node, path + ".pci", "must be greater than the one before");
    }
    board.gpus.push_back(std::move(gpu));
  }
}

void read_models(YamlErrors& errors, YamlFields& fields, Board& board) {
  for (const YAML::Node& node : fields.list("models", 1, kMaxGpus)) {
    const std::string path = fmt::format("models[{}]", board.models.size());
    GpuModel model = read_model(errors, node, path);
    for (const GpuModel& other : board.models) {
      if (other.id == model.id) errors.add(node, path + ".id", "given to two models");
    }
    board.models.push_back(std::move(model));
  }
}

Board read_board(YamlErrors& errors, const YAML::Node& root) {
  YamlFields fields(errors, root, "",
                    {"board", "description", "driver", "host", "models", "nvlink", "gpus"});
  Board board;
  if (errors.first()) return board;
  board.name = fields.text("board", sizeof(BoardState::board) - 1);
  board.description = fields.text("description", 200);
  YamlFields driver(errors, fields.node("driver"), "driver", {"version", "nvml", "cuda"});
  board.driver_version = driver.text("version", sizeof(BoardState::driver_version) - 1);
  board.nvml_version = driver.text("nvml", sizeof(BoardState::nvml_version) - 1);
  const auto [cuda_major, cuda_minor] = driver.dotted("cuda");
  board.cuda_version = cuda_major * 1000 + cuda_minor * 10;
  board.host = read_host(errors, fields.node("host"));
  read_models(errors, fields, board);
  if (!errors.first()) read_gpus(errors, fields, board);
  if (!errors.first()) read_nvlink(errors, fields.node("nvlink"), board);
  return board;
}

}  // namespace

Result<Board> parse_board(const std::string& text, const std::string& file) {
  YamlErrors errors(file);
  try {
    Board board = read_board(errors, YAML::Load(text));
    if (errors.first()) return std::unexpected(*errors.first());
    board.file_hash = gpu_platform::base::hash64(text);
    return board;
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
}

Result<Board> load_board(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::kNotFound, fmt::format("{}: cannot be read", path));
  std::ostringstream text;
  text << in.rdbuf();
  return parse_board(text.str(), path);
}

std::vector<std::uint32_t> cpus_of_numa_node(const BoardHost& host, std::uint32_t numa_node) {
  const std::uint32_t cores = host.cores_per_socket / host.numa_nodes_per_socket;
  const std::uint32_t all_cores = host.sockets * host.cores_per_socket;
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t thread = 0; thread < host.threads_per_core; ++thread) {
    for (std::uint32_t core = 0; core < cores; ++core) {
      cpus.push_back(thread * all_cores + numa_node * cores + core);
    }
  }
  return cpus;
}

}  // namespace gpu_emulator
