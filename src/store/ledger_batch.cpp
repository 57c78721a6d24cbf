#include "store/ledger_batch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::store {

namespace {

// A correction has a moment alone.
LedgerSpan span_of_line(const model::LedgerLine& line) {
  return {line.from, std::max(line.from, line.to)};
}

void widen(LedgerSpan& span, const LedgerSpan& by) {
  span = {std::min(span.from, by.from), std::max(span.to, by.to)};
}

}  // namespace

LedgerSpan span_of(std::span<const model::LedgerLine> lines) {
  CHECK(!lines.empty());
  LedgerSpan span = span_of_line(lines.front());
  for (const model::LedgerLine& line : lines.subspan(1)) widen(span, span_of_line(line));
  return span;
}

std::map<std::string_view, LedgerSpan> users_of(std::span<const model::LedgerLine> lines) {
  std::map<std::string_view, LedgerSpan> users;
  auto last = users.end();  // the lines of an attempt follow each other
  for (const model::LedgerLine& line : lines) {
    if (line.kind == model::LedgerKind::kRest || line.user.empty()) continue;
    const LedgerSpan span = span_of_line(line);
    if (last == users.end() || last->first != line.user) {
      last = users.try_emplace(line.user, span).first;
    }
    widen(last->second, span);
  }
  return users;
}

base::Status check_fills(const LedgerGap& gap, std::span<const LedgerBatch> batches,
                         model::EventSeq upto) {
  model::EventSeq after = gap.after;
  bool follows = upto > gap.after && upto <= gap.last;
  for (const LedgerBatch& batch : batches) {
    follows = follows && batch.first > after && batch.first <= upto && !batch.lines.empty();
    after = batch.first;
  }
  if (follows) return {};
  return base::fail(base::ErrorCode::kInvalidArgument,
                    fmt::format("lines up to event {} do not fill the gap of the ledger from event "
                                "{} to {}",
                                upto.value, gap.after.value + 1, gap.last.value));
}

}  // namespace gpu_platform::store
