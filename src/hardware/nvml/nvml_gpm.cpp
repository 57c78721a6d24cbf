#include "hardware/nvml/nvml_gpm.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace gpu_platform::hardware {
namespace {

struct GpmMetric {
  unsigned metric;
  std::optional<std::uint32_t> model::GpuMetrics::* member;
};
constexpr GpmMetric kGpmMetrics[] = {{kNvmlGpmGraphics, &model::GpuMetrics::graphics_active},
                                     {kNvmlGpmSm, &model::GpuMetrics::sm_active},
                                     {kNvmlGpmOccupancy, &model::GpuMetrics::sm_occupancy},
                                     {kNvmlGpmAnyTensor, &model::GpuMetrics::tensor_active},
                                     {kNvmlGpmDram, &model::GpuMetrics::dram_active},
                                     {kNvmlGpmFp64, &model::GpuMetrics::fp64_active},
                                     {kNvmlGpmFp32, &model::GpuMetrics::fp32_active},
                                     {kNvmlGpmFp16, &model::GpuMetrics::fp16_active}};
static_assert(std::size(kGpmMetrics) <= kNvmlMaxGpmMetrics);

// In thousandths. A GPU that just woke answers with NaN, and two samples of the same moment do.
std::optional<std::uint32_t> share_of(const NvmlGpmMetric& metric) {
  if (metric.result != kNvmlSuccess || !std::isfinite(metric.value)) return std::nullopt;
  const double thousandths = std::round(metric.value * 10);
  if (thousandths < 0 || thousandths > 1000) return std::nullopt;
  return static_cast<std::uint32_t>(thousandths);
}

}  // namespace

NvmlGpm::NvmlGpm(const NvmlFunctions& functions, NvmlDevice* device)
    : f_(functions), device_(device) {
  if (!is_supported()) return;
  for (NvmlGpmSample*& sample : samples_) {
    if (f_.gpm_alloc(&sample) != kNvmlSuccess) sample = nullptr;
  }
  question_ = std::make_unique<NvmlGpmMetrics>();
}

NvmlGpm::~NvmlGpm() {
  for (NvmlGpmSample* const sample : samples_) {
    if (sample != nullptr) f_.gpm_free(sample);
  }
}

bool NvmlGpm::is_supported() const {
  if (f_.gpm_support == nullptr || f_.gpm_alloc == nullptr || f_.gpm_free == nullptr ||
      f_.gpm_sample == nullptr || f_.gpm_metrics == nullptr) {
    return false;
  }
  NvmlGpmSupport support{kNvmlGpmSupportVersion, 0};
  return f_.gpm_support(device_, &support) == kNvmlSuccess && support.is_supported != 0;
}

void NvmlGpm::read(model::GpuMetrics& out) {
  if (samples_[0] == nullptr || samples_[1] == nullptr) return;
  if (f_.gpm_sample(device_, samples_[1]) != kNvmlSuccess) {
    has_last_ = false;  // what lies between may have a reset in it
    return;
  }
  if (has_last_) fill(out);
  std::swap(samples_[0], samples_[1]);
  has_last_ = true;
}

void NvmlGpm::fill(model::GpuMetrics& out) {
  question_->version = kNvmlGpmMetricsVersion;
  question_->count = static_cast<unsigned>(std::size(kGpmMetrics));
  question_->first = samples_[0];
  question_->second = samples_[1];
  for (std::size_t i = 0; i < std::size(kGpmMetrics); ++i) {
    question_->metrics[i] = {.metric = kGpmMetrics[i].metric, .result = kNvmlErrorNotSupported};
  }
  if (f_.gpm_metrics(question_.get()) != kNvmlSuccess) return;
  for (std::size_t i = 0; i < std::size(kGpmMetrics); ++i) {
    out.*kGpmMetrics[i].member = share_of(question_->metrics[i]);
  }
}

}  // namespace gpu_platform::hardware
