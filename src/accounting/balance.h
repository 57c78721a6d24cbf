#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accounting/numbering.h"
#include "accounting/usage_sum.h"
#include "model/ledger.h"
#include "model/price.h"

// Whether the books of a span balance. For each GPU and each moment, the parts that jobs hold and
// the rest are one whole GPU; and what is billed, what is discounted, what is not billed and what
// is kept for each reason cost together what the fleet costs.

namespace gpu_platform::accounting {

inline constexpr std::size_t kMaxDifferences = 100;

struct BalanceReport {
  Span span;
  std::uint64_t gpus = 0;  // that have lines in the span
  __int128 wall = 0;       // share × ms: of each GPU while it has lines
  ExactCost fleet;         // what they cost in that time, by the list
  UsageFigures figures;    // of the GPUs' lines, and of them alone
  // What does not balance, in sentences, by GPU and time; at most kMaxDifferences.
  std::vector<std::string> differences;
  std::uint64_t more_differences = 0;  // that are not named
  // Times at which a GPU that has lines before and after has none: it was taken out, or lines are
  // missing.
  std::vector<std::string> absences;

  bool balances() const { return differences.empty(); }
  friend bool operator==(const BalanceReport&, const BalanceReport&) = default;
};

// Memory: 48 bytes for each line of a GPU.
class Balance {
 public:
  // The prices must outlive it.
  Balance(Span span, const model::PriceBook& prices);

  void add(const model::LedgerLine& line);
  BalanceReport report() const;

 private:
  struct Edge {
    std::uint32_t gpu = 0;
    model::Millis at = 0;
    std::int64_t share = 0;  // that begins here; negative: that ends
  };

  Span span_;
  const model::PriceBook& prices_;
  Numbering gpus_;  // by UUID
  std::vector<Edge> edges_;
  ExactCost fleet_;
  UsageFigures figures_;
  std::vector<std::string> differences_;  // of single lines
  std::uint64_t more_differences_ = 0;
};

}  // namespace gpu_platform::accounting
