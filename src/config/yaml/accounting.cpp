#include "config/yaml/accounting.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "base/utc.h"
#include "model/gpu_catalogue.h"
#include "model/instance_catalogue.h"
#include "model/team.h"

namespace gpu_platform::config {

namespace {

using base::MicroUsd;

constexpr std::array<std::string_view, 9> kPriceKeys = {"gpu_type",     "instance", "capacity",
                                                        "node",         "from",     "until",
                                                        "per_gpu_hour", "per_hour", "currency"};
constexpr std::array<std::string_view, 2> kDiscountKeys = {"team", "percent"};
constexpr std::array<std::string_view, 7> kOwnedKeys = {"gpu_type",
                                                        "node",
                                                        "purchase",
                                                        "lifetime_months",
                                                        "power_watts",
                                                        "electricity_per_kwh",
                                                        "share_of_room_per_month"};

constexpr MicroUsd kMaxAmount{1'000'000'000'000};
constexpr std::uint64_t kMaxMonths = 600;
constexpr std::uint64_t kMaxOwnedWatts = 100'000;

// A twelfth of 365.25 days, twice.
constexpr std::int64_t kHalfHoursOfMonth = 1461;

// To the nearest millionth.
MicroUsd divided(MicroUsd amount, std::uint32_t count) {
  return MicroUsd((amount.value() + count / 2) / count);
}

base::Instant end_of_price(const model::Price& price) {
  return price.until.is_set() ? price.until
                              : base::Instant(std::numeric_limits<std::int64_t>::max());
}

bool is_of_the_same(const model::Price& a, const model::Price& b) {
  return a.gpu_type == b.gpu_type && a.capacity == b.capacity && a.node == b.node;
}

bool count_at_once(const model::Price& a, const model::Price& b) {
  return is_of_the_same(a, b) && a.from < end_of_price(b) && b.from < end_of_price(a);
}

// "2027-01-01", its begin in UTC, or RFC 3339.
std::optional<base::Instant> time_of(std::string_view text) {
  constexpr std::size_t kDateSize = 10;
  if (text.size() == kDateSize) return base::parse_rfc3339(fmt::format("{}T00:00:00Z", text));
  return base::parse_rfc3339(text);
}

// In hundredths of a percent: "12.5" is 1250.
std::optional<std::uint32_t> basis_points_of(std::string_view text) {
  constexpr std::int64_t kMicrosOfOne = 10'000;
  constexpr std::int64_t kMost = 10'000;
  const auto percent = base::parse_money(text);
  if (!percent || percent->value() % kMicrosOfOne != 0) return std::nullopt;
  const std::int64_t points = percent->value() / kMicrosOfOne;
  if (points > kMost) return std::nullopt;
  return static_cast<std::uint32_t>(points);
}

bool is_known_type(const std::string& type) {
  return type.empty() || model::canonical_gpu_type(type).has_value();
}

}  // namespace

bool AccountingReader::reads(std::string_view path) {
  return path == "accounting.prices" || path == "accounting.discounts" ||
         path == "accounting.owned";
}

std::optional<MicroUsd> AccountingReader::money(const YAML::Node& node, std::string_view what,
                                                MicroUsd most) {
  if (!node.IsScalar()) {
    report(node, fmt::format("'{}' in '{}' must be an amount, not {}", what, key_, kind_of(node)));
    return std::nullopt;
  }
  const auto amount = base::parse_money(node.Scalar());
  if (!amount) {
    report(node, fmt::format("'{}' in '{}': {}", what, key_, amount.error().message));
    return std::nullopt;
  }
  if (*amount > most) {
    report(node, fmt::format("'{}' in '{}' must be at most {}", what, key_, base::written(most)));
    return std::nullopt;
  }
  return *amount;
}

base::Instant AccountingReader::time(const YAML::Node& node, std::string_view what) {
  const auto at = node.IsScalar() ? time_of(node.Scalar()) : std::nullopt;
  if (!at) {
    report(node, fmt::format("'{}' in '{}' must be a day or a time, such as 2027-01-01 or "
                             "2027-01-01T12:00:00Z",
                             what, key_));
  }
  return at.value_or(base::Instant());
}

AccountingReader::Place AccountingReader::place_of(const YAML::Node& map, std::size_t index) const {
  const YAML::Mark mark = map.Mark();
  return {fmt::format("{}[{}]", key_, index), file_, mark.line + 1, mark.column + 1};
}

bool AccountingReader::read_which(std::string_view key, const YAML::Node& value,
                                  model::Price& price) {
  if (key == "gpu_type") {
    // A type that is not in the catalogue is named as the driver names its model.
    const std::string type = word(value, key).value_or("");
    price.gpu_type = model::canonical_gpu_type(type).value_or(type);
  } else if (key == "node") {
    price.node = word(value, key).value_or("");
  } else {
    return false;
  }
  return true;
}

void AccountingReader::check_time(const YAML::Node& map, const model::Price& price) {
  if (price.until.is_set() && price.until <= price.from) {
    report(map["until"], fmt::format("'until' in '{}' must be after 'from'", key_));
  }
}

void AccountingReader::read_price(const YAML::Node& map, std::size_t index) {
  ReadPrice read{{}, {}, place_of(map, index)};
  model::Price& price = read.price;
  const model::InstanceType* instance = nullptr;
  MicroUsd of_instance;
  const std::size_t problems_before = problems_.size();
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (read_which(key, value, price)) return;
    if (key == "instance") {
      const std::string wanted = word(value, key).value_or("");
      instance = model::find_instance(wanted);
      if (instance == nullptr) {
        report(value, fmt::format("no instance '{}' is known: 'gpu-platform prices instances' "
                                  "lists them",
                                  printable(wanted)));
      }
    } else if (key == "capacity") {
      price.capacity =
          value.IsScalar() ? model::parse_capacity_class(value.Scalar()) : std::nullopt;
      if (!price.capacity) {
        report(value, fmt::format("'capacity' in '{}' must be on_demand, spot or reserved", key_));
      }
    } else if (key == "from") {
      price.from = time(value, key);
    } else if (key == "until") {
      price.until = time(value, key);
    } else if (key == "per_gpu_hour") {
      price.per_hour = money(value, key, model::kMaxPricePerHour).value_or(MicroUsd());
    } else if (key == "per_hour") {
      of_instance = money(value, key, model::kMaxPricePerHour).value_or(MicroUsd());
    } else if (key == "currency") {
      read.currency = word(value, key).value_or("");
    } else {
      report_unknown(name, kPriceKeys);
    }
  });
  // A key that is misspelt is missing, too: the first says it.
  const bool is_well_spelt = problems_.size() == problems_before;
  if (map["instance"]) {
    if (map["gpu_type"] || map["per_gpu_hour"] || !map["per_hour"]) {
      report(map, fmt::format("an entry of '{}' with an instance needs 'per_hour', and neither "
                              "'gpu_type' nor 'per_gpu_hour'",
                              key_));
    } else if (instance != nullptr) {
      price.gpu_type = instance->gpu_type;
      price.per_hour = divided(of_instance, instance->gpus);
    }
  } else if (is_well_spelt &&
             (!map["per_gpu_hour"] || map["per_hour"] || !(map["gpu_type"] || map["node"]))) {
    report(map, fmt::format("an entry of '{}' needs 'gpu_type' or 'node', and 'per_gpu_hour'; or "
                            "'instance' and 'per_hour'",
                            key_));
  }
  check_time(map, price);
  prices_.push_back(std::move(read));
}

