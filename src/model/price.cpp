#include "model/price.h"

namespace gpu_platform::model {

const PriceEntry* PriceBook::find(std::uint32_t id) const {
  return id == 0 || id > entries.size() ? nullptr : &entries[id - 1];
}

void PriceBook::follow(const Billing&, base::Instant) {}

void PriceBook::set(const Price&, std::string, base::Instant) {}

bool PriceBook::withdraw(std::uint32_t, base::Instant) {
  return false;
}

}  // namespace gpu_platform::model
