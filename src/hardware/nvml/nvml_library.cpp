#include "hardware/nvml/nvml_library.h"

#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "hardware/nvml/nvml_gpm.h"
#include "hardware/nvml/nvml_gpu.h"
#include "hardware/nvml/nvml_session.h"

namespace gpu_platform::hardware {
namespace {

class NvmlLibrary final : public GpuLibrary {
 public:
  explicit NvmlLibrary(NvmlSession session) : session_(std::move(session)) {}

  DriverDescription describe_driver() override {
    DriverDescription driver;
    driver.driver_version = system_text(f().driver_version);
    driver.library_version = system_text(f().library_version);
    int cuda = 0;
    if (f().cuda_version != nullptr && f().cuda_version(&cuda) == kNvmlSuccess && cuda > 0) {
      driver.cuda_version = static_cast<std::uint32_t>(cuda);
    }
    return driver;
  }

  std::expected<std::vector<GpuDescription>, LibraryProblem> list_gpus() override {
    devices_.clear();
    const auto count = session_.gpu_count();
    if (!count) return std::unexpected(count.error());
    std::vector<GpuDescription> gpus;
    for (unsigned index = 0; index < *count; ++index) gpus.push_back(describe(index));
    return gpus;
  }

  std::vector<GpuLink> links() override {
    std::vector<NvLinkPorts> ports;
    for (NvmlDevice* device : devices_) {
      ports.push_back(device == nullptr ? NvLinkPorts{} : NvmlGpu(f(), device).ports());
    }
    std::vector<GpuLink> links;
    for (std::uint32_t a = 0; a < devices_.size(); ++a) {
      for (std::uint32_t b = a + 1; b < devices_.size(); ++b) {
        auto link = nvlink_between(ports, a, b);
        if (!link) link = pci_path_between(a, b);
        if (link) links.push_back(*link);
      }
    }
    return links;
  }

  GpuReading read(std::uint32_t index) override {
    GpuReading reading;
    reading.index = index;
    const auto device = device_of(index);
    if (!device) return refused(index, device.error());
    NvmlGpu gpu(f(), *device);
    gpu.read(reading);
    if (gpu.refusal() == kNvmlSuccess) gpm_of(index, *device).read(reading);
    // Half a reading of a GPU that is going away misleads.
    if (gpu.refusal() != kNvmlSuccess) return refused(index, gpu.refusal());
    return reading;
  }

  model::GpuSlowMetrics read_slow(std::uint32_t index) override {
    const auto device = device_of(index);
    if (!device) return {};
    NvmlGpu gpu(f(), *device);
    model::GpuSlowMetrics reading = gpu.read_slow();
    return gpu.refusal() == kNvmlSuccess ? reading : model::GpuSlowMetrics{};
  }

  std::optional<std::uint64_t> read_energy(std::uint32_t index) override {
    const auto device = device_of(index);
    return device ? NvmlGpu(f(), *device).energy_mj() : std::nullopt;
  }

  std::vector<ProcessLoad> read_loads(std::uint32_t index) override {
    const auto device = device_of(index);
    if (!device) return {};
    // A clock that was set back, or a driver's time that cannot be, must not hide what comes.
    std::uint64_t& seen_us = loads_seen_us_[index];
    if (seen_us > wall_us()) seen_us = 0;
    return NvmlGpu(f(), *device).loads(seen_us);
  }

 private:
  static std::uint64_t wall_us() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }

  const NvmlFunctions& f() const { return session_.functions(); }

  // One that refused when the GPUs were listed may be back.
  std::expected<NvmlDevice*, int> device_of(std::uint32_t index) {
    if (index < devices_.size() && devices_[index] != nullptr) return devices_[index];
    NvmlDevice* device = nullptr;
    const int code = f().handle_by_index(index, &device);
    if (code != kNvmlSuccess) return std::unexpected(code);
    if (index >= devices_.size()) devices_.resize(index + 1);
    devices_[index] = device;
    return device;
  }

  NvmlGpm& gpm_of(std::uint32_t index, NvmlDevice* device) {
    const auto known = gpm_.find(index);
    if (known != gpm_.end() && known->second.device() == device) return known->second;
    gpm_.erase(index);
    return gpm_.try_emplace(index, f(), device).first->second;
  }

  std::optional<GpuLink> pci_path_between(std::uint32_t a, std::uint32_t b) const {
    if (f().common_ancestor == nullptr || devices_[a] == nullptr || devices_[b] == nullptr) {
      return std::nullopt;
    }
    unsigned level = 0;
    if (f().common_ancestor(devices_[a], devices_[b], &level) != kNvmlSuccess) return std::nullopt;
    const auto kind = kind_of_topology_level(level);
    if (!kind) return std::nullopt;
    return GpuLink{a, b, *kind, 0, 0};
  }

  GpuReading refused(std::uint32_t index, int code) const {
    GpuReading reading;
    reading.index = index;
    reading.condition = code == kNvmlErrorGpuIsLost       ? GpuCondition::kLost
                        : code == kNvmlErrorResetRequired ? GpuCondition::kResetRequired
                                                          : GpuCondition::kNotAnswering;
    reading.problem = session_.words(code);
    return reading;
  }

  std::optional<std::string> system_text(NvmlSystemTextFunction function) const {
    char buffer[96] = {};
    if (function == nullptr || function(buffer, sizeof buffer) != kNvmlSuccess) return std::nullopt;
    return std::string(buffer, strnlen(buffer, sizeof buffer));
  }

  GpuDescription describe(unsigned index) {
    GpuDescription out;
    out.index = index;
    NvmlDevice* device = nullptr;
    const int code = f().handle_by_index(index, &device);
    devices_.push_back(code == kNvmlSuccess ? device : nullptr);
    if (code != kNvmlSuccess) {
      out.problem = session_.words(code);
      return out;
    }
    NvmlGpu gpu(f(), device);
    gpu.describe(out);
    if (gpu.refusal() != kNvmlSuccess) out.problem = session_.words(gpu.refusal());
    return out;
  }

  const NvmlSession session_;
  std::vector<NvmlDevice*> devices_;      // of the latest list, null where the driver refused
  std::map<std::uint32_t, NvmlGpm> gpm_;  // by index
  std::map<std::uint32_t, std::uint64_t> loads_seen_us_;  // by index
};

}  // namespace

std::expected<std::unique_ptr<GpuLibrary>, LibraryProblem> open_nvml(const std::string& path) {
  auto session = NvmlSession::open(path);
  if (!session) return std::unexpected(std::move(session).error());
  return std::make_unique<NvmlLibrary>(std::move(*session));
}

}  // namespace gpu_platform::hardware