void AccountingReader::read_discount(const YAML::Node& map, std::size_t index) {
  ReadDiscount read{{}, place_of(map, index)};
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (key == "team") {
      read.discount.team = word(value, key).value_or("");
    } else if (key == "percent") {
      const auto points = value.IsScalar() ? basis_points_of(value.Scalar()) : std::nullopt;
      if (!points) {
        report(value,
               fmt::format("'percent' in '{}' must be 0 to 100, with at most two decimals", key_));
      }
      read.discount.basis_points = points.value_or(0);
    } else {
      report_unknown(name, kDiscountKeys);
    }
  });
  for (const char* const needed : {"team", "percent"}) {
    if (!map[needed]) report(map, fmt::format("an entry of '{}' needs '{}'", key_, needed));
  }
  discounts_.push_back(std::move(read));
}

void AccountingReader::read_owned(const YAML::Node& map, std::size_t index) {
  Owned owned;
  owned.place = place_of(map, index);
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (read_which(key, value, owned.price)) return;
    if (key == "purchase") {
      owned.purchase = money(value, key, kMaxAmount).value_or(MicroUsd());
    } else if (key == "lifetime_months") {
      owned.lifetime_months = count(value, key, 1).value_or(1);
      if (owned.lifetime_months > kMaxMonths) {
        report(value, fmt::format("'{}' in '{}' must be at most {}", key, key_, kMaxMonths));
      }
    } else if (key == "power_watts") {
      owned.power_watts = count(value, key, 0).value_or(0);
      if (owned.power_watts > kMaxOwnedWatts) {
        report(value, fmt::format("'{}' in '{}' must be at most {}", key, key_, kMaxOwnedWatts));
      }
    } else if (key == "electricity_per_kwh") {
      owned.per_kwh = money(value, key, MicroUsd(1'000'000'000));
    } else if (key == "share_of_room_per_month") {
      owned.room_per_month = money(value, key, kMaxAmount).value_or(MicroUsd());
    } else {
      report_unknown(name, kOwnedKeys);
    }
  });
  if (!map["gpu_type"] && !map["node"]) {
    report(map, fmt::format("an entry of '{}' needs 'gpu_type' or 'node'", key_));
  }
  for (const char* const needed : {"purchase", "lifetime_months"}) {
    if (!map[needed]) report(map, fmt::format("an entry of '{}' needs '{}'", key_, needed));
  }
  owned_.push_back(std::move(owned));
}

