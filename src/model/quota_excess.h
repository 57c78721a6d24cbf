#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpu_platform::model {

enum class QuotaHolder : std::uint8_t { kTeam, kUser, kProject };
inline constexpr std::size_t kQuotaHolders = 3;
std::string_view to_string(QuotaHolder holder);  // "team"

enum class QuotaKind : std::uint8_t {
  kGpus,
  kRunningJobs,
  kQueuedJobs,
  kGpuHours,
  kGuarantee,    // not preemptible: above the guarantee it may only use GPUs without one
  kBorrowLimit,  // too much above the guarantee
  kLendLimit,    // others lend no more
  kBudget,       // it is spent, and bars starts
};
std::string_view to_string(QuotaKind kind);  // "max_gpus", as in the configuration

// A limit that a job would exceed: its holder and kind, the present use, and what the job asks for.
// GPUs and GPU-hours are in thousandths, rounded up; jobs are whole numbers; money is in millionths
// of the currency.
struct QuotaExcess {
  QuotaHolder holder = QuotaHolder::kUser;
  std::string name;  // empty, for the last three kinds: all without a guarantee
  QuotaKind kind = QuotaKind::kGpus;
  std::uint64_t used = 0;
  std::uint64_t asked = 0;
  std::uint64_t limit = 0;       // of the last three: what may be had above the guarantee
  std::uint64_t guaranteed = 0;  // of these three
  std::string gpu_type = {};     // where only GPUs of a type or family count
  std::string but_types = {};    // where only GPUs of all other types count: "A100, H100"
  // Set with the last three kinds: others with guarantees of such GPUs, "team a (4), user ann
  // (2)".
  std::string guaranteed_to = {};
  // Set with kBudget: its period ("month"), when that ends, and the currency.
  std::string period = {};
  base::Instant renews_at = {};
  std::string currency = {};

  friend bool operator==(const QuotaExcess&, const QuotaExcess&) = default;
};

// The share of the GPUs beyond all guarantees that the holder of a waiting job has reached: its
// jobs above its guarantee come after those of the others. GPUs are in thousandths, rounded up.
struct SurplusExcess {
  QuotaHolder holder = QuotaHolder::kUser;
  std::string name;         // empty: all without a guarantee
  std::uint64_t held = 0;   // above its guarantee
  std::uint64_t share = 0;  // at most held

  friend bool operator==(const SurplusExcess&, const SurplusExcess&) = default;
};

// "team a has reached its share of the GPUs beyond guarantees: 12 of 8".
std::string describe(const SurplusExcess& excess);

// "user ann holds 6 GPUs and this job needs 4 more; the limit is 8 (max_gpus)".
std::string describe(const QuotaExcess& excess);

}  // namespace gpu_platform::model
