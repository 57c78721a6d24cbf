#include "health/nvlink_registers.h"

#include <initializer_list>

namespace gpu_platform::health {

namespace {

constexpr std::uint32_t bits(std::initializer_list<std::uint32_t> numbers) {
  std::uint32_t mask = 0;
  for (const std::uint32_t number : numbers) mask |= std::uint32_t{1} << number;
  return mask;
}

constexpr std::uint32_t kHardware0 = bits({8, 9, 12, 16, 17, 24, 28, 27, 29});
constexpr std::uint32_t kMemory0 = bits({4, 5});
constexpr std::uint32_t kDriver0 = bits({1, 20});
constexpr std::uint32_t kSignal0 = bits({21, 22});
constexpr std::uint32_t kHardware2 = bits({0, 1, 2, 6, 16, 17, 18, 19});
constexpr std::uint32_t kAtOnce2 = bits({13});
constexpr std::uint32_t kExpected3 = bits({18});

}  // namespace

NvlinkFault read_nvlink_registers(std::span<const std::uint32_t> registers) {
  using Kind = NvlinkFault::Kind;
  const auto value = [&](std::size_t i) { return i < registers.size() ? registers[i] : 0; };
  if ((value(2) & kAtOnce2) != 0) return {Kind::kHardware, false, "a hardware fault of the link"};
  if (value(4) != 0) return {Kind::kHardware, false, "a hardware or memory fault of the link"};
  if ((value(0) & kHardware0) != 0 || (value(2) & kHardware2) != 0) {
    return {Kind::kHardware, true, "a hardware fault of the link"};
  }
  if ((value(0) & kMemory0) != 0) return {Kind::kMemory, true, "an ECC or parity error"};
  if ((value(3) & ~kExpected3) != 0) return {Kind::kHardware, true, "an unexpected link state"};
  if ((value(0) & kSignal0) != 0) return {Kind::kSignal, true, "bad signals on the link"};
  if ((value(0) & kDriver0) != 0) return {Kind::kDriver, false, "an error of the driver alone"};
  return {};
}

}  // namespace gpu_platform::health
