#include "accounting/budget_meter.h"

#include <algorithm>
#include <set>
#include <vector>

#include "accounting/attempt_lines.h"
#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::accounting {

using model::Millis;

namespace {

base::Instant instant_of(Millis at) {
  return base::Instant(at * 1'000'000);
}

void move_by(ExactCost& sum, ExactCost part, bool is_added) {
  if (is_added) {
    sum += part;
  } else {
    sum -= part;
  }
}

bool name_nodes(const model::PriceBook& prices) {
  return std::ranges::any_of(
      prices.entries, [](const model::PriceEntry& entry) { return !entry.price.node.empty(); });
}

std::vector<model::PriceSpan> prices_of(const model::PriceBook& prices,
                                        const BudgetMeter::Cell& cell, Millis from, Millis to) {
  return prices.over(cell.gpu_type, cell.capacity, cell.node, instant_of(from), instant_of(to));
}

// A type without a price costs nothing that could be counted.
ExactCost cost_of(const BudgetMeter::Cell& cell, base::GpuShare share, const model::PriceSpan& span,
                  Millis until) {
  const Millis from = model::millis_of(span.from);
  const Millis to = std::min(model::millis_of(span.to), until);
  if (span.entry == nullptr || to <= from) return {};
  return gpu_cost(share, to - from, span.entry->price.per_hour, cell.discount);
}

ExactCost cost_of(const model::PriceBook& prices, const BudgetMeter::Cell& cell,
                  base::GpuShare share, Millis from, Millis to) {
  ExactCost sum;
  if (to <= from) return sum;
  for (const model::PriceSpan& span : prices_of(prices, cell, from, to)) {
    sum += cost_of(cell, share, span, to);
  }
  return sum;
}

std::int64_t mib_of(base::Bytes memory) {
  return (memory.value() + base::kMiB.value() - 1) / base::kMiB.value();
}

// What a job without GPUs costs in a millisecond on a node.
ExactCost flat_of(const model::CpuPrices& prices, const model::NodeAllocation& part,
                  std::uint32_t discount) {
  return cpu_cost(part.cpus, prices.core_hour, mib_of(part.memory), prices.gib_hour, 1, discount);
}

ExactCost times(ExactCost rate, Millis milliseconds) {
  __int128 product = 0;
  CHECK(!__builtin_mul_overflow(rate.units(), static_cast<__int128>(milliseconds), &product));
  return ExactCost(product);
}

}  // namespace

void BudgetMeter::add(const MeterTerms& terms, const model::Job& job,
                      const model::Attempt& attempt) {
  change(terms, job, attempt, true);
}

void BudgetMeter::remove(const MeterTerms& terms, const model::Job& job,
                         const model::Attempt& attempt) {
  change(terms, job, attempt, false);
}

void BudgetMeter::change_cell(const model::PriceBook& prices, const Cell& cell,
                              base::GpuShare share, Millis started, bool is_added) {
  Running& running = cells_[cell];
  if (is_added) {
    running.share += share;
  } else {
    running.share -= share;
  }
  move_by(running.before, cost_of(prices, cell, share, from_, started), is_added);
  if (running.share == base::GpuShare()) cells_.erase(cell);
}

void BudgetMeter::change(const MeterTerms& terms, const model::Job& job,
                         const model::Attempt& attempt, bool is_added) {
  if (!attempt.started_at.is_set() || !model::holds_resources(attempt.state)) return;
  const bool is_over = attempt.ended_at.is_set();
  const Millis started = std::max(
      {model::millis_of(attempt.started_at), model::millis_of(attempt.requested_at), from_});
  const Millis ended = is_over ? std::max(model::millis_of(attempt.ended_at), started) : started;
  const std::uint32_t discount = discount_of(terms.policy, job.spec->team);
  const bool by_node = name_nodes(terms.prices);
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    const model::Node* node = terms.nodes.find(part.node.value);
    CHECK(node != nullptr);
    const bool is_billed = not_billed_of(job, attempt, node->capacity, *terms.policy.billing) ==
                           model::NotBilled::kBilled;
    if (!is_billed) continue;  // as its lines will say
    const Cell cell{attempt.gpu_type, node->capacity, by_node ? node->name : std::string(),
                    discount};
    base::GpuShare share;
    for (const model::GpuGrant& grant : part.grants) share += grant.share;
    const bool has_gpus = share != base::GpuShare();
    const ExactCost flat =
        has_gpus ? ExactCost() : flat_of(terms.policy.billing->cpu, part, discount);
    if (is_over) {
      const ExactCost of_gpus =
          has_gpus ? cost_of(terms.prices, cell, share, started, ended) : ExactCost();
      move_by(ended_, of_gpus + times(flat, ended - started), is_added);
      continue;
    }
    if (has_gpus) change_cell(terms.prices, cell, share, started, is_added);
    move_by(flat_, flat, is_added);
    move_by(flat_before_, times(flat, started - from_), is_added);
  }
  if (is_over) return;
  CHECK(is_added || running_ > 0);
  running_ += is_added ? 1 : -1;
}

ExactCost BudgetMeter::cost(const model::PriceBook& prices, Millis at) const {
  const Millis until = std::clamp(at, from_, to_);
  ExactCost sum = ended_ + times(flat_, until - from_) - flat_before_;
  for (const auto& [cell, running] : cells_) {
    sum += cost_of(prices, cell, running.share, from_, until) - running.before;
  }
  return sum;
}

ExactCost BudgetMeter::rate(const model::PriceBook& prices, Millis at) const {
  ExactCost sum = flat_;
  for (const auto& [cell, running] : cells_) {
    sum += cost_of(prices, cell, running.share, at, at + 1);
  }
  return sum;
}

std::optional<Millis> BudgetMeter::reaches(const model::PriceBook& prices, ExactCost amount) const {
  // Between two of these times no price changes.
  std::set<Millis> changes = {to_};
  for (const auto& [cell, running] : cells_) {
    for (const model::PriceSpan& span : prices_of(prices, cell, from_, to_)) {
      changes.insert(model::millis_of(span.to));
    }
  }
  Millis from = from_;
  if (cost(prices, from) >= amount) return from;
  for (const Millis to : changes) {
    if (to <= from) continue;
    if (cost(prices, to) >= amount) {
      const __int128 missing = (amount - cost(prices, from)).units();
      const __int128 each = rate(prices, from).units();
      return from + static_cast<Millis>((missing + each - 1) / each);
    }
    from = to;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::accounting