void AccountingReader::read(const std::string& path, const YAML::Node& list) {
  key_ = path;
  if (path == "accounting.prices") has_prices_ = !list.IsNull();
  if (list.IsNull()) return;
  if (!list.IsSequence()) {
    return report(list, fmt::format("'{}' must be a list, not {}", key_, kind_of(list)));
  }
  std::size_t index = 0;
  for (const auto& map : list) {
    if (!map.IsMap()) {
      report(map, fmt::format("an entry of '{}' must be names with their values, not {}", key_,
                              kind_of(map)));
    } else if (path == "accounting.prices") {
      read_price(map, index);
    } else if (path == "accounting.discounts") {
      read_discount(map, index);
    } else {
      read_owned(map, index);
    }
    ++index;
  }
}

// Depreciation, electricity and room over one hour, rounded once, to the nearest millionth.
MicroUsd AccountingReader::per_hour(const Owned& owned, MicroUsd per_kwh) {
  constexpr __int128 kWattsOfKilowatt = 1000;
  const __int128 months = owned.lifetime_months;
  const __int128 units = kHalfHoursOfMonth * months * kWattsOfKilowatt;
  const __int128 total = 2 * kWattsOfKilowatt * owned.purchase.value() +
                         kHalfHoursOfMonth * months * owned.power_watts * per_kwh.value() +
                         2 * months * kWattsOfKilowatt * owned.room_per_month.value();
  return MicroUsd(static_cast<std::int64_t>((total + units / 2) / units));
}

void AccountingReader::report_at(const Place& place, std::string message) {
  problems_.push_back(
      {place.line, place.column, place.key, fmt::format("{}: {}", place.key, message), place.file});
}

void AccountingReader::check_overlaps() {
  for (std::size_t i = 0; i < prices_.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (!count_at_once(prices_[before].price, prices_[i].price)) continue;
      report_at(prices_[i].place,
                fmt::format("counts at the same time as that of line {}: two prices of the same "
                            "type, capacity and node must follow each other",
                            prices_[before].place.line));
      break;
    }
  }
}

