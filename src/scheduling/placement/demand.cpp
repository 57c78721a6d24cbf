#include "scheduling/placement/demand.h"

#include <algorithm>
#include <limits>

namespace gpu_platform::scheduling {

namespace {

__extension__ using Wide = unsigned __int128;

// amount × part / whole, rounded down and limited to `largest`; `largest` where there is no whole.
struct Portion {
  std::uint64_t part = 0;
  std::uint64_t whole = 0;
};
std::uint64_t portion_of(std::uint64_t amount, Portion portion, std::uint64_t largest) {
  if (portion.whole == 0) return largest;
  const Wide exact = static_cast<Wide>(amount) * portion.part / portion.whole;
  return static_cast<std::uint64_t>(std::min<Wide>(exact, largest));
}

// Returns what is left if so many percent, rounded up, are kept. It never keeps so much that a node
// has less than one for each GPU.
std::uint64_t without_reserve(std::uint64_t amount, std::uint32_t percent, std::uint32_t gpus) {
  if (amount <= gpus) return amount;
  const Wide kept = (static_cast<Wide>(amount) * std::min(percent, 100U) + 99) / 100;
  return amount - static_cast<std::uint64_t>(std::min<Wide>(kept, amount - gpus));
}

}  // namespace

Demand demand_on(const model::ResourceRequest& request, const NodeTotals& totals) {
  constexpr std::uint64_t kMaxCpus = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t kMaxMemory = std::numeric_limits<std::int64_t>::max();
  // Exactly the portion of whole GPUs where it asks for such.
  constexpr auto kWhole = static_cast<std::uint64_t>(base::kWholeGpu.value());
  const Portion of_gpus{
      .part = request.gpus * static_cast<std::uint64_t>(request.share_per_gpu.value()),
      .whole = totals.gpus * kWhole};
  std::uint64_t cpus = 1;
  if (request.cpus.has_value()) {
    cpus = *request.cpus;
  } else if (request.gpus > 0) {
    const std::uint64_t shared = without_reserve(totals.cpus, request.reserve_percent, totals.gpus);
    cpus = std::max<std::uint64_t>(1, portion_of(shared, of_gpus, kMaxCpus));
  }
  Demand demand{.cpus = static_cast<std::uint32_t>(cpus), .memory = {}};
  if (request.memory.has_value()) {
    demand.memory = *request.memory;
    return demand;
  }
  const Portion portion =
      request.gpus > 0 ? of_gpus : Portion{.part = demand.cpus, .whole = totals.cpus};
  auto memory = static_cast<std::uint64_t>(totals.memory.value());
  if (request.gpus > 0) memory = without_reserve(memory, request.reserve_percent, totals.gpus);
  demand.memory = base::Bytes(static_cast<std::int64_t>(portion_of(memory, portion, kMaxMemory)));
  return demand;
}

}  // namespace gpu_platform::scheduling
