#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accounting/usage_sum.h"
#include "controller/recount_prices_fixture.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "model/team.h"

// What attempts and GPUs cost, by another way than accounting/: nothing of it is used but the
// places where it keeps its sums.

namespace gpu_platform::controller::testing {

// A part of an attempt's time, or of that of a GPU, that is priced in one way.
struct RecountPart {
  std::string node;
  std::string type;  // of the GPUs
  model::CapacityClass capacity = model::CapacityClass::kOnDemand;
  std::int64_t share = 0;  // of one GPU
  std::uint32_t cpus = 0;  // of a job without GPUs, as the next
  std::int64_t memory_mib = 0;
  model::NotBilled not_billed = model::NotBilled::kBilled;
};

struct RecountAttempt {
  std::shared_ptr<const model::JobSpec> spec;
  std::vector<RecountPart> parts;
  model::Allocation allocation;
  std::string type;
  model::Millis requested = 0;
  std::optional<model::Millis> started;
  std::optional<model::Millis> ended;
  model::Millis released = 0;
  model::Exit exit;
  model::EndReason reason = model::EndReason::kNone;
  model::EndReason stop_reason = model::EndReason::kNone;
  bool is_reclaimed = false;
  std::int64_t discount = 0;
  model::CpuPrices cpu;
};

// The rules of the site as they are now, and all prices that ever were.
class RecountBills {
 public:
  void follow(const model::Billing& billing, model::Millis at) {
    prices.follow(billing, at);
    billing_ = billing;
  }

  const model::CpuPrices& cpu() const { return billing_.cpu; }

  std::int64_t discount_of_team(const model::Organisation& organisation, std::string team) const {
    while (!team.empty()) {
      for (const model::Discount& discount : billing_.discounts) {
        if (discount.team == team) return discount.basis_points;
      }
      const model::Team* const known = model::find_team(organisation, team);
      team = known == nullptr ? std::string() : known->parent;
    }
    return 0;
  }

  // Hardware and the platform pay for what they took; what was stopped for others is billed unless
  // the site says that it is free.
  model::NotBilled why_not_billed(const RecountAttempt& attempt,
                                  model::CapacityClass capacity) const {
    using model::EndReason;
    using model::Lost;
    if (!attempt.ended) return model::NotBilled::kBilled;
    const bool is_done = attempt.exit.code == 0 && attempt.spec->complete_on_exit_zero;
    if (attempt.started && is_done) return model::NotBilled::kBilled;
    if (attempt.exit.lost == Lost::kNodeLost) return model::NotBilled::kHardware;
    for (const EndReason reason : {attempt.reason, attempt.stop_reason}) {
      if (reason == EndReason::kGpuFault) return model::NotBilled::kHardware;
    }
    const bool is_evicted =
        attempt.reason == EndReason::kPreempted && attempt.stop_reason == EndReason::kNone;
    const bool is_spot = capacity == model::CapacityClass::kSpot;
    const bool is_platforms = attempt.exit.lost == Lost::kUnknown ||
                              attempt.reason == EndReason::kSupervisorLost ||
                              attempt.reason == EndReason::kPrologFailed ||
                              attempt.reason == EndReason::kEnvironmentLost ||
                              attempt.stop_reason == EndReason::kGpuOffline ||
                              (attempt.reason == EndReason::kLaunchFailed && !attempt.exit.code) ||
                              (is_evicted && !is_spot);
    if (is_platforms) return model::NotBilled::kPlatform;
    if (!attempt.started) return model::NotBilled::kNeverRan;
    if (!billing_.preempted_is_free) return model::NotBilled::kBilled;
    if (is_evicted) return model::NotBilled::kReclaimed;
    if (attempt.stop_reason != EndReason::kPreempted) return model::NotBilled::kBilled;
    return attempt.is_reclaimed ? model::NotBilled::kReclaimed : model::NotBilled::kPreempted;
  }

