#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared.h"
#include "base/units.h"
#include "model/capacity.h"

// What GPUs cost: the site's price list, and the prices that ever were in force. Money is in
// millionths of the site's one currency. A price is of a whole GPU for an hour; a part pays its
// share of it.

namespace gpu_platform::model {

// One line of the price list.
struct Price {
  std::string gpu_type;  // a catalogue type or family, or the driver's model name; empty: all
  std::optional<CapacityClass> capacity;  // absent: every class
  std::string node;                       // a pattern of names ("dgx-a*"); empty: all
  base::Instant from;                     // unset: since ever
  base::Instant until;                    // from here on no more; unset: for ever
  base::MicroUsd per_hour;                // of a whole GPU; not negative

  friend bool operator==(const Price&, const Price&) = default;
};

// No price of a GPU-hour is higher. Sums of costs cannot overflow below it
// (accounting/exact_cost.h).
inline constexpr base::MicroUsd kMaxPricePerHour{10'000'000'000};

// Of jobs without GPUs alone.
struct CpuPrices {
  base::MicroUsd core_hour;
  base::MicroUsd gib_hour;

  friend bool operator==(const CpuPrices&, const CpuPrices&) = default;
};

// A team pays less than the list, and so do the teams below it that have none of their own.
struct Discount {
  std::string team;
  std::uint32_t basis_points = 0;  // hundredths of a percent, at most 10,000

  friend bool operator==(const Discount&, const Discount&) = default;
};

// What energy costs, and what it does to the climate.
struct EnergyFactors {
  base::MicroUsd per_kwh;
  std::uint32_t co2_grams_per_kwh = 0;

  friend bool operator==(const EnergyFactors&, const EnergyFactors&) = default;
};

// How the site bills (the section `accounting` of the configuration).
struct Billing {
  std::string currency = "USD";  // three letters
  std::vector<Price> prices;     // in the order of the configuration
  // A price without a class is that of on-demand and reserved capacity; of spot capacity it is so
  // much less, where the list has no price of its own for it.
  std::uint32_t spot_discount_percent = 70;
  CpuPrices cpu;
  std::vector<Discount> discounts;
  bool preempted_is_free = false;  // the runs of jobs that were stopped for others, reclaimed too
  EnergyFactors energy;

  friend bool operator==(const Billing&, const Billing&) = default;
};

// A price that is, or was, in force. It never changes but for its end, so that what was billed
// stays as it was.
struct PriceEntry {
  std::uint32_t id = 0;  // from 1
  Price price;           // as it was given, or as it follows from that of `derived_from`
  base::Instant begin;   // it counts from here on: its `from`, and not before it was made known
  base::Instant end;     // unset: none yet; its begin: it never counted
  std::string by;        // who set it at run time; empty: the configuration
  // The price without a class that this one of spot capacity follows from, rounded to a millionth.
  // It ends with it. 0: none.
  std::uint32_t derived_from = 0;

  friend bool operator==(const PriceEntry&, const PriceEntry&) = default;
};

// The book has no more entries than this by changes at run time.
inline constexpr std::size_t kMaxPriceEntries = 10'000;

// Returns whether the price counts no more from then on.
bool has_ended(const PriceEntry& entry, base::Instant at);

// A span of time at one price.
struct PriceSpan {
  base::Instant from;
  base::Instant to;
  const PriceEntry* entry = nullptr;  // null: there is no price
};

// All prices that ever were. Entries are only appended, and ended. Those of the same type, class
// and node never count at the same time. All times are whole milliseconds, cut off as in the
// ledger.
struct PriceBook {
  std::vector<PriceEntry> entries;           // by id: entries[id - 1]
  std::vector<Price> listed;                 // of the configuration that it follows
  std::uint32_t spot_discount_percent = 70;  // the same

  // Takes over the list of the configuration at that time: prices that it has no longer end, new
  // ones begin. Prices that were set at run time stay, and go before those of the list.
  void follow(const Billing& billing, base::Instant at);
  // A price that is set at run time begins no earlier than now. It takes the place of those of the
  // same type, class and node in its time; after its end they count again.
  void set(const Price& price, std::string by, base::Instant at);
  // Ends the price. If it was set at run time, that of the list counts again. Returns false if
  // there is none, or it has ended.
  bool withdraw(std::uint32_t id, base::Instant at);

  const PriceEntry* find(std::uint32_t id) const;
  // Returns the price of such a GPU at that time: the one that names the node before others, then
  // the one that is given for the class, then the one of the type before its family before
  // all types, then the latest. Null: there is none, which is not the same as free. Cost: all
  // entries, about 10 ns each.
  const PriceEntry* at(std::string_view gpu_type, CapacityClass capacity, std::string_view node,
                       base::Instant at) const;
  // The prices over a span, in its order, without gaps: one at least, unless the span is empty.
  // They refer to the entries.
  std::vector<PriceSpan> over(std::string_view gpu_type, CapacityClass capacity,
                              std::string_view node, base::Instant from, base::Instant to) const;

  friend bool operator==(const PriceBook&, const PriceBook&) = default;
};

// The prices of a site that has set none: per GPU-hour A100 4.10, H100 5.50, L40S 2.20, A10G 1.10,
// T4 0.526, V100 3.00.
const std::vector<Price>& default_prices();

}  // namespace gpu_platform::model
