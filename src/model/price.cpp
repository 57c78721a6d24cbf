#include "model/price.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <utility>

#include "model/gpu_catalogue.h"
#include "model/job_selection.h"

namespace gpu_platform::model {

namespace {

using base::Instant;

constexpr Instant kEver{std::numeric_limits<std::int64_t>::max()};

Instant whole_milliseconds_of(Instant at) {
  constexpr std::int64_t kNs = 1'000'000;
  return Instant(at.unix_ns() / kNs * kNs);
}

Instant end_of(const PriceEntry& entry) {
  return entry.end.is_set() ? entry.end : kEver;
}

Instant until_of(const Price& price) {
  return price.until.is_set() ? whole_milliseconds_of(price.until) : kEver;
}

bool is_in_force(const PriceEntry& entry, Instant at) {
  return entry.begin <= at && at < end_of(entry);
}

bool is_of_the_same(const Price& a, const Price& b) {
  return a.gpu_type == b.gpu_type && a.capacity == b.capacity && a.node == b.node;
}

// ---- changes

// To the nearest millionth.
base::MicroUsd less_percent(base::MicroUsd price, std::uint32_t percent) {
  return base::MicroUsd(((price * (100 - percent)).value() + 50) / 100);
}

// Appends the price of spot capacity that follows from this one.
void append_spot(PriceBook& book, PriceEntry entry) {
  entry.derived_from = std::exchange(entry.id, book.entries.size() + 1);
  entry.price.capacity = CapacityClass::kSpot;
  entry.price.per_hour = less_percent(entry.price.per_hour, book.spot_discount_percent);
  book.entries.push_back(std::move(entry));
}

struct InForce {
  Instant begin;
  Instant end;
};

void append(PriceBook& book, const Price& price, const std::string& by, InForce time) {
  PriceEntry entry;
  entry.id = static_cast<std::uint32_t>(book.entries.size() + 1);
  entry.price = price;
  entry.begin = time.begin;
  if (time.end != kEver) entry.end = time.end;
  entry.by = by;
  book.entries.push_back(entry);
  if (!price.capacity) append_spot(book, std::move(entry));
}

// Ends the price and the one that follows from it, at the earliest where they begin.
void end_price(PriceBook& book, std::uint32_t id, Instant at) {
  for (PriceEntry& entry : book.entries) {
    if (entry.id != id && entry.derived_from != id) continue;
    entry.end = std::min(end_of(entry), std::max(entry.begin, at));
  }
}

// Ends all prices of the same type, class and node in that time, and has them count again after it.
void clear(PriceBook& book, const Price& price, InForce time) {
  const std::size_t present = book.entries.size();
  for (std::size_t i = 0; i < present; ++i) {
    const PriceEntry old = book.entries[i];
    if (old.derived_from != 0 || !is_of_the_same(old.price, price)) continue;
    if (end_of(old) <= time.begin || old.begin >= time.end) continue;
    end_price(book, old.id, time.begin);
    if (end_of(old) > time.end) append(book, old.price, old.by, {time.end, end_of(old)});
  }
}

// Returns the first price of the same type, class and node that counts in that time; null if there
// is none.
const PriceEntry* first_in(const PriceBook& book, const Price& price, InForce time) {
  const PriceEntry* first = nullptr;
  for (const PriceEntry& entry : book.entries) {
    if (entry.derived_from != 0 || !is_of_the_same(entry.price, price)) continue;
    if (entry.begin == end_of(entry)) continue;
    if (end_of(entry) <= time.begin || entry.begin >= time.end) continue;
    if (first == nullptr || entry.begin < first->begin) first = &entry;
  }
  return first;
}

// Has a price of the list count where no other one of the same type, class and node does.
void fill(PriceBook& book, const Price& price, InForce time) {
  time.begin = std::max(time.begin, whole_milliseconds_of(price.from));
  time.end = std::min(time.end, until_of(price));
  while (time.begin < time.end) {
    const PriceEntry* const next = first_in(book, price, time);
    const Instant gap_end = next == nullptr ? time.end : next->begin;
    const Instant after = next == nullptr ? time.end : end_of(*next);
    if (time.begin < gap_end) append(book, price, {}, {time.begin, gap_end});
    time.begin = after;
  }
}

// Spot prices that follow from the list count no more as they were, and begin anew.
void derive_anew(PriceBook& book, Instant at) {
  const std::size_t present = book.entries.size();
  for (std::size_t i = 0; i < present; ++i) {
    PriceEntry& spot = book.entries[i];
    if (spot.derived_from == 0 || !spot.by.empty() || has_ended(spot, at)) continue;
    PriceEntry base = *book.find(spot.derived_from);
    base.begin = std::max(base.begin, at);
    spot.end = base.begin;
    append_spot(book, std::move(base));
  }
}

// ---- questions

// How a list may name a GPU.
struct TypeNames {
  std::string_view type;
  std::string_view family;  // empty: the catalogue does not have the type
};

TypeNames names_of(std::string_view gpu_type) {
  const auto catalogue = gpu_catalogue();
  const auto found = std::ranges::find(catalogue, gpu_type, &GpuType::name);
  return {gpu_type, found == catalogue.end() ? std::string_view() : found->family};
}

bool is_of(const Price& price, const TypeNames& gpu) {
  if (price.gpu_type.empty() || price.gpu_type == gpu.type) return true;
  if (!gpu.family.empty()) return price.gpu_type == gpu.family;
  return gpu_type_matches(price.gpu_type, gpu.type);
}

bool is_of(const Price& price, CapacityClass capacity) {
  return price.capacity ? *price.capacity == capacity : capacity != CapacityClass::kSpot;
}

// What goes before what; the greatest one is the price.
struct Precedence {
  bool names_node = false;
  bool names_class = false;
  bool names_some_type = false;
  bool names_type = false;  // and not its family
  Instant begin;
  std::uint32_t id = 0;

