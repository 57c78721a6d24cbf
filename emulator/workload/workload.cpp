#include "workload/workload.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tool/parse.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::Duration;
using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::invalid;

Result<std::uint32_t> find_visible(const BoardState& state, std::string_view entry,
                                   const std::vector<std::uint32_t>& known) {
  constexpr std::string_view kField = "CUDA_VISIBLE_DEVICES";
  if (const auto index = parse_number(entry)) {
    if (*index < known.size()) return known[*index];
    return fail(ErrorCode::kNotFound,
                fmt::format("{}: {} has no GPU {}", kField, state.node_name, *index));
  }
  std::optional<std::uint32_t> found;
  for (const std::uint32_t i : known) {
    if (entry.empty() || !std::string_view(state.gpus[i].uuid).starts_with(entry)) continue;
    if (found)
      return invalid(std::string(kField), fmt::format("{}: \"{}\" fits several GPUs of {}", kField,
                                                      entry, state.node_name));
    found = i;
  }
  if (found) return *found;
  return fail(ErrorCode::kNotFound,
              fmt::format("{}: no GPU \"{}\" on {}", kField, entry, state.node_name));
}

}  // namespace

Result<CurveKind> parse_curve(const std::string& name) {
  if (name == "constant") return CurveKind::kConstant;
  if (name == "ramp") return CurveKind::kRamp;
  if (name == "sine") return CurveKind::kSine;
  return invalid("curve", fmt::format("--curve \"{}\" is not one of constant, ramp, sine", name));
}

std::uint32_t utilization_at(const Curve& curve, Duration elapsed) {
  if (curve.kind == CurveKind::kConstant) return curve.peak_percent;
  const double periods =
      static_cast<double>(elapsed.value()) / static_cast<double>(curve.period.value());
  const double share = curve.kind == CurveKind::kRamp
                           ? std::clamp(periods, 0.0, 1.0)
                           : (1 - std::cos(2 * std::numbers::pi * periods)) / 2;
  return static_cast<std::uint32_t>(std::lround(share * curve.peak_percent));
}

std::uint64_t memory_at(const MemorySteps& memory, Duration elapsed) {
  if (memory.step_bytes == 0) return memory.first_bytes;
  // More than any GPU has; the sum stays a number.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  const auto steps = static_cast<std::uint64_t>(elapsed.value() / memory.every.value());
  const std::uint64_t most = std::max(memory.max_bytes.value_or(kMost), memory.first_bytes);
  const std::uint64_t room = most - memory.first_bytes;
  return steps > room / memory.step_bytes ? most : memory.first_bytes + steps * memory.step_bytes;
}

std::vector<std::uint32_t> known_gpus(const BoardState& state, const char* folder) {
  const bool knows_all = folder == nullptr || *folder == '\0';
  std::vector<std::uint32_t> known;
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const std::string node =
        fmt::format("{}/nvidia{}", knows_all ? "" : folder, state.gpus[i].minor);
    struct stat about{};
    const bool is_there = stat(node.c_str(), &about) == 0 && S_ISCHR(about.st_mode);
    if (knows_all || is_there) known.push_back(i);
  }
  return known;
}

Result<std::vector<std::uint32_t>> visible_gpus(const BoardState& state,
                                                std::optional<std::string_view> visible_devices,
                                                const std::vector<std::uint32_t>& known) {
  std::vector<std::uint32_t> gpus;
  if (!visible_devices) return known;
  std::string_view rest = *visible_devices;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    TRY_ASSIGN(const std::uint32_t gpu, find_visible(state, rest.substr(0, comma), known));
    if (std::ranges::find(gpus, gpu) != gpus.end()) {
      return invalid("CUDA_VISIBLE_DEVICES",
                     fmt::format("CUDA_VISIBLE_DEVICES: names GPU {} twice", gpu));
    }
    gpus.push_back(gpu);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return gpus;
}

}  // namespace gpu_emulator
