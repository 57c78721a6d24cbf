#include "execution/kubernetes/exporter/exported_gpus.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/units.h"
#include "execution/kubernetes/exporter/exposition.h"

namespace gpu_platform::execution {

namespace {

using model::GpuMetrics;
using model::GpuUnit;

// A UUID has 40 bytes ("GPU-" and the number).
constexpr std::size_t kMaxUuid = 80;

// What DCGM writes for a number that is missing, not supported or not permitted: the last sixteen
// of 32 bits, and from these on those of floating point and of 64 bits.
constexpr double kFirstBlank32 = 0x7ffffff0;
constexpr double kLastBlank32 = 0x7fffffff;
constexpr double kFirstBlank = 140'737'488'355'328.0;

// A name beside that of the table, and the number there for 1 of this one.
struct OtherName {
  std::string_view name;
  std::string_view in_table;
  double factor = 1;
};
constexpr OtherName kOtherNames[] = {
    {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"},
    {"DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 1e-3},
    {"DCGM_FI_PROF_PCIE_RX_BYTES", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", 1e-3},
};

bool is_blank(double value) {
  return !std::isfinite(value) || value >= kFirstBlank ||
         (value >= kFirstBlank32 && value <= kLastBlank32);
}

// Returns the value in the unit of the metric's member; nothing if the metric cannot have it.
std::optional<std::int64_t> in_units(double value, GpuUnit unit) {
  const auto rounded = [](double number) { return static_cast<std::int64_t>(std::round(number)); };
  if (unit == GpuUnit::kCelsius) {
    return std::abs(value) < 1000 ? std::optional(rounded(value)) : std::nullopt;
  }
  if (value < 0) return std::nullopt;
  switch (unit) {
    case GpuUnit::kPercent:
      return value <= 100 ? std::optional(rounded(value)) : std::nullopt;
    case GpuUnit::kPermille:
      return value < 1.0005 ? std::optional(rounded(value * 1000)) : std::nullopt;
    case GpuUnit::kBytes: {
      constexpr double kMaxMebibytes = 1e9;
      if (value > kMaxMebibytes) return std::nullopt;
      return rounded(value * static_cast<double>(base::kMiB.value()));
    }
    case GpuUnit::kBytesPerSecond:
    case GpuUnit::kMilliwatts:
      return rounded(value * 1000);
    default:
      return rounded(value);
  }
}

template <class Value>
void put(std::int64_t number, std::optional<Value>& member) {
  if (member) return;
  if constexpr (std::is_same_v<Value, bool>) {
    if (number <= 1) member = number == 1;
  } else if constexpr (requires(Value value) { value.value(); }) {
    member = Value(number);
  } else if constexpr (std::is_integral_v<Value>) {
    if (std::in_range<Value>(number)) member = static_cast<Value>(number);
  }
}

void put_sample(std::string_view name, double value, GpuMetrics& gpu) {
  model::for_each_gpu_metric([&](const auto& row) {
    if (row.exported.name.empty() || row.exported.name != name) return;
    const auto number = in_units(value, row.unit);
    if (!number) return;
    if constexpr (std::remove_cvref_t<decltype(row)>::kIsSlow) {
      model::GpuSlowMetrics slow = gpu.slow.value_or(model::GpuSlowMetrics());
      put(*number, slow.*row.member);
      if (slow != model::GpuSlowMetrics()) gpu.slow = slow;
    } else {
      put(*number, gpu.*row.member);
    }
  });
}

}  // namespace

std::map<std::string, GpuMetrics> gpus_of_page(std::string_view page) {
  std::map<std::string, GpuMetrics> gpus;
  read_exposition(page, [&](const Sample& sample) {
    if (!sample.name.starts_with("DCGM_FI_") || is_blank(sample.value)) return;
    const std::string uuid(sample.label("UUID"));
    const bool is_whole = sample.label("GPU_I_ID").empty();
    if (uuid.empty() || uuid.size() > kMaxUuid || !is_whole) return;
    if (gpus.size() == kMaxExportedGpus && !gpus.contains(uuid)) return;
    OtherName name{sample.name, sample.name};
    for (const OtherName& other : kOtherNames) {
      if (other.name == sample.name) name = other;
    }
    put_sample(name.in_table, sample.value * name.factor, gpus[uuid]);
  });
  std::erase_if(gpus, [](const auto& gpu) { return gpu.second == GpuMetrics{}; });
  return gpus;
}

}  // namespace gpu_platform::execution
