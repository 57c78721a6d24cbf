#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accounting/exact_cost.h"
#include "accounting/numbering.h"
#include "accounting/usage_query.h"
#include "base/units.h"
#include "model/ledger.h"
#include "model/price.h"

// Adds up lines of the ledger. All sums are exact, whatever the order of the lines and wherever a
// span is cut: nothing is rounded here.

namespace gpu_platform::accounting {

// Time of GPUs, in base::GpuShare × milliseconds, with what it costs by the list.
struct GpuTime {
  __int128 time = 0;
  __int128 unpriced = 0;  // of `time`: there was no price, so that its cost is not known
  ExactCost list;

  GpuTime& operator+=(const GpuTime& other);
  friend bool operator==(const GpuTime&, const GpuTime&) = default;
};

// The cores and memory of jobs without GPUs while they were used.
struct CpuTime {
  __int128 core_ms = 0;
  __int128 mib_ms = 0;
  ExactCost list;

  CpuTime& operator+=(const CpuTime& other);
  friend bool operator==(const CpuTime&, const CpuTime&) = default;
};

struct UsageFigures {
  // By model::NotBilled: used[kBilled] is what was used and is billed.
  std::array<GpuTime, model::kNotBilledReasons> used;
  GpuTime starting;  // it is the platform's, as is the next
  GpuTime cleaning;
  std::vector<GpuTime> rest;  // by model::RestKind; empty: none
  ExactCost discount;         // on used[kBilled]
  CpuTime cpu;                // that is billed
  CpuTime cpu_not_billed;
  ExactCost cpu_discount;  // on `cpu`
  ExactCost corrections;
  std::uint64_t lines = 0;  // that have a part in the figures

  const GpuTime& billed() const { return used[0]; }
  // What was used and is not billed, for all reasons.
  GpuTime not_billed() const;
  GpuTime rest_of(model::RestKind kind) const;
  // The time of GPUs in all, used or not.
  GpuTime all() const;
  // What is charged for GPUs, for jobs without GPUs, and in all, with corrections.
  ExactCost gpu_bill() const { return billed().list - discount; }
  ExactCost cpu_bill() const { return cpu.list - cpu_discount; }
  ExactCost bill() const { return gpu_bill() + cpu_bill() + corrections; }

  UsageFigures& operator+=(const UsageFigures& other);
  friend bool operator==(const UsageFigures&, const UsageFigures&) = default;
};

// A span of time, without its end.
struct Span {
  model::Millis from = 0;
  model::Millis to = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

// Returns whether the line has a moment in the span; a correction counts at its moment alone.
bool is_in(const model::LedgerLine& line, Span span);
// Adds what the line has within the span.
void add_cut(const model::LedgerLine& line, Span span, const model::PriceBook& prices,
             UsageFigures& to);
// Returns the same of the whole line: what a list of lines shows.
UsageFigures figures_of(const model::LedgerLine& line, const model::PriceBook& prices);

struct UsageGroup {
  // As UsageQuery::by, in words: "vision", "1234" of a job, "on-demand". Empty where the line has
  // none: a job without that label, a GPU that no attempt held.
  std::vector<std::string> keys;
  model::Millis step = 0;  // its begin, and no earlier than the query's
  std::string job_name;    // if it is by job: of the first line that has one
  UsageFigures figures;
};

// Adds up the lines that a query wants. Memory: about 1 KiB for each group. Time: 1,000,000 lines
// in less than a second; a line takes as many steps as it crosses.
class UsageSum {
 public:
  // `query` has passed check(). The prices must outlive the sum.
  UsageSum(UsageQuery query, const model::PriceBook& prices);

  void add(const model::LedgerLine& line);

  // False: there were more groups than max_groups.
  bool is_complete() const { return is_complete_; }
  // By keys, then by step. Jobs are in the order of their numbers.
  std::vector<UsageGroup> groups() const;
  UsageFigures total() const;

 private:
  UsageFigures* group_of(const model::LedgerLine& line, model::Millis step);
  std::uint32_t key_of(const UsageBy& by, const model::LedgerLine& line);

  UsageQuery query_;
  const model::PriceBook& prices_;
  std::vector<model::Millis> months_;  // the begins of months within the query, for kMonth
  Numbering texts_;                    // the values of keys
  Numbering keys_;                     // a group's numbers, as bytes
  std::vector<UsageGroup> groups_;     // by number of keys_; `keys` are put in at the end
  bool is_complete_ = true;
};

}  // namespace gpu_platform::accounting
