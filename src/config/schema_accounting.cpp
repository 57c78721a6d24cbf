#include <array>

#include "config/schema_keys.h"

// The keys about what is billed, and what it costs.

namespace gpu_platform::config {

namespace {

using C = Configuration;

constexpr std::int64_t kMaxPrice = model::kMaxPricePerHour.value() / 1'000'000;

// clang-format off
constexpr std::array kAccountingKeys = {
    Key{"accounting.currency",
        +[](C& c) -> SiteName& { return c.currency; },
        0, 0, Effect::kAnytime,
        "The currency of all prices and budgets, by its three letters. "
        "Amounts are not converted when it changes."},
    Key{"accounting.spot_discount_percent",
        +[](C& c) -> std::uint32_t& { return c.billing.spot_discount_percent; },
        0, 100, Effect::kAnytime,
        "How much less spot capacity costs where the list has no price of its own for it."},
    Key{"accounting.cpu_core_hour",
        +[](C& c) -> base::MicroUsd& { return c.billing.cpu.core_hour; },
        0, kMaxPrice, Effect::kAnytime,
        "What a core costs a job without GPUs in one hour."},
    Key{"accounting.memory_gib_hour",
        +[](C& c) -> base::MicroUsd& { return c.billing.cpu.gib_hour; },
        0, kMaxPrice, Effect::kAnytime,
        "What a GiB of memory costs a job without GPUs in one hour."},
    Key{"accounting.preempted",
        +[](C& c) -> PreemptedRuns& { return c.preempted_runs; },
        0, 0, Effect::kAnytime,
        "Whether the owner of a job that is stopped for others pays for its run: for a job of a "
        "higher class, because its GPUs are guaranteed to others, or because its cluster takes spot "
        "capacity back. Runs that hardware or the platform ended are always free."},
    Key{"accounting.energy.electricity_per_kwh",
        +[](C& c) -> base::MicroUsd& { return c.billing.energy.per_kwh; },
        0, 1'000, Effect::kAnytime,
        "What a kilowatt-hour costs. "
        "The cost of a job's energy is shown beside its bill and is not part of it."},
    Key{"accounting.energy.co2_grams_per_kwh",
        +[](C& c) -> std::uint32_t& { return c.billing.energy.co2_grams_per_kwh; },
        0, 10'000, Effect::kAnytime,
        "How many grams of carbon dioxide the site's electricity sets free for each kilowatt-hour."},
};
// clang-format on

}  // namespace

std::span<const Key> accounting_keys() {
  return kAccountingKeys;
}

}  // namespace gpu_platform::config
