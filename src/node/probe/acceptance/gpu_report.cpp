#include "node/probe/acceptance/gpu_report.h"

#include <dlfcn.h>

#include <utility>

#include <fmt/format.h>

#include "hardware/cpu_list.h"
#include "hardware/hwloc/hwloc_host.h"
#include "hardware/nvidia_smi/nvidia_smi_library.h"
#include "hardware/nvml/nvml_library.h"
#include "hardware/nvml/nvml_session.h"
#include "hardware/procfs/procfs_host.h"
#include "os/clock.h"

namespace gpu_platform::node {
namespace {

using hardware::GpuDescription;
using hardware::GpuReading;
using json = nlohmann::ordered_json;

json value_of(const std::string& value) {
  return value;
}
json value_of(base::Bytes value) {
  return value.value();
}
json value_of(base::Milliwatts value) {
  return static_cast<double>(value.value()) / 1000;
}
json value_of(const hardware::CpuSet& value) {
  return hardware::format_cpu_list(value);
}
json value_of(const hardware::ComputeCapability& value) {
  return fmt::format("{}.{}", value.major, value.minor);
}
json value_of(model::RecoveryAction value) {
  return static_cast<int>(value);
}
template <class Number>
  requires std::is_integral_v<Number>
json value_of(Number value) {
  return value;
}
template <class T>
json value_of(const std::optional<T>& value) {
  return value ? value_of(*value) : json(nullptr);
}

json json_of(const GpuDescription& gpu) {
  return {{"index", gpu.index},
          {"uuid", value_of(gpu.uuid)},
          {"model", value_of(gpu.model)},
          {"serial", value_of(gpu.serial)},
          {"pci_address", value_of(gpu.pci_address)},
          {"minor", value_of(gpu.minor)},
          {"memory_bytes", value_of(gpu.memory)},
          {"numa_node", value_of(gpu.numa_node)},
          {"cpus", value_of(gpu.cpus)},
          {"power_limit_watts", value_of(gpu.power_limit)},
          {"power_limit_min_watts", value_of(gpu.power_limit_min)},
          {"power_limit_max_watts", value_of(gpu.power_limit_max)},
          {"compute_capability", value_of(gpu.compute_capability)},
          {"mig_enabled", value_of(gpu.mig_enabled)},
          {"max_mig_devices", value_of(gpu.max_mig_devices)},
          {"ecc_enabled", value_of(gpu.ecc_enabled)},
          {"persistence_enabled", value_of(gpu.persistence_enabled)},
          {"pcie_generation_max", value_of(gpu.pcie_generation_max)},
          {"pcie_width_max", value_of(gpu.pcie_width_max)},
          {"slowdown_c", value_of(gpu.slowdown_c)},
          {"problem", gpu.problem}};
}

template <class Metrics>
void add_metrics(const Metrics& metrics, json& out) {
  model::for_each_metric_of(metrics, [&](const auto& row, const auto& value) {
    out[std::string(row.name)] = value_of(value);
  });
}

json json_of(const GpuReading& gpu) {
  json out{{"problem", gpu.problem}};
  add_metrics<model::GpuMetrics>(gpu, out);
  out["processes"] = nullptr;
  if (!gpu.processes) return out;
  out["processes"] = json::array();
  for (const hardware::GpuProcess& process : *gpu.processes) {
    out["processes"].push_back(
        {{"pid", process.pid}, {"memory_bytes", value_of(process.memory)}, {"uses", process.uses}});
  }
  return out;
}

json json_of(const model::GpuSlowMetrics& gpu) {
  json out = json::object();
  add_metrics(gpu, out);
  return out;
}

const char* name_of(hardware::LinkKind kind) {
  constexpr const char* kNames[] = {"NVLink", "PIX", "PXB", "PHB", "NODE", "SYS"};
  return kNames[static_cast<std::size_t>(kind)];
}

json host_report(hardware::HostTopology& topology) {
  const auto host = topology.describe();
  if (!host) return {{"problem", host.error().message}};
  json nodes = json::array();
  for (const hardware::NumaNode& node : host->numa_nodes) {
    nodes.push_back({{"id", node.id},
                     {"socket", value_of(node.socket)},
                     {"cpus", value_of(node.cpus)},
                     {"memory_bytes", value_of(node.memory)}});
  }
  return {{"cpus", host->cpus.size()},
          {"memory_bytes", host->memory.value()},
          {"sockets", value_of(host->sockets)},
          {"cores", value_of(host->cores)},
          {"numa_nodes", std::move(nodes)}};
}

// Reports what the GPU could be divided into and where. Nothing is created.
json mig_report(const hardware::NvmlFunctions& nvml, hardware::NvmlDevice* device) {
  json profiles = json::array();
  if (nvml.mig_profile == nullptr) return profiles;
  for (unsigned i = 0; i < hardware::kNvmlGpuInstanceProfiles; ++i) {
    hardware::NvmlGpuInstanceProfile profile{};
    if (nvml.mig_profile(device, i, &profile) != hardware::kNvmlSuccess) continue;
    json placements = nullptr;
    hardware::NvmlGpuInstancePlacement found[64] = {};
    unsigned count = std::size(found);
    const int code = nvml.mig_placements == nullptr
                         ? hardware::kNvmlErrorFunctionNotFound
                         : nvml.mig_placements(device, profile.id, found, &count);
    if (code == hardware::kNvmlSuccess && count <= std::size(found)) {
      placements = json::array();
      for (unsigned k = 0; k < count; ++k) placements.push_back({found[k].start, found[k].size});
    }
    profiles.push_back({{"profile", i},
                        {"id", profile.id},
                        {"slices", profile.slice_count},
                        {"instances", profile.instance_count},
                        {"multiprocessors", profile.multiprocessor_count},
                        {"memory_mib", profile.memory_mib},
                        {"placements", std::move(placements)},
                        {"placements_code", code}});
  }
  return profiles;
}

json gpm_support(const hardware::NvmlFunctions& nvml, hardware::NvmlDevice* device) {
  hardware::NvmlGpmSupport support{hardware::kNvmlGpmSupportVersion, 0};
  if (nvml.gpm_support == nullptr || nvml.gpm_support(device, &support) != 0) return nullptr;
  return support.is_supported != 0;
}

void add_capabilities(const hardware::NvmlFunctions& nvml, unsigned index, json& gpu) {
  hardware::NvmlDevice* device = nullptr;
  if (nvml.handle_by_index(index, &device) != hardware::kNvmlSuccess) return;
  gpu["mig_profiles"] = mig_report(nvml, device);
  gpu["gpm"] = gpm_support(nvml, device);
}

json json_of(const std::vector<hardware::GpuLink>& links) {
  json out = json::array();
  for (const hardware::GpuLink& link : links) {
    out.push_back({{"a", link.a},
                   {"b", link.b},
                   {"kind", name_of(link.kind)},
                   {"nvlinks", link.nvlinks},
                   {"nvlink_version", link.nvlink_version}});
  }
  return out;
}

json cuda_support(const std::string& path) {
  json out{{"library", path}};
  void* cuda = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  out["opened"] = cuda != nullptr;
  constexpr const char* kNames[] = {"cuCheckpointProcessGetState",   "cuCheckpointProcessLock",
                                    "cuCheckpointProcessCheckpoint", "cuCheckpointProcessRestore",
                                    "cuCheckpointProcessUnlock",     "cuGreenCtxCreate"};
  for (const char* name : kNames) out[name] = cuda != nullptr && dlsym(cuda, name) != nullptr;
  // The library is not closed: a driver's may have started threads.
  return out;
}

json driver_support(const hardware::NvmlSession& nvml, const std::string& cuda) {
  json out;
  constexpr const char* kNames[] = {"nvmlDeviceSetMemoryLimits_v1", "nvmlDeviceGetMemoryLimits_v1",
                                    "nvmlGpmQueryDeviceSupport",    "nvmlGpmMigSampleGet",
                                    "nvmlDeviceGetTemperatureV",    "nvmlDeviceGetGpuFabricInfoV",
                                    "nvmlEventSetWait_v2",          "nvmlSystemEventSetWait"};
  for (const char* name : kNames) out["nvml"][name] = nvml.has(name);
  out["cuda"] = cuda_support(cuda);
  return out;
}

json json_of(const std::vector<Comparison>& comparisons) {
  json out = json::array();
  for (const Comparison& one : comparisons) {
    out.push_back({{"gpu", one.gpu},
                   {"datum", one.datum},
                   {"ours", one.ours},
                   {"nvidia_smi", one.theirs},
                   {"agrees", one.agrees}});
  }
  return out;
}

json comparison_report(const std::string& program, const std::vector<GpuDescription>& gpus,
                       const std::vector<GpuReading>& readings) {
  if (program.empty()) return {{"problem", "no nvidia-smi to compare with"}};
  auto theirs = hardware::open_nvidia_smi(program);
  if (!theirs) return {{"problem", theirs.error().message}};
  const auto described = (*theirs)->list_gpus();
  if (!described) return {{"problem", described.error().message}};
  auto all = compare_descriptions(gpus, *described);
  std::vector<GpuReading> read;
  for (const GpuDescription& gpu : *described) read.push_back((*theirs)->read(gpu.index));
  for (Comparison& one : compare_readings(readings, read)) all.push_back(std::move(one));
  std::size_t differences = 0;
  for (const Comparison& one : all) differences += one.agrees ? 0 : 1;
  return {{"data", all.size()}, {"differences", differences}, {"all", json_of(all)}};
}

std::string events_report(const std::string& library) {
  const auto events = hardware::open_nvml_events(library);
  if (!events) return events.error().message;
  return *events ? "subscribed" : "not supported";
}

}  // namespace

json make_gpu_report(const ReportSources& sources) {
  json out;
  const auto host = hardware::open_hwloc_host(hardware::open_procfs_host());
  out["host"] = host_report(*host);
  const std::int64_t start_ms = os::monotonic_ms();
  auto library = hardware::open_nvml(sources.library);
  auto session = hardware::NvmlSession::open(sources.library);
  if (!library || !session) {
    out["problem"] = library ? session.error().message : library.error().message;
    return out;
  }
  const auto driver = (*library)->describe_driver();
  out["driver"] = {{"version", value_of(driver.driver_version)},
                   {"nvml", value_of(driver.library_version)},
                   {"cuda", value_of(driver.cuda_version)}};
  auto gpus = (*library)->list_gpus();
  if (!gpus) {
    out["problem"] = gpus.error().message;
    return out;
  }
  out["discovery_ms"] = os::monotonic_ms() - start_ms;
  std::vector<GpuReading> readings;
  out["gpus"] = json::array();
  for (GpuDescription& gpu : *gpus) {
    if (const auto node = host->numa_node_of(gpu.pci_address.value_or(""))) gpu.numa_node = node;
    readings.push_back((*library)->read(gpu.index));
    json one = json_of(gpu);
    one["reading"] = json_of(readings.back());
    one["slow_reading"] = json_of((*library)->read_slow(gpu.index));
    add_capabilities(session->functions(), gpu.index, one);
    out["gpus"].push_back(std::move(one));
  }
  out["links"] = json_of((*library)->links());
  out["events"] = events_report(sources.library);
  out["supports"] = driver_support(*session, sources.cuda);
  out["compared"] = comparison_report(sources.nvidia_smi, *gpus, readings);
  return out;
}

json struct_sizes() {
  return {{"nvmlMemory_t", sizeof(hardware::NvmlMemoryV1)},
          {"nvmlMemory_v2_t", sizeof(hardware::NvmlMemoryV2)},
          {"nvmlUtilization_t", sizeof(hardware::NvmlUtilization)},
          {"nvmlPciInfo_t", sizeof(hardware::NvmlPciInfoV3)},
          {"nvmlProcessInfo_t", sizeof(hardware::NvmlProcessInfoV2)},
          {"nvmlProcessInfo_v1_t", sizeof(hardware::NvmlProcessInfoV1)},
          {"nvmlTemperature_t", sizeof(hardware::NvmlTemperatureV1)},
          {"nvmlFieldValue_t", sizeof(hardware::NvmlFieldValue)},
          {"nvmlEventData_t", sizeof(hardware::NvmlEventData)},
          {"nvmlGpuInstanceProfileInfo_t", sizeof(hardware::NvmlGpuInstanceProfile)},
          {"nvmlGpuInstancePlacement_t", sizeof(hardware::NvmlGpuInstancePlacement)},
          {"nvmlGpmSupport_t", sizeof(hardware::NvmlGpmSupport)}};
}

}  // namespace gpu_platform::node
