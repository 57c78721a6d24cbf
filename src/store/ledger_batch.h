#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/ledger.h"
#include "store/store.h"

// What every store finds out of a batch of the ledger's lines.

namespace gpu_platform::store {

// Batches that leave the ledger with one that comes, at most: what went out of time must not make a
// commit slow.
inline constexpr std::size_t kLedgerBatchesDropped = 2;

// From the earliest moment of some lines to their latest.
struct LedgerSpan {
  model::Millis from = 0;
  model::Millis to = 0;

  friend bool operator==(const LedgerSpan&, const LedgerSpan&) = default;
};
LedgerSpan span_of(std::span<const model::LedgerLine> lines);  // not empty

// The span of the lines of each user that a query by user finds. Views into the lines.
std::map<std::string_view, LedgerSpan> users_of(std::span<const model::LedgerLine> lines);

// kInvalidArgument when these batches do not fill the gap up to `upto`.
base::Status check_fills(const LedgerGap& gap, std::span<const LedgerBatch> batches,
                         model::EventSeq upto);

}  // namespace gpu_platform::store
