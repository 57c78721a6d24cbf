#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace gpu_platform::model {

// The signals that people may send to a running job. SIGKILL is none of them: it ends the job, and
// `jobs kill` says so in the job's record. Nor are those by which the kernel tells of faults.
inline constexpr std::array<std::uint8_t, 12> kJobSignals = {
    1,   // HUP, and by their Linux numbers so on
    2,   // INT
    3,   // QUIT
    6,   // ABRT
    10,  // USR1
    12,  // USR2
    14,  // ALRM
    15,  // TERM
    18,  // CONT
    19,  // STOP
    20,  // TSTP
    28,  // WINCH
};

constexpr bool is_job_signal(std::uint64_t number) {
  return std::ranges::find(kJobSignals, number) != kJobSignals.end();
}

}  // namespace gpu_platform::model
