#pragma once

#include <cstddef>
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

inline constexpr std::size_t kMaxNamed = 100;

// Sentences about the books, of which the first kMaxNamed are kept.
struct Findings {
  std::vector<std::string> named;
  std::uint64_t more = 0;  // that are not named

  bool empty() const { return named.empty(); }
  friend bool operator==(const Findings&, const Findings&) = default;
};

struct BalanceReport {
  Span span;
  std::uint64_t gpus = 0;  // that have lines in the span
  __int128 wall = 0;       // share × ms: all of each GPU while it has lines
  ExactCost fleet;         // what they cost in that time, by the list
  UsageFigures figures;    // of the lines of GPUs, and of them alone
  Findings differences;    // what does not balance: first of single lines, then by GPU and time
  // Times at which a GPU that has lines before and after has none: it was away, or lines are
  // missing.
  Findings absences;

  bool balances() const { return differences.empty(); }
  friend bool operator==(const BalanceReport&, const BalanceReport&) = default;
};

// Takes the lines of the ledger and, if the span reaches into the present, live ones. Memory: 32
// bytes for each line of a GPU that does not go on where the one before it ended.
class Balance {
 public:
  // The prices must outlive it.
  Balance(Span span, const model::PriceBook& prices);

  void add(const model::LedgerLine& line);
  BalanceReport report() const;

 private:
  struct Edge {
    model::Millis at = 0;
    std::int32_t share = 0;  // that begins here; negative: that ends
    std::uint32_t gpu = 0;
  };

  void add_edges(std::uint32_t gpu, Span span, std::int32_t share);

  Span span_;
  const model::PriceBook& prices_;
  // By UUID and node: a GPU that was moved is on its former node, too, until that forgets it.
  Numbering gpus_;
  std::string key_;  // of a line, here for its memory alone
  std::vector<Edge> edges_;
  std::vector<std::size_t> last_ends_;  // by GPU: where edges_ has the end of its latest line
  ExactCost fleet_;
  UsageFigures figures_;
  Findings differences_;  // of single lines
};

}  // namespace gpu_platform::accounting