void AccountingReader::check_discounts(const model::Organisation& organisation) {
  std::vector<std::string_view> known;
  for (const model::Team& team : organisation.teams) known.push_back(team.name);
  for (std::size_t i = 0; i < discounts_.size(); ++i) {
    const std::string& team = discounts_[i].discount.team;
    for (std::size_t before = 0; before < i; ++before) {
      if (discounts_[before].discount.team != team) continue;
      report_at(discounts_[i].place, fmt::format("team '{}' has a discount already", team));
      break;
    }
    // Without teams, --team is a label.
    if (known.empty() || model::find_team(organisation, team) != nullptr) continue;
    report_at(discounts_[i].place,
              fmt::format("no team '{}'{}", team, base::did_you_mean(team, known)));
  }
}

void AccountingReader::note_types(Configuration& configuration) const {
  for (const ReadPrice& each : prices_) {
    if (is_known_type(each.price.gpu_type)) continue;
    configuration.notes.push_back(
        {each.place.line, each.place.column, each.place.key,
         fmt::format("{}: '{}' is not in the catalogue of GPUs: the price is of GPUs whose driver "
                     "calls them so",
                     each.place.key, each.price.gpu_type),
         each.place.file});
  }
}

// A gap may be meant. Where it is not, GPUs are unpriced for a while, and nothing else tells
// before.
void AccountingReader::note_gaps(Configuration& configuration) const {
  for (const ReadPrice& each : prices_) {
    if (!each.price.until.is_set()) continue;
    const ReadPrice* next = nullptr;
    for (const ReadPrice& other : prices_) {
      if (!is_of_the_same(each.price, other.price) || other.price.from < each.price.until) continue;
      if (next == nullptr || other.price.from < next->price.from) next = &other;
    }
    if (next == nullptr || next->price.from == each.price.until) continue;
    const Place& place = next->place;
    configuration.notes.push_back(
        {place.line, place.column, place.key,
         fmt::format("{}: between {}, where the price of line {} ends, and {}, use that no other "
                     "price is of has no price",
                     place.key, base::utc(each.price.until), each.place.line,
                     base::utc(next->price.from)),
         place.file});
  }
}

void AccountingReader::finish(Configuration& configuration) {
  for (const ReadPrice& each : prices_) {
    if (each.currency.empty() || each.currency == configuration.currency.text) continue;
    report_at(each.place, fmt::format("is in {}, and the site has one currency: {} "
                                      "(accounting.currency)",
                                      each.currency, configuration.currency.text));
  }
  const MicroUsd site_per_kwh = configuration.billing.energy.per_kwh;
  for (Owned& owned : owned_) {
    owned.price.per_hour = per_hour(owned, owned.per_kwh.value_or(site_per_kwh));
    if (owned.price.per_hour > model::kMaxPricePerHour) {
      report_at(owned.place, fmt::format("the price that follows is more than {} an hour",
                                         base::written(model::kMaxPricePerHour)));
    }
    prices_.push_back({owned.price, {}, owned.place});
  }
  check_overlaps();
  check_discounts(*configuration.policy.organisation);
  note_types(configuration);
  note_gaps(configuration);

  model::Billing& billing = configuration.billing;
  billing.currency = configuration.currency.text;
  billing.preempted_is_free = configuration.preempted_runs == PreemptedRuns::kFree;
  if (has_prices_) billing.prices.clear();
  // What the site says of its own hardware goes before the prices of sites that say nothing.
  for (const ReadPrice& each : prices_) {
    std::erase_if(billing.prices,
                  [&](const model::Price& usual) { return count_at_once(usual, each.price); });
  }
  for (const ReadPrice& each : prices_) {
    billing.prices.push_back(each.price);
    const Place& place = each.place;
    configuration.places.push_back({place.key, place.file, place.line, place.column, {}});
  }
  for (const ReadDiscount& each : discounts_) billing.discounts.push_back(each.discount);
  configuration.policy.billing = billing;
}

}  // namespace gpu_platform::config
