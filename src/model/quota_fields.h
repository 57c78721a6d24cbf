#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/member_count.h"
#include "model/team.h"

// The one table of the limits and guarantees of a quota. The configuration, scenario files, the
// conversion of teams from and to the API, and what is set at run time use it. A member without a
// row does not compile.

namespace gpu_platform::model {

// In the order of the table; also in journals, so append only.
enum class QuotaKey : std::uint8_t {
  kMaxGpus,
  kMaxRunningJobs,
  kMaxQueuedJobs,
  kGpuHours,
  kGuaranteedGpus,
  kBorrowLimit,
  kLendLimit,
  kOverQuotaWeight,
};
inline constexpr std::size_t kQuotaKeys = 8;

struct QuotaField {
  QuotaKey key;
  std::string_view name;  // in the configuration, the API and scenario files: "max_gpus"
  std::optional<std::uint32_t> Quota::* member;
  std::optional<std::uint32_t> TypeQuota::* of_type;  // null: it is not for single types of GPUs
  bool is_limit;  // less is stricter: a coordinator may lower it
};

inline constexpr std::array<QuotaField, kQuotaKeys> kQuotaFields = {{
    {QuotaKey::kMaxGpus, "max_gpus", &Quota::max_gpus, &TypeQuota::max_gpus, true},
    {QuotaKey::kMaxRunningJobs, "max_running_jobs", &Quota::max_running_jobs, nullptr, true},
    {QuotaKey::kMaxQueuedJobs, "max_queued_jobs", &Quota::max_queued_jobs, nullptr, true},
    {QuotaKey::kGpuHours, "gpu_hours", &Quota::gpu_hours, &TypeQuota::gpu_hours, true},
    {QuotaKey::kGuaranteedGpus, "guaranteed_gpus", &Quota::guaranteed_gpus,
     &TypeQuota::guaranteed_gpus, false},
    {QuotaKey::kBorrowLimit, "borrow_limit", &Quota::borrow_limit, &TypeQuota::borrow_limit, false},
    {QuotaKey::kLendLimit, "lend_limit", &Quota::lend_limit, &TypeQuota::lend_limit, false},
    {QuotaKey::kOverQuotaWeight, "over_quota_weight", &Quota::over_quota_weight, nullptr, false},
}};
// All members of a Quota but `gpu_types`; those of a TypeQuota but `type`.
static_assert(base::member_count<Quota>() == kQuotaKeys + 1);
static_assert(base::member_count<TypeQuota>() == 5 + 1);

constexpr const QuotaField& field_of(QuotaKey key) {
  return kQuotaFields[static_cast<std::size_t>(key)];
}

constexpr std::string_view to_string(QuotaKey key) {
  return field_of(key).name;
}

// Calls visit(row) with the rows that single types of GPUs have.
template <class Visit>
constexpr void for_each_type_quota_field(Visit&& visit) {
  for (const QuotaField& row : kQuotaFields) {
    if (row.of_type != nullptr) visit(row);
  }
}

}  // namespace gpu_platform::model