  friend auto operator<=>(const Precedence&, const Precedence&) = default;
};

Precedence precedence_of(const PriceEntry& entry, const TypeNames& gpu) {
  const bool is_given_for_class = entry.price.capacity.has_value() && entry.derived_from == 0;
  const std::string& type = entry.price.gpu_type;
  return {!entry.price.node.empty(), is_given_for_class, !type.empty(),
          type != gpu.family,        entry.begin,        entry.id};
}

// The GPU whose price is asked for.
struct Asked {
  TypeNames gpu;
  CapacityClass capacity;
  std::string_view node;
};

// Returns whether the price is of such a GPU, whenever it counts.
bool is_of(const Price& price, const Asked& asked) {
  return is_of(price, asked.capacity) && is_of(price, asked.gpu) &&
         (price.node.empty() || matches_pattern(price.node, asked.node));
}

const PriceEntry* price_at(const std::vector<PriceEntry>& entries, const Asked& asked, Instant at) {
  const PriceEntry* best = nullptr;
  for (const PriceEntry& entry : entries) {
    if (!is_in_force(entry, at) || !is_of(entry.price, asked)) continue;
    if (best == nullptr || precedence_of(*best, asked.gpu) < precedence_of(entry, asked.gpu)) {
      best = &entry;
    }
  }
  return best;
}

}  // namespace

bool has_ended(const PriceEntry& entry, base::Instant at) {
  return end_of(entry) <= std::max(entry.begin, whole_milliseconds_of(at));
}

void PriceBook::follow(const Billing& billing, base::Instant at) {
  const Instant now = whole_milliseconds_of(at);
  const auto is_listed = [](const std::vector<Price>& list, const Price& price) {
    return std::ranges::find(list, price) != list.end();
  };
  for (const PriceEntry& entry : entries) {
    const bool is_configured = entry.by.empty() && entry.derived_from == 0;
    if (is_configured && !is_listed(billing.prices, entry.price)) end_price(*this, entry.id, now);
  }
  if (billing.spot_discount_percent != spot_discount_percent) {
    spot_discount_percent = billing.spot_discount_percent;
    derive_anew(*this, now);
  }
  for (const Price& price : billing.prices) {
    if (!is_listed(listed, price)) fill(*this, price, {now, kEver});
  }
  listed = billing.prices;
}

void PriceBook::set(const Price& price, std::string by, base::Instant at) {
  const InForce time = {whole_milliseconds_of(std::max(price.from, at)), until_of(price)};
  if (time.begin >= time.end) return;
  clear(*this, price, time);
  append(*this, price, by, time);
}

bool PriceBook::withdraw(std::uint32_t id, base::Instant at) {
  const PriceEntry* const found = find(id);
  if (found == nullptr || has_ended(*found, at)) return false;
  const PriceEntry old = *found;
  const Instant now = whole_milliseconds_of(at);
  end_price(*this, id, now);
  if (old.by.empty() || old.derived_from != 0) return true;
  for (const Price& price : listed) {
    if (is_of_the_same(price, old.price)) {
      fill(*this, price, {std::max(old.begin, now), end_of(old)});
    }
  }
  return true;
}

const PriceEntry* PriceBook::find(std::uint32_t id) const {
  return id == 0 || id > entries.size() ? nullptr : &entries[id - 1];
}

const PriceEntry* PriceBook::at(std::string_view gpu_type, CapacityClass capacity,
                                std::string_view node, base::Instant at) const {
  return price_at(entries, {names_of(gpu_type), capacity, node}, whole_milliseconds_of(at));
}

std::vector<PriceSpan> PriceBook::over(std::string_view gpu_type, CapacityClass capacity,
                                       std::string_view node, base::Instant from,
                                       base::Instant to) const {
  const Asked asked = {names_of(gpu_type), capacity, node};
  const Instant begin = whole_milliseconds_of(from);
  const Instant end = whole_milliseconds_of(to);
  if (begin >= end) return {};
  const auto is_within = [&](Instant at) { return begin < at && at < end; };
  std::vector<Instant> cuts;
  for (const PriceEntry& entry : entries) {
    // Nearly always nothing begins or ends, and no name is compared.
    if (!is_within(entry.begin) && !is_within(end_of(entry))) continue;
    if (!is_of(entry.price, asked)) continue;
    for (const Instant cut : {entry.begin, end_of(entry)}) {
      if (is_within(cut)) cuts.push_back(cut);
    }
  }
  std::ranges::sort(cuts);
  std::vector<PriceSpan> spans = {{begin, end, price_at(entries, asked, begin)}};
  for (const Instant cut : cuts) {
    const PriceEntry* const entry = price_at(entries, asked, cut);
    if (spans.back().entry == entry) continue;
    spans.back().to = cut;
    spans.push_back({cut, end, entry});
  }
  return spans;
}

const std::vector<Price>& default_prices() {
  static const std::vector<Price> prices = [] {
    constexpr std::pair<std::string_view, std::int64_t> kPerHour[] = {
        {"A100", 4'100'000}, {"H100", 5'500'000}, {"L40S", 2'200'000},
        {"A10G", 1'100'000}, {"T4", 526'000},     {"V100", 3'000'000}};
    std::vector<Price> list;
    for (const auto& [type, micros] : kPerHour) {
      Price price;
      price.gpu_type = type;
      price.per_hour = base::MicroUsd(micros);
      list.push_back(std::move(price));
    }
    return list;
  }();
  return prices;
}

}  // namespace gpu_platform::model
