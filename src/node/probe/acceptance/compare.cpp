#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/letters.h"
#include "node/probe/acceptance/gpu_report.h"

namespace gpu_platform::node {
namespace {

using hardware::GpuDescription;
using hardware::GpuReading;

constexpr const char* kUnknown = "not known";

std::string words(const std::string& value) {
  return value;
}
std::string words(bool value) {
  return value ? "yes" : "no";
}
std::string words(base::Bytes value) {
  return fmt::format("{} MiB", value.value() / base::kMiB.value());
}
std::string words(base::Milliwatts value) {
  return fmt::format("{}.{:02} W", value.value() / 1000, value.value() % 1000 / 10);
}
std::string words(const hardware::ComputeCapability& value) {
  return fmt::format("{}.{}", value.major, value.minor);
}
template <class Number>
  requires std::is_integral_v<Number>
std::string words(Number value) {
  return fmt::format("{}", value);
}

template <class T>
std::string words(const std::optional<T>& value) {
  return value ? words(*value) : kUnknown;
}

// Collects the comparisons of one GPU.
class Pair {
 public:
  Pair(std::uint32_t gpu, std::vector<Comparison>& out) : gpu_(gpu), out_(out) {}

  template <class T>
  void same(const char* datum, const std::optional<T>& ours, const std::optional<T>& theirs) {
    out_.push_back({gpu_, datum, words(ours), words(theirs), !ours || !theirs || *ours == *theirs});
  }

  // Equal up to a fixed amount or a share of the larger.
  template <class T>
  void near(const char* datum, const std::optional<T>& ours, const std::optional<T>& theirs,
            std::int64_t slack, std::int64_t percent) {
    bool agrees = true;
    if (ours && theirs) {
      const std::int64_t a = number(*ours);
      const std::int64_t b = number(*theirs);
      agrees = std::abs(a - b) <= std::max(slack, std::max(a, b) * percent / 100);
    }
    out_.push_back({gpu_, datum, words(ours), words(theirs), agrees});
  }

 private:
  static std::int64_t number(base::Bytes value) { return value.value(); }
  static std::int64_t number(base::Milliwatts value) { return value.value(); }
  template <class Number>
    requires std::is_integral_v<Number>
  static std::int64_t number(Number value) {
    return static_cast<std::int64_t>(value);
  }

  const std::uint32_t gpu_;
  std::vector<Comparison>& out_;
};

std::optional<std::string> lower(std::optional<std::string> text) {
  if (!text) return text;
  return base::to_lower(*text);
}

// nvidia-smi writes whole MiB.
std::optional<base::Bytes> whole_mib(const std::optional<base::Bytes>& bytes) {
  if (!bytes) return bytes;
  return base::Bytes(bytes->value() / base::kMiB.value() * base::kMiB.value());
}

void compare(const GpuDescription& ours, const GpuDescription& theirs, Pair pair) {
  pair.same("index", std::optional(ours.index), std::optional(theirs.index));
  pair.same("model", ours.model, theirs.model);
  pair.same("serial", ours.serial, theirs.serial);
  pair.same("PCI address", lower(ours.pci_address), lower(theirs.pci_address));
  pair.same("minor number", ours.minor, theirs.minor);
  pair.same("memory", whole_mib(ours.memory), theirs.memory);
  pair.same("compute capability", ours.compute_capability, theirs.compute_capability);
  pair.same("power limit", ours.power_limit, theirs.power_limit);
  pair.same("lowest power limit", ours.power_limit_min, theirs.power_limit_min);
  pair.same("highest power limit", ours.power_limit_max, theirs.power_limit_max);
  pair.same("MIG", ours.mig_enabled, theirs.mig_enabled);
  pair.same("ECC", ours.ecc_enabled, theirs.ecc_enabled);
  pair.same("persistence", ours.persistence_enabled, theirs.persistence_enabled);
  pair.same("PCIe generation", ours.pcie_generation_max, theirs.pcie_generation_max);
  pair.same("PCIe width", ours.pcie_width_max, theirs.pcie_width_max);
  pair.same("slowdown temperature (C)", ours.slowdown_c, theirs.slowdown_c);
}

void compare(const GpuReading& ours, const GpuReading& theirs, Pair pair) {
  constexpr std::int64_t kMemorySlack = 64 << 20;
  pair.near("memory used", ours.memory_used, theirs.memory_used, kMemorySlack, 5);
  pair.near("memory reserved", ours.memory_reserved, theirs.memory_reserved, kMemorySlack, 5);
  pair.near("temperature (C)", ours.temperature_c, theirs.temperature_c, 4, 0);
  pair.near("memory temperature (C)", ours.memory_temperature_c, theirs.memory_temperature_c, 4, 0);
  pair.near("power", ours.power, theirs.power, 30'000, 30);
  pair.near("SM clock (MHz)", ours.clock_sm_mhz, theirs.clock_sm_mhz, 100, 30);
  pair.near("memory clock (MHz)", ours.clock_memory_mhz, theirs.clock_memory_mhz, 50, 5);
  pair.same("ECC corrected", ours.ecc_corrected, theirs.ecc_corrected);
  pair.same("ECC uncorrected", ours.ecc_uncorrected, theirs.ecc_uncorrected);
}

}  // namespace

std::vector<Comparison> compare_descriptions(const std::vector<GpuDescription>& ours,
                                             const std::vector<GpuDescription>& theirs) {
  std::vector<Comparison> out;
  for (const GpuDescription& gpu : ours) {
    const auto other = std::ranges::find(theirs, gpu.uuid, &GpuDescription::uuid);
    const bool is_there = other != theirs.end() && gpu.uuid;
    out.push_back({gpu.index, "UUID", words(gpu.uuid), is_there ? *gpu.uuid : kUnknown, is_there});
    if (is_there) compare(gpu, *other, Pair(gpu.index, out));
  }
  for (const GpuDescription& gpu : theirs) {
    if (std::ranges::find(ours, gpu.uuid, &GpuDescription::uuid) != ours.end()) continue;
    out.push_back({gpu.index, "UUID", kUnknown, words(gpu.uuid), false});
  }
  return out;
}

std::vector<Comparison> compare_readings(const std::vector<GpuReading>& ours,
                                         const std::vector<GpuReading>& theirs) {
  std::vector<Comparison> out;
  for (const GpuReading& gpu : ours) {
    const auto other = std::ranges::find(theirs, gpu.index, &GpuReading::index);
    if (other != theirs.end()) compare(gpu, *other, Pair(gpu.index, out));
  }
  return out;
}

}  // namespace gpu_platform::node
