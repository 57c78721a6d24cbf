#include "sizing/precision.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "sizing/arithmetic.h"
#include "sizing/text.h"

namespace gpu_platform::sizing {

namespace {

struct PrecisionName {
  std::string_view name;
  Precision precision;
};

constexpr Precision exactly(std::uint32_t bits) {
  return {bits * 100, false};
}
// 4 bits with, for each 128 of them, a scale of 16 and a zero point of 4: AWQ and GPTQ as usual.
constexpr Precision kGroupsOf128{416, false};
constexpr Precision kMethodOfGroups{416, true};
// 4 bits with a scale of 32 for each 64 (bitsandbytes), or one of 8 for each 16 (NVFP4).
constexpr Precision kFourAndHalf{450, false};
// 4 bits with a scale of 8 for each 32: Open Compute Project, MX formats 1.0.
constexpr Precision kMxfp4{425, false};

constexpr PrecisionName kPrecisions[] = {
    {"float32", exactly(32)},
    {"fp32", exactly(32)},
    {"float", exactly(32)},
    {"float16", exactly(16)},
    {"fp16", exactly(16)},
    {"half", exactly(16)},
    {"bfloat16", exactly(16)},
    {"bf16", exactly(16)},
    {"fp8", exactly(8)},
    {"fp8-e4m3", exactly(8)},
    {"fp8-e5m2", exactly(8)},
    {"fp8-e4m3fn", exactly(8)},
    {"fp8-inc", exactly(8)},
    {"fbgemm-fp8", exactly(8)},
    {"float8", exactly(8)},
    {"int8", exactly(8)},
    {"8bit", exactly(8)},
    {"w8a8", exactly(8)},
    {"w8a16", exactly(8)},
    {"w8a8-fp8", exactly(8)},
    {"w8a8-int8", exactly(8)},
    {"int4", kGroupsOf128},
    {"w4a16", kGroupsOf128},
    {"4bit", kFourAndHalf},
    {"fp4", kFourAndHalf},
    {"nvfp4", kFourAndHalf},
    {"modelopt-fp4", kFourAndHalf},
    {"nf4", kFourAndHalf},
    {"mxfp4", kMxfp4},
    {"awq", kMethodOfGroups},
    {"awq-marlin", kMethodOfGroups},
    {"gptq", kMethodOfGroups},
    {"gptq-marlin", kMethodOfGroups},
    {"bitsandbytes", {450, true}},
    {"bnb", {450, true}},
};

}  // namespace

std::optional<Precision> precision_of(std::string_view name) {
  const std::string wanted = plain(name);
  const auto* found = std::ranges::find(kPrecisions, wanted, &PrecisionName::name);
  if (found == std::end(kPrecisions)) return std::nullopt;
  return found->precision;
}

std::string precision_names() {
  std::string names;
  for (const PrecisionName& each : kPrecisions) {
    names.append(names.empty() ? "" : ", ").append(each.name);
  }
  return names;
}

std::uint64_t bytes_of(std::uint64_t count, Precision precision) {
  // First the whole hundreds, so that nothing overflows before the result does.
  const std::uint64_t whole = product({count / 800, precision.centibits});
  return whole + (count % 800 * precision.centibits + 799) / 800;
}

}  // namespace gpu_platform::sizing
