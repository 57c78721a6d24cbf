#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accounting/exact_cost.h"
#include "accounting/numbering.h"
#include "accounting/usage_sum.h"
#include "base/units.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/price.h"

// What could cost less, with the evidence from the ledger and from what was read of jobs: cheaper
// types of GPUs for families of jobs, GPUs that were held and hardly used, and capacity that is
// worth its reservation. Times are in base::GpuShare × milliseconds. What is not known is absent,
// and no advice is made of it.

namespace gpu_platform::accounting {

// What the readings of one attempt say.
struct AttemptUse {
  double measured = 0;             // the part of its time that has readings, 0 to 1
  double utilization_percent = 0;  // of its part of its GPUs; says nothing if nothing is measured
  std::optional<base::Bytes> peak_memory;  // on one GPU
};

// ---- types of GPUs for families of jobs

// The name of the jobs of a kind: "train" for "train-17" and "train_2026-10-01". A name of digits
// alone stays.
std::string_view family_of(std::string_view job_name);

inline constexpr std::size_t kMaxFamilies = 100'000;
inline constexpr std::size_t kMaxFamilyLooks = 20;  // attempts of a family that are looked at

// The jobs of a user and a project with one name of a family, on GPUs of one type.
struct JobFamily {
  std::string user;
  std::string team;  // of its latest line
  std::string project;
  std::string name;
  std::string gpu_type;
  __int128 time = 0;      // billed
  __int128 unpriced = 0;  // of it
  ExactCost bill;
  std::uint64_t attempts = 0;
  bool has_parts = false;                // it had parts of GPUs
  std::vector<model::AttemptId> latest;  // ascending in time; at most kMaxFamilyLooks
};

// Adds up lines by family. Memory: about 500 bytes for each family.
class FamilySum {
 public:
  // The prices must outlive it.
  FamilySum(Span span, const model::PriceBook& prices) : span_(span), prices_(prices) {}

  void add(const model::LedgerLine& line);

  // False: there were more than kMaxFamilies; lines of others are left out.
  bool is_complete() const { return is_complete_; }
  std::size_t size() const { return families_.size(); }
  // Those with the highest bills, the highest first.
  std::vector<JobFamily> dearest(std::size_t max) const;

 private:
  JobFamily* family_for(const model::LedgerLine& line);

  const Span span_;
  const model::PriceBook& prices_;
  Numbering keys_;
  std::vector<JobFamily> families_;  // by number of keys_
  bool is_complete_ = true;
};

// What the readings of several attempts say.
class MeasuredUse {
 public:
  void add(const AttemptUse& use);

  std::uint64_t attempts() const { return attempts_; }  // that have any reading
  std::optional<base::Bytes> peak_memory() const { return peak_memory_; }
  // The mean of the attempts. Absent: none was measured.
  std::optional<double> utilization_percent() const;

 private:
  std::uint64_t attempts_ = 0;
  std::uint64_t measured_ = 0;
  double utilization_ = 0;  // the sum
  std::optional<base::Bytes> peak_memory_;
};

// A type of GPU that the cluster has.
struct GpuOffer {
  std::string gpu_type;
  base::Bytes memory;                      // of the smallest one
  std::uint32_t weight = 1000;             // how much it does, as GpuWeight::thousandths
  std::optional<base::MicroUsd> per_hour;  // on-demand; absent: there is no price
};

// No type is recommended that saves less of the bill.
inline constexpr std::uint32_t kLeastSavedPercent = 5;

struct TypeAdvice {
  std::optional<GpuOffer> better;  // absent: none is known to be
  ExactCost saved;                 // of the family's bill, if its attempts took as long
  std::uint32_t saved_percent = 0;
  // What is not known of the family: "peak memory", "utilization", "price", "parts of GPUs" (which
  // are not compared), "type of GPU" (which the cluster has no more).
  std::vector<std::string> unknown;
};
// Returns the cheapest type that has the peak memory and a tenth more, and that does enough: as
// much as the family made of its present type, or, where that is not known, as much as that type.
TypeAdvice advise_type(const JobFamily& family, const MeasuredUse& use,
                       std::span<const GpuOffer> offers);

// ---- GPUs that were held and hardly used

// What an attempt had in the span.
struct HeldAttempt {
  model::AttemptId attempt;
  std::uint32_t team = 0;  // HeldSum::team_name()
  base::GpuShare share;    // of each of its GPUs
  Span used;
  __int128 time = 0;
  ExactCost bill;
};

// Adds up lines by attempt. Memory: 128 bytes for each.
class HeldSum {
 public:
  // The prices must outlive it.
  HeldSum(Span span, const model::PriceBook& prices) : span_(span), prices_(prices) {}

  // The lines of an attempt come one after the other, as the ledger has them.
  void add(const model::LedgerLine& line);

  // Those with the most GPU-time come first.
  std::vector<HeldAttempt> largest_first() const;
  std::string_view team_name(std::uint32_t team) const { return teams_.text_of(team); }

 private:
  const Span span_;
  const model::PriceBook& prices_;
  Numbering teams_;
  std::vector<HeldAttempt> attempts_;
};

// The rule of the site (`alerts.idle`), as the key figures have it.
struct WasteRule {
  std::uint32_t below_percent = 5;
  model::Millis after = 30 * 60'000;
  double least_measured = 0.5;  // of the attempt's time
};

enum class Activity : std::uint8_t {
  kUsed,  // or too short to be idle
  kIdle,
  kNotMeasured,
};
inline constexpr std::size_t kActivities = 3;
Activity activity_of(const HeldAttempt& held, const std::optional<AttemptUse>& use,
                     const WasteRule& rule);

struct ActivityTime {
  std::uint64_t attempts = 0;
  __int128 time = 0;
  ExactCost bill;

  void add(const HeldAttempt& held);
  friend bool operator==(const ActivityTime&, const ActivityTime&) = default;
};
// By Activity.
using ActivityTimes = std::array<ActivityTime, kActivities>;
using TeamActivities = std::map<std::string, ActivityTimes, std::less<>>;  // by team

// ---- capacity that is worth its reservation

// The prices of a type for an hour.
struct ReservedOffer {
  base::MicroUsd on_demand;
  base::MicroUsd reserved;
};

struct ReservedAdvice {
  std::string gpu_type;
  __int128 time = 0;                   // in use on on-demand capacity
  std::optional<ReservedOffer> offer;  // absent: one of the prices is not known
  std::uint32_t gpus = 0;              // to reserve; 0: none
  model::Millis busy = 0;              // for so long at least so many were in use
  ExactCost saved;                     // over the span
};

// Finds for each type how many GPUs were in use for how long. Memory: 32 bytes for each line.
class ReservedSum {
 public:
  explicit ReservedSum(Span span) : span_(span) {}

  void add(const model::LedgerLine& line);

  std::vector<std::string> gpu_types() const;
  // Each GPU that was in use for more than the break-even part of the span, reserved / on-demand,
  // is worth its reservation. Types without offers are there without advice.
  std::vector<ReservedAdvice> advice(const std::map<std::string, ReservedOffer>& offers) const;

 private:
  struct Change {
    model::Millis at = 0;
    std::int64_t share = 0;  // more in use; negative: less

    friend auto operator<=>(const Change&, const Change&) = default;
  };
  // For how long at least so many whole GPUs were in use: [0] of one, and so on.
  static std::vector<model::Millis> time_with_at_least(std::vector<Change> changes);

  const Span span_;
  std::map<std::string, std::vector<Change>> changes_;  // by type
};

}  // namespace gpu_platform::accounting
