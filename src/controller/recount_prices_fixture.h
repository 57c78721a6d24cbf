#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/capacity.h"
#include "model/ledger.h"
#include "model/price.h"

// Prices by another way than model::PriceBook: a line of time for each type, class and node that a
// price may name, on which the later price covers the former one. Nothing has an id, and nothing
// that was is ever kept.

namespace gpu_platform::controller::testing {

// A span of time at one price; none: there was none.
struct RecountRate {
  model::Millis from = 0;
  model::Millis to = 0;
  std::optional<std::int64_t> per_hour;
};

class RecountPrices {
 public:
  struct Time {
    model::Millis from = 0;
    model::Millis to = 0;
  };

  // What the list had from then on gives way to what it has now.
  void follow(const model::Billing& billing, model::Millis at) {
    spot_percent_ = billing.spot_discount_percent;
    listed_ = billing.prices;
    for (auto& [scope, pieces] : pieces_) {
      for (Piece& piece : pieces) {
        if (piece.is_listed) piece.time.to = std::min(piece.time.to, std::max(at, piece.time.from));
      }
      drop_empty(pieces);
    }
    for (const model::Price& price : listed_) fill(price, {at, kForEver});
  }

  void set(const model::Price& price, model::Millis at) {
    const Time time = common(time_of(price), {at, kForEver});
    if (time.from >= time.to) return;
    cut(pieces_[scope_of(price)], time);
    put(price, time, false);
  }

  // A price that was set at run time and is in force in that time; the list counts there again.
  void withdraw(const model::PriceEntry& entry, model::Millis at) {
    const Time entrys = {model::millis_of(entry.begin),
                         entry.end.is_set() ? model::millis_of(entry.end) : kForEver};
    const Time time = common(entrys, {at, kForEver});
    cut(pieces_[scope_of(entry.price)], time);
    for (const model::Price& price : listed_) {
      if (scope_of(price) == scope_of(entry.price)) fill(price, time);
    }
  }

  std::vector<RecountRate> over(const std::string& type, model::CapacityClass capacity,
                                const std::string& node, Time time) const {
    const std::vector<Candidate> candidates = candidates_of(type, capacity, node);
    std::vector<model::Millis> cuts = {time.from, time.to};
    for (const Candidate& candidate : candidates) {
      for (const Piece& piece : *candidate.pieces) {
        for (const model::Millis at : {piece.time.from, piece.time.to}) {
          if (time.from < at && at < time.to) cuts.push_back(at);
        }
      }
    }
    std::ranges::sort(cuts);
    std::vector<RecountRate> rates;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] == cuts[i + 1]) continue;
      rates.push_back({cuts[i], cuts[i + 1], rate_at(candidates, cuts[i])});
    }
    return rates;
  }

 private:
  static constexpr model::Millis kForEver = std::numeric_limits<model::Millis>::max();

  struct Piece {
    Time time;
    std::int64_t per_hour = 0;
    bool is_listed = false;
  };
  using Scope = std::tuple<std::string, int, std::string>;  // type, class or -1, node

  static Scope scope_of(const model::Price& price) {
    return {price.gpu_type, price.capacity ? static_cast<int>(*price.capacity) : -1, price.node};
  }
  static Time time_of(const model::Price& price) {
    return {price.from.is_set() ? model::millis_of(price.from) : 0,
            price.until.is_set() ? model::millis_of(price.until) : kForEver};
  }
  static Time common(Time a, Time b) { return {std::max(a.from, b.from), std::min(a.to, b.to)}; }
  static void drop_empty(std::vector<Piece>& pieces) {
    std::erase_if(pieces, [](const Piece& piece) { return piece.time.from >= piece.time.to; });
  }

  static void cut(std::vector<Piece>& pieces, Time time) {
    std::vector<Piece> left;
    for (const Piece& piece : pieces) {
      Piece before = piece;
      before.time.to = std::min(before.time.to, time.from);
      Piece after = piece;
      after.time.from = std::max(after.time.from, time.to);
      left.insert(left.end(), {before, after});
    }
    drop_empty(left);
    pieces = std::move(left);
  }

  void put(const model::Price& price, Time time, bool is_listed) {
    pieces_[scope_of(price)].push_back({time, price.per_hour.value(), is_listed});
  }

  // Where the scope has nothing else.
  void fill(const model::Price& price, Time time) {
    time = common(time, time_of(price));
    std::vector<Piece> gaps = {{time, price.per_hour.value(), true}};
    for (const Piece& there : pieces_[scope_of(price)]) cut(gaps, there.time);
    drop_empty(gaps);
    for (const Piece& gap : gaps) put(price, gap.time, true);
  }

  // What may be the price of a GPU. The greatest rank goes before others: that which names the
  // node, then the class, then a type, then the type itself and not its family.
  using Rank = std::tuple<bool, bool, bool, bool>;
  struct Candidate {
    Rank rank;
    const std::vector<Piece>* pieces = nullptr;
    bool is_for_spot = false;  // it follows from the price without a class
  };

  std::vector<Candidate> candidates_of(const std::string& type, model::CapacityClass capacity,
                                       const std::string& node) const {
    const std::string family = type.substr(0, type.find('-'));
    std::vector<Candidate> candidates;
    for (const auto& [scope, pieces] : pieces_) {
      const auto& [its_type, its_class, its_node] = scope;
      const bool is_of_type = its_type.empty() || its_type == type || its_type == family;
      const bool is_of_class = its_class == -1 || its_class == static_cast<int>(capacity);
      if (!is_of_type || !is_of_class || !(its_node.empty() || its_node == node)) continue;
      candidates.push_back(
          {{!its_node.empty(), its_class != -1, !its_type.empty(), its_type != family},
           &pieces,
           its_class == -1 && capacity == model::CapacityClass::kSpot});
    }
    std::ranges::sort(candidates, std::greater<>(), &Candidate::rank);
    return candidates;
  }

  std::optional<std::int64_t> rate_at(const std::vector<Candidate>& candidates,
                                      model::Millis at) const {
    for (const Candidate& candidate : candidates) {
      for (const Piece& piece : *candidate.pieces) {
        if (at < piece.time.from || at >= piece.time.to) continue;
        if (!candidate.is_for_spot) return piece.per_hour;
        return (piece.per_hour * (100 - spot_percent_) + 50) / 100;
      }
    }
    return std::nullopt;
  }

  std::map<Scope, std::vector<Piece>> pieces_;
  std::vector<model::Price> listed_;
  std::int64_t spot_percent_ = 0;
};

}  // namespace gpu_platform::controller::testing