  static std::optional<accounting::Span> common(accounting::Span a, accounting::Span b) {
    const accounting::Span both = {std::max(a.from, b.from), std::min(a.to, b.to)};
    return both.from < both.to ? std::optional(both) : std::nullopt;
  }

  static accounting::ExactCost money(base::MicroUsd amount) {
    return accounting::ExactCost(static_cast<__int128>(amount.value()) * 7000 * 3'600'000 * 10'000 *
                                 1024);
  }

  void add_time(const RecountPart& part, accounting::Span span, accounting::GpuTime& to) const {
    if (span.from >= span.to || part.share == 0) return;
    __int128 units = 0;
    for (const RecountRate& rate :
         prices.over(part.type, part.capacity, part.node, {span.from, span.to})) {
      const __int128 time = static_cast<__int128>(part.share) * (rate.to - rate.from);
      to.time += time;
      if (!rate.per_hour) to.unpriced += time;
      units += time * rate.per_hour.value_or(0) * 10'000 * 1024;
    }
    to.list += accounting::ExactCost(units);
  }

  void add(const RecountAttempt& attempt, const RecountPart& part, accounting::Span span,
           accounting::UsageFigures& to) const {
    const Times times = times_of(attempt);
    const bool is_billed = part.not_billed == model::NotBilled::kBilled;
    const auto used = common(times.used, span);
    if (part.share == 0) {
      if (used) add_cpus(attempt, part, used->to - used->from, to);
      return;
    }
    if (const auto time = common(times.starting, span)) add_time(part, *time, to.starting);
    if (const auto time = common(times.cleaning, span)) add_time(part, *time, to.cleaning);
    if (!used) return;
    accounting::GpuTime time;
    add_time(part, *used, time);
    // All of it pays as much less.
    if (is_billed) {
      to.discount += accounting::ExactCost(time.list.units() / 10'000 * attempt.discount);
    }
    to.used[static_cast<std::size_t>(part.not_billed)] += time;
  }

  accounting::ExactCost bill_of(const RecountAttempt& attempt, accounting::Span span) const {
    accounting::UsageFigures figures;
    for (const RecountPart& part : attempt.parts) add(attempt, part, span, figures);
    return figures.used[0].list - figures.discount + figures.cpu.list - figures.cpu_discount;
  }

  RecountPrices prices;

 private:
  struct Times {
    accounting::Span starting;
    accounting::Span used;
    accounting::Span cleaning;
  };
  static Times times_of(const RecountAttempt& attempt) {
    const model::Millis from = attempt.requested;
    const model::Millis to = attempt.released;
    model::Millis started = to;
    if (attempt.started) started = std::clamp(*attempt.started, from, to);
    model::Millis ended = to;
    if (attempt.ended) ended = std::clamp(*attempt.ended, started, to);
    return {{from, started}, {started, ended}, {ended, to}};
  }

  static void add_cpus(const RecountAttempt& attempt, const RecountPart& part, model::Millis length,
                       accounting::UsageFigures& to) {
    const bool is_billed = part.not_billed == model::NotBilled::kBilled;
    accounting::CpuTime& cpu = is_billed ? to.cpu : to.cpu_not_billed;
    const __int128 per_hour =
        static_cast<__int128>(part.cpus) * attempt.cpu.core_hour.value() * 1024 +
        static_cast<__int128>(part.memory_mib) * attempt.cpu.gib_hour.value();
    cpu.core_ms += static_cast<__int128>(part.cpus) * length;
    cpu.mib_ms += static_cast<__int128>(part.memory_mib) * length;
    cpu.list += accounting::ExactCost(per_hour * length * 7000 * 10'000);
    if (!is_billed) return;
    to.cpu_discount += accounting::ExactCost(per_hour * length * 7000 * attempt.discount);
  }

  model::Billing billing_;
};

}  // namespace gpu_platform::controller::testing
