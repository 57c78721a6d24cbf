#include "accounting/job_budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "accounting/attempt_lines.h"
#include "base/check.h"
#include "base/parse.h"
#include "model/job_spec.h"

namespace gpu_platform::accounting {

using model::Millis;

namespace {

// No time limit is longer (jobs.proto).
constexpr Millis kLongest = Millis{10} * 365 * 24 * 3'600'000;

constexpr Millis kLeast = kLeastPaidTime.value() / 1'000'000;

const model::Node& node_of(const MeterTerms& terms, const model::NodeAllocation& part) {
  const model::Node* node = terms.nodes.find(part.node.value);
  CHECK(node != nullptr);
  return *node;
}

// In a millisecond; nothing if the GPUs have no price.
std::optional<ExactCost> rate_at(const MeterTerms& terms, const model::JobPlace& place,
                                 std::uint32_t discount, base::Instant at) {
  if (place.gpu_type.empty()) {
    const model::CpuPrices& cpu = terms.policy.billing->cpu;
    const auto mib = (place.memory.value() + base::kMiB.value() - 1) / base::kMiB.value();
    return cpu_cost(static_cast<std::uint32_t>(place.cpus), cpu.core_hour, mib, cpu.gib_hour, 1,
                    discount);
  }
  const model::PriceEntry* price = terms.prices.at(place.gpu_type, place.capacity, place.node, at);
  if (price == nullptr) return std::nullopt;
  return gpu_cost(place.share, 1, price->price.per_hour, discount);
}

// Nothing: the amount pays for the whole limit.
std::optional<base::Duration> time_within(const model::JobPlace& place, ExactCost rate,
                                          ExactCost amount) {
  if (amount <= ExactCost()) return base::Duration();
  if (rate <= ExactCost()) return std::nullopt;
  const __int128 milliseconds = amount.units() / rate.units();
  if (milliseconds >= base::whole_milliseconds(place.limit)) return std::nullopt;
  return base::seconds(static_cast<std::int64_t>(milliseconds / 1000));
}

base::MicroUsd least_of(ExactCost rate) {
  const __int128 units = rate.units() * kLeast;
  const __int128 micros = (units + kUnitsPerMicro - 1) / kUnitsPerMicro;
  return ExactCost(micros * kUnitsPerMicro).floor();
}

}  // namespace

ExactCost cost_of_ended(const MeterTerms& terms, const model::Job& job,
                        const model::Attempt& attempt) {
  if (!attempt.started_at.is_set() || !attempt.ended_at.is_set()) return {};
  model::Attempt billed = attempt;
  std::erase_if(billed.allocation.nodes, [&](const model::NodeAllocation& part) {
    return not_billed_of(job, attempt, node_of(terms, part).capacity, *terms.policy.billing) !=
           model::NotBilled::kBilled;
  });
  billed.state = model::AttemptState::kCleaning;  // a meter counts nothing of a released one
  const Millis end = std::max(model::millis_of(attempt.ended_at), Millis{0});
  BudgetMeter meter(0, end);
  meter.add(terms, job, billed);
  return meter.cost(terms.prices, end);
}

ExactCost rest_of_budget(const MeterTerms& terms, const model::Job& job) {
  ExactCost rest(job.spec->budget.value());
  for (const model::Attempt& attempt : job.attempts) rest -= cost_of_ended(terms, job, attempt);
  return rest;
}

std::optional<base::Duration> paid_time(const MeterTerms& terms, const model::Job& job,
                                        const model::Attempt& attempt, ExactCost rest,
                                        base::Instant from) {
  if (rest <= ExactCost()) return base::Duration();
  model::Attempt running = attempt;
  running.state = model::AttemptState::kRunning;
  running.requested_at = running.started_at = from;
  running.ended_at = {};
  const Millis begin = model::millis_of(from);
  BudgetMeter meter(begin, begin + kLongest);
  meter.add(terms, job, running);
  const auto spent = meter.reaches(terms.prices, ExactCost(rest.units() + 1));
  if (!spent) return std::nullopt;
  return base::seconds((*spent - 1 - begin) / 1000);
}

bool is_priced(const MeterTerms& terms, const model::Attempt& attempt, base::Instant at) {
  return std::ranges::all_of(attempt.allocation.nodes, [&](const model::NodeAllocation& part) {
    const model::Node& node = node_of(terms, part);
    return part.grants.empty() ||
           terms.prices.at(attempt.gpu_type, node.capacity, node.name, at) != nullptr;
  });
}

Cover cover_of(const MeterTerms& terms, const model::JobSpec& spec,
               std::span<const model::JobPlace> places, ExactCost amount, base::Instant at) {
  const std::uint32_t discount = discount_of(terms.policy, spec.team);
  Cover cover;
  ExactCost dearest;
  for (const model::JobPlace& place : places) {
    const std::optional<ExactCost> rate = rate_at(terms, place, discount, at);
    if (!rate) return {.where = place.gpu_type, .has_price = false, .time = {}, .least = {}};
    const std::optional<base::Duration> time = time_within(place, *rate, amount);
    const bool is_shorter = time && (!cover.time || *rate > dearest);
    if (!is_shorter && (cover.time || *rate <= dearest)) continue;
    dearest = *rate;
    cover = {.where = place.gpu_type, .has_price = true, .time = time, .least = least_of(*rate)};
  }
  return cover;
}

bool pays_somewhere(const MeterTerms& terms, const model::JobSpec& spec,
                    std::span<const model::JobPlace> places, ExactCost amount, base::Instant at) {
  const std::uint32_t discount = discount_of(terms.policy, spec.team);
  return std::ranges::any_of(places, [&](const model::JobPlace& place) {
    const std::optional<ExactCost> rate = rate_at(terms, place, discount, at);
    const Millis least = std::min(kLeast, base::whole_milliseconds(place.limit));
    return rate && rate->units() * least <= amount.units();
  });
}

std::string paid_time_text(base::Duration time) {
  const std::int64_t seconds = time.value() / base::seconds(1).value();
  const std::int64_t minutes = seconds / 60;
  if (minutes >= 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return minutes > 0 ? fmt::format("{} min {} s", minutes, seconds % 60)
                     : fmt::format("{} s", seconds);
}

std::string describe(const Cover& cover, base::MicroUsd budget) {
  return fmt::format("budget {}: pays for {}{}; the job ends then", base::written(budget),
                     paid_time_text(cover.time.value()),
                     cover.where.empty() ? std::string() : " on " + cover.where);
}

}  // namespace gpu_platform::accounting
