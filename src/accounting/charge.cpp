#include "accounting/charge.h"

#include <algorithm>

namespace gpu_platform::accounting {

ExactCost charge_of(const model::LedgerLine& line, const model::PriceBook& prices,
                    model::Millis from, model::Millis to) {
  if (line.kind == model::LedgerKind::kCorrection) {
    return from <= line.from && line.from < to ? ExactCost(line.amount) : ExactCost();
  }
  const bool is_billed =
      line.kind == model::LedgerKind::kHeld && line.not_billed == model::NotBilled::kBilled;
  const model::Millis used = std::min(line.ended, to) - std::max(line.started, from);
  if (!is_billed || used <= 0) return {};
  if (line.gpu_uuid.empty()) {
    return cpu_cost(line.cpus, line.core_hour, line.memory_mib, line.gib_hour, used, line.discount);
  }
  const model::PriceEntry* price = prices.find(line.price);
  if (price == nullptr) return {};
  return gpu_cost(line.share, used, price->price.per_hour, line.discount);
}

}  // namespace gpu_platform::accounting
