#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

// Parts of a GPU: how several jobs share one, and how strong the wall between them is.

namespace gpu_platform::model {

// How the jobs on one GPU share it. All jobs on a GPU share it in one way.
enum class ShareMode : std::uint8_t {
  kNone,       // a job has it alone: whole GPUs
  kTimeSlice,  // the jobs take turns: all but one are frozen
  kMps,        // the jobs run at once, as clients of an MPS server
};
inline constexpr std::size_t kShareModes = 3;
std::string_view to_string(ShareMode mode);  // "none", "time-slice", "mps"

// What holds a job to its part, from the weakest to the strongest. A rung is never said of a part
// whose mechanism is not in force.
enum class Rung : std::uint8_t {
  kAdvisory,     // nothing: the job is told its part
  kWatchdog,     // use beyond the part is seen soon after, and the job is stopped
  kMpsLimit,     // the MPS server's limit, which a job can raise if it means to
  kFrozen,       // outside its turn none of the job's processes runs; of compute alone
  kDriverLimit,  // the driver's limit of a cgroup; of memory alone
  kHardware,     // the job has the GPU, or an instance of it, alone
};
inline constexpr std::size_t kRungs = 6;
std::string_view to_string(Rung rung);  // "advisory", "watchdog", "mps-limit", "time-slice", …

// The weakest wall that a job accepts on its GPUs.
enum class Isolation : std::uint8_t {
  kNone,      // any that the site allows
  kMemory,    // the driver or the hardware keeps others out of its memory and its amount
  kHardware,  // whole GPUs and instances alone
};
inline constexpr std::size_t kIsolations = 3;
std::string_view to_string(Isolation isolation);  // "none"

// What keeps a part's memory and its compute to their amounts.
struct Wall {
  Rung memory = Rung::kHardware;
  Rung compute = Rung::kHardware;

  friend bool operator==(const Wall&, const Wall&) = default;
};
// Returns whether the wall is strong enough for a job that asks for this.
bool is_enough(const Wall& wall, Isolation isolation);

// The owner of a part of a GPU. Which owners may share one GPU is the site's word.
struct Tenant {
  std::uint32_t uid = 0;
  std::string team = {};

  friend auto operator<=>(const Tenant&, const Tenant&) = default;
};
inline bool is_root(const Tenant& tenant) {
  return tenant.uid == 0;
}

// Returns "0.25"; rounded down to thousandths of a GPU.
std::string written(base::GpuShare share);

// Whose jobs may share a GPU with each other. Jobs of one user always may.
enum class SharedBetween : std::uint8_t {
  kNever,  // of other users: not
  kTeam,   // of users of one team
  kAll,
};
inline constexpr std::size_t kSharedBetween = 3;
std::string_view to_string(SharedBetween between);  // "never", "team", "all"

}  // namespace gpu_platform::model
