#include "sizing/known_gpus.h"

namespace gpu_platform::sizing {

std::span<const GpuKind> known_gpus() {
  const auto mib = [](std::int64_t n) { return base::Bytes(n << 20); };
  static const GpuKind kinds[] = {
      {"T4-16GB", mib(15'360), 4},     {"L4-24GB", mib(23'034), 8},
      {"A100-40GB", mib(40'960), 8},   {"L40S-48GB", mib(46'068), 8},
      {"H100-80GB", mib(81'559), 8},   {"A100-80GB", mib(81'920), 8},
      {"H200-141GB", mib(143'771), 8}, {"B200-180GB", mib(183'359), 8},
  };
  return kinds;
}

}  // namespace gpu_platform::sizing
