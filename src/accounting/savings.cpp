#include "accounting/savings.h"

#include <algorithm>

namespace gpu_platform::accounting {

namespace {

constexpr std::int64_t kNanosOfMilli = 1'000'000;

base::Instant begin_of_milli(model::Millis at) {
  return base::Instant(at * kNanosOfMilli);
}

bool is_on_spot(const model::LedgerLine& line) {
  return line.kind == model::LedgerKind::kHeld && !line.gpu_uuid.empty() &&
         line.capacity == model::CapacityClass::kSpot;
}

}  // namespace

SpotUse& SpotUse::operator+=(const SpotUse& other) {
  time += other.time;
  unpriced += other.unpriced;
  reclaimed += other.reclaimed;
  paid += other.paid;
  on_demand += other.on_demand;
  return *this;
}

void SpotSavings::add(const model::LedgerLine& line) {
  const Span used = {std::max(line.started, span_.from), std::min(line.ended, span_.to)};
  if (!is_on_spot(line) || used.from >= used.to) return;
  const bool is_billed = line.not_billed == model::NotBilled::kBilled;
  if (!is_billed && line.not_billed != model::NotBilled::kReclaimed) return;
  SpotUse& row = rows_[{line.team, line.gpu_type}];
  if (is_billed) {
    add_billed(line, used, row);
  } else {
    row.reclaimed += static_cast<__int128>(line.share.value()) * (used.to - used.from);
  }
}

void SpotSavings::add_billed(const model::LedgerLine& line, Span used, SpotUse& row) const {
  const model::PriceEntry* const own = prices_.find(line.price);
  const std::vector<model::PriceSpan> spans =
      prices_.over(line.gpu_type, model::CapacityClass::kOnDemand, line.node,
                   begin_of_milli(used.from), begin_of_milli(used.to));
  for (const model::PriceSpan& span : spans) {
    const std::int64_t length = (span.to - span.from).value() / kNanosOfMilli;
    const __int128 time = static_cast<__int128>(line.share.value()) * length;
    row.time += time;
    if (own == nullptr || span.entry == nullptr) {
      row.unpriced += time;
      continue;
    }
    row.paid += gpu_cost(line.share, length, own->price.per_hour, line.discount);
    row.on_demand += gpu_cost(line.share, length, span.entry->price.per_hour, line.discount);
  }
}

std::vector<SpotUse> SpotSavings::rows() const {
  std::vector<SpotUse> out;
  for (const auto& [key, row] : rows_) {
    out.push_back(row);
    out.back().team = key.first;
    out.back().gpu_type = key.second;
  }
  return out;
}

SpotUse SpotSavings::total() const {
  SpotUse sum;
  for (const auto& [key, row] : rows_) sum += row;
  return sum;
}

}  // namespace gpu_platform::accounting
