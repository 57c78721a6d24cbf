#pragma once

#include <compare>
#include <cstdint>

#include "base/units.h"
#include "model/budget.h"
#include "model/ledger.h"

// Money without rounding. A line of the ledger costs share × milliseconds × price × discount, a
// whole number of one small unit; sums of such numbers are exact, whatever their order. Rounding
// happens once, where an amount is shown, and a table rounds so that its lines add up to its total
// (Rounder).

namespace gpu_platform::accounting {

// So many make one millionth of the currency: 7000 shares × 3,600,000 ms × 10,000 basis points ×
// 1024 MiB of a GiB.
inline constexpr __int128 kUnitsPerMicro = static_cast<__int128>(7000) * 3'600'000 * 10'000 * 1024;

// An exact amount; may be negative. 100,000 GPUs at 100 an hour for ten years are 2 × 10^35 units,
// of 1.7 × 10^38; overflow is a bug and stops the program.
class ExactCost {
 public:
  constexpr ExactCost() = default;
  constexpr explicit ExactCost(__int128 units) : units_(units) {}
  explicit ExactCost(base::MicroUsd amount);
  explicit ExactCost(const model::ExactAmount& stored);

  constexpr __int128 units() const { return units_; }
  model::ExactAmount stored() const;
  // To the nearest millionth, halves away from zero.
  base::MicroUsd rounded() const;
  // Cut off: never more than it is.
  base::MicroUsd floor() const;

  ExactCost& operator+=(ExactCost other);
  ExactCost& operator-=(ExactCost other);
  friend ExactCost operator+(ExactCost a, ExactCost b) { return a += b; }
  friend ExactCost operator-(ExactCost a, ExactCost b) { return a -= b; }
  friend constexpr auto operator<=>(ExactCost, ExactCost) = default;

 private:
  __int128 units_ = 0;
};

// What a part of a GPU costs for a time, less the discount.
ExactCost gpu_cost(base::GpuShare share, std::int64_t milliseconds, base::MicroUsd per_hour,
                   std::uint32_t discount_basis_points = 0);
// What cores and memory cost for a time.
ExactCost cpu_cost(std::uint32_t cores, base::MicroUsd core_hour, std::int64_t memory_mib,
                   base::MicroUsd gib_hour, std::int64_t milliseconds,
                   std::uint32_t discount_basis_points = 0);

// Rounds the lines of a table in their order: each gets what is left of the lines before it, so
// that the rounded lines add up to the rounded total.
class Rounder {
 public:
  base::MicroUsd next(ExactCost line);

 private:
  ExactCost exact_;
  base::MicroUsd given_;
};

}  // namespace gpu_platform::accounting
