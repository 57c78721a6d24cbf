#include "nvml/board.h"

// The table of all functions, and those of them that no board answers.

namespace gpu_emulator {
namespace {

struct Function {
  const char* name;
  std::uint32_t since;
};

#define FUNCTION(name, since, answer) {#name, since},
constexpr Function kFunctions[] = {
#include "nvml/functions.inc"
};
#undef FUNCTION
constexpr std::size_t kCount = sizeof kFunctions / sizeof kFunctions[0];

constexpr int compare(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a - *b;
}

constexpr bool is_in_order() {
  for (std::size_t i = 1; i < kCount; ++i) {
    if (compare(kFunctions[i - 1].name, kFunctions[i].name) >= 0) return false;
  }
  return true;
}
static_assert(is_in_order(), "lacks() searches by halves");

Return refuse_device(const char* function, const DeviceHandle* device) {
  if (lacks(function)) return kFunctionNotFound;
  return with_gpu(device, [](const GpuState&, std::uint32_t) { return kNotSupported; });
}

Return refuse(const char* function, Return with) {
  if (board() == nullptr) return kUninitialized;
  return lacks(function) ? kFunctionNotFound : with;
}

}  // namespace

bool lacks(const char* function) {
  const BoardState* state = board();
  if (state == nullptr) return false;
  std::size_t low = 0;
  std::size_t high = kCount;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const int order = compare(kFunctions[middle].name, function);
    if (order == 0) return kFunctions[middle].since > state->driver_major;
    (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
  }
  return false;
}

}  // namespace gpu_emulator

// A caller passes the arguments that the real function has; these look at the first at most, which
// the calling conventions of the machines we build for allow.
#define DEFINE_Answered(name)
#define DEFINE_Device(name)                            \
  nvmlReturn_t name(nvmlDevice_t device) {             \
    return gpu_emulator::refuse_device(#name, device); \
  }
#define DEFINE_System(name)                                          \
  nvmlReturn_t name() {                                              \
    return gpu_emulator::refuse(#name, gpu_emulator::kNotSupported); \
  }
#define DEFINE_Unknown(name)                                            \
  nvmlReturn_t name() {                                                 \
    return gpu_emulator::refuse(#name, gpu_emulator::kInvalidArgument); \
  }
#define FUNCTION(name, since, answer) DEFINE_##answer(name)

#pragma GCC visibility push(default)
extern "C" {
#include "nvml/functions.inc"
}
#pragma GCC visibility pop
