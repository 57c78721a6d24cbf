#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hardware/readings.h"

// The kernel's way to write sets of CPUs: "0-55,112-167".

namespace gpu_platform::hardware {

inline constexpr std::uint32_t kMaxCpus = 8192;  // of the kernel itself

// Nothing when the text is no such list or names a CPU of kMaxCpus or above. The empty text is the
// empty set; a newline at the end is allowed.
std::optional<CpuSet> parse_cpu_list(std::string_view text);

std::string format_cpu_list(const CpuSet& cpus);

}  // namespace gpu_platform::hardware
