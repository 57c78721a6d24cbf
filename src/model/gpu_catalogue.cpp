#include "model/gpu_catalogue.h"

#include <algorithm>
#include <cctype>

#include "base/letters.h"

namespace gpu_platform::model {

namespace {

constexpr base::Bytes gib(std::int64_t n) {
  return base::Bytes(n << 30);
}

// NVIDIA's data sheets; the memory is what the product is called by, not what the driver reports.
constexpr GpuType kCatalogue[] = {
    {"A10G-24GB", "A10G", gib(24)},
    {"A10-24GB", "A10", gib(24)},
    {"A30-24GB", "A30", gib(24)},
    {"A40-48GB", "A40", gib(48)},
    {"A100-40GB", "A100", gib(40)},
    {"A100-80GB", "A100", gib(80)},
    {"B200-180GB", "B200", gib(180)},
    {"B300-288GB", "B300", gib(288)},
    {"GB200-186GB", "GB200", gib(186)},
    {"H100-80GB", "H100", gib(80)},
    {"H100-94GB", "H100", gib(94)},
    {"H100-96GB", "H100", gib(96)},
    {"H200-141GB", "H200", gib(141)},
    {"L4-24GB", "L4", gib(24)},
    {"L40-48GB", "L40", gib(48)},
    {"L40S-48GB", "L40S", gib(48)},
    {"P100-16GB", "P100", gib(16)},
    {"RTX-3090-24GB", "RTX-3090", gib(24)},
    {"RTX-4090-24GB", "RTX-4090", gib(24)},
    {"RTX-5090-32GB", "RTX-5090", gib(32)},
    {"T4-16GB", "T4", gib(16)},
    {"V100-16GB", "V100", gib(16)},
    {"V100-32GB", "V100", gib(32)},
};

// Upper case without separators, so that spellings compare.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    out.push_back(base::to_upper(c));
  }
  return out;
}

// The model's words after "NVIDIA"/"Tesla"/"GeForce" and before form factor and memory: the family.
bool names_family(const std::string& folded_model, const std::string& folded_family) {
  std::string_view rest = folded_model;
  for (const std::string_view prefix : {"NVIDIA", "TESLA", "GEFORCE"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  if (!rest.starts_with(folded_family)) return false;
  rest.remove_prefix(folded_family.size());
  // "A10" must not match "A100" or "A10G", nor "L40" an "L40S".
  return rest.empty() || rest.starts_with("PCIE") || rest.starts_with("SXM") ||
         rest.starts_with("HBM") || rest.starts_with("NVL") || rest.starts_with("DGXS") ||
         rest.starts_with("FHHL") ||
         (std::isdigit(static_cast<unsigned char>(rest[0])) != 0 &&
          rest.find("GB") != std::string_view::npos);
}

}  // namespace

std::span<const GpuType> gpu_catalogue() {
  return kCatalogue;
}

std::optional<std::string> canonical_gpu_type(std::string_view name) {
  const std::string wanted = folded(name);
  if (wanted.empty()) return std::nullopt;
  for (const GpuType& type : kCatalogue) {
    if (folded(type.name) == wanted) return std::string(type.name);
    if (folded(type.family) == wanted) return std::string(type.family);
  }
  return std::nullopt;
}

std::string gpu_type_of_model(std::string_view model, base::Bytes memory) {
  const std::string wanted = folded(model);
  const GpuType* best = nullptr;
  auto distance = [&](const GpuType& type) {
    const std::int64_t difference = type.nominal_memory.value() - memory.value();
    return difference < 0 ? -difference : difference;
  };
  for (const GpuType& type : kCatalogue) {
    if (!names_family(wanted, folded(type.family))) continue;
    if (best == nullptr || distance(type) < distance(*best)) best = &type;
  }
  return std::string(best == nullptr ? model : best->name);
}

bool gpu_type_matches(std::string_view wanted, std::string_view type) {
  if (wanted == type) return true;
  const auto* entry = std::ranges::find(kCatalogue, type, &GpuType::name);
  if (entry != std::end(kCatalogue) && entry->family == wanted) return true;
  return folded(wanted) == folded(type);
}

}  // namespace gpu_platform::model
