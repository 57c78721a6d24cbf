#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "accounting/exact_cost.h"
#include "accounting/usage_sum.h"
#include "base/month.h"
#include "model/ledger.h"
#include "model/price.h"

// What the present month will have cost at its end: what is booked, and for the days that are left
// the mean of the same weekday over the last four weeks. The same method is tried on past months,
// at the same time of the month, so that a reader knows how far to trust it. Days are those of UTC.

namespace gpu_platform::accounting {

inline constexpr int kMeanDays = 28;       // the whole days before today that means are of
inline constexpr int kLeastMeanDays = 14;  // with fewer there is no figure
inline constexpr int kMaxTrials = 6;       // months

// The method on a month that is over.
struct ForecastTrial {
  base::Month month;
  model::Millis at = 0;  // the time that it did not see beyond
  ExactCost said;
  ExactCost was;  // above 0

  // How far it was off, in percent of what it was.
  double error_percent() const;
  friend bool operator==(const ForecastTrial&, const ForecastTrial&) = default;
};

struct Forecast {
  base::Month month;
  ExactCost booked;                  // in the month, up to now, with corrections
  int days = 0;                      // of history before today; at most kMeanDays
  std::array<ExactCost, 7> means{};  // of a day's bill, from Monday on; only with `rest`
  // What the rest of the month will cost; absent: there are fewer than kLeastMeanDays.
  std::optional<ExactCost> rest;
  std::vector<ForecastTrial> trials;  // ascending

  // The mean error of the trials in percent; absent: there is no trial.
  std::optional<double> error_percent() const;
};

// Makes it of lines, stored and live ones. Cost: the days that a line crosses.
class ForecastSum {
 public:
  // The prices must outlive it.
  ForecastSum(model::Millis now, const model::PriceBook& prices);

  // The lines that it needs. The history begins with the first of them that is added, whatever its
  // kind.
  Span span() const { return {bounds_.front(), bounds_.back()}; }
  void add(const model::LedgerLine& line);
  Forecast forecast() const;

 private:
  struct Means {
    int days = 0;
    std::array<ExactCost, 7> by_weekday{};
  };

  // What was billed from one of bounds_ to another; `bills` is use_ or corrections_.
  ExactCost sum(const std::vector<ExactCost>& bills, Span span) const;
  ExactCost booked(Span span) const { return sum(use_, span) + sum(corrections_, span); }
  // The whole days of history before that one.
  int days_before(model::Millis day) const;
  Means means_at(model::Millis at) const;
  std::optional<ForecastTrial> trial(base::Month month, model::Millis at) const;

  const model::PriceBook& prices_;
  base::Month month_;
  std::vector<ForecastTrial> planned_;  // months and times alone
  std::vector<model::Millis> bounds_;   // ascending: days, the times of trials, now
  std::vector<ExactCost> use_;          // from bounds_[i] to the next
  std::vector<ExactCost> corrections_;  // the same; they are in no mean
  std::optional<model::Millis> begin_;  // of the history
};

}  // namespace gpu_platform::accounting
