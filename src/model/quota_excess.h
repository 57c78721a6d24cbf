#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpu_platform::model {

enum class QuotaHolder : std::uint8_t { kTeam, kUser, kProject };
inline constexpr std::size_t kQuotaHolders = 3;
std::string_view to_string(QuotaHolder holder);  // "team"

enum class QuotaKind : std::uint8_t {
  kGpus,
  kRunningJobs,
  kQueuedJobs,
  kGpuHours,
  kGuarantee,    // not preemptible, and above the guarantee only what is nobody's may be had
  kBorrowLimit,  // too much above the guarantee
  kLendLimit,    // others lend no more
};
std::string_view to_string(QuotaKind kind);  // "max_gpus", as in the configuration

// A limit that a job would pass: whose, which, how much of it is taken, how much the job asks for.
// Thousandths of GPUs and of GPU-hours, rounded up; jobs as they are.
struct QuotaExcess {
  QuotaHolder holder = QuotaHolder::kUser;
  std::string name;  // empty, of the last three kinds: all who have no guarantee
  QuotaKind kind = QuotaKind::kGpus;
  std::uint64_t used = 0;
  std::uint64_t asked = 0;
  std::uint64_t limit = 0;       // of the last three: what may be had above the guarantee
  std::uint64_t guaranteed = 0;  // of these three

  friend bool operator==(const QuotaExcess&, const QuotaExcess&) = default;
};

// "user ann holds 6 GPUs, this job asks for 4, the limit is 8 (max_gpus)".
std::string describe(const QuotaExcess& excess);

}  // namespace gpu_platform::model
