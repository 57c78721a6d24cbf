#include "controller/ledger_maker.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "controller/state.h"

namespace gpu_platform::controller {

namespace {

// A reader of a short time reads whole batches, and a batch repeats what its lines have in common.
constexpr std::size_t kLinesOfBatch = 256;

// Each step is synced. After a kill, the work of one is done again.
constexpr std::size_t kLinesOfStep = 16'384;
constexpr std::size_t kEventsOfStep = 65'536;

}  // namespace

bool LedgerMaker::may_begin_with(const State& snapshot) const {
  if (journal_.first_seq().value > 1) return true;
  const bool lacks_lines = gap_.is_open() && snapshot.seq > gap_.after;
  return snapshot.accounts_since.is_set() && !lacks_lines;
}

base::Status LedgerMaker::take(model::EventSeq seq, std::vector<model::LedgerLine> lines) {
  if (seq <= gap_.after || seq > gap_.last || has_no_room_) return {};
  if (!first_.valid()) first_ = seq;
  upto_ = seq;
  if (!lines.empty()) {
    lines_ += lines.size();
    const bool is_full =
        batches_.empty() || batches_.back().lines.size() + lines.size() > kLinesOfBatch;
    if (is_full) batches_.push_back({seq, {}});
    std::ranges::move(lines, std::back_inserter(batches_.back().lines));
  }
  if (++events_ < kEventsOfStep && lines_ < kLinesOfStep) return {};
  return put();
}

base::Result<std::string> LedgerMaker::finish() {
  if (!gap_.is_open()) return std::string();
  // What was before the snapshot that the replay began with is not known any more.
  const bool is_whole = first_.value == gap_.after.value + 1;
  if (!has_no_room_) {
    upto_ = gap_.last;
    TRY(put());
  }
  if (has_no_room_) {
    return fmt::format(
        "the disk has no room for all lines of the ledger: those of events {} to {} are made at "
        "the next start",
        journal_.ledger_gap().after.value + 1, gap_.last.value);
  }
  if (is_whole) return std::string();
  return fmt::format(
      "the ledger has no lines of events {} to {}: the journal does not have what "
      "was before them",
      gap_.after.value + 1, first_.valid() ? first_.value - 1 : gap_.last.value);
}

base::Status LedgerMaker::put() {
  if (upto_ == journal_.ledger_gap().after) return {};
  const base::Status status = journal_.put_ledger(batches_, upto_);
  has_no_room_ = !status && status.error().code == base::ErrorCode::kResourceExhausted;
  if (!has_no_room_) TRY(status);
  batches_.clear();
  lines_ = 0;
  events_ = 0;
  return {};
}

}  // namespace gpu_platform::controller
