#include "store/sqlite/ledger_check.h"

#include <utility>

#include <fmt/format.h>

#include "store/sqlite/ledger_table.h"

namespace gpu_platform::store {

namespace {

// More say nothing new.
constexpr std::size_t kDifferencesNamed = 20;

struct ComparedRow {
  std::uint64_t first_seq = 0;
  std::vector<model::LedgerLine> lines;
  bool is_other = false;
};

// Goes through the table beside the journal. A row has the lines of its first event and of those
// that follow, up to the next row.
class LedgerComparison {
 public:
  LedgerComparison(Statement rows, const Inventory& inventory, model::EventSeq begin)
      : rows_(std::move(rows)),
        gap_(inventory.ledger_gap),
        name_of_(name_of(inventory)),
        begin_(begin) {}

  base::Status start() { return read_next(); }

  // In the order of the events.
  base::Status take(model::EventSeq seq, std::span<const model::LedgerLine> lines) {
    const bool is_due = !gap_.is_open() || seq <= gap_.after || seq > gap_.last;
    if (lines.empty() || !is_due) return {};
    while (next_ && next_->first_seq <= seq.value) TRY(advance());
    if (!current_) {
      // The oldest lines go in time, but never all of them.
      if (!next_) note(seq.value);
      return {};
    }
    for (const model::LedgerLine& line : lines) {
      const bool is_same = position_ < current_->lines.size() && current_->lines[position_] == line;
      current_->is_other = current_->is_other || !is_same;
      ++position_;
    }
    return {};
  }

  base::Status finish() {
    while (next_) TRY(advance());
    finish_row();
    return {};
  }

  std::vector<std::string> differences() && { return std::move(differences_); }

 private:
  base::Status advance() {
    finish_row();
    current_ = std::exchange(next_, std::nullopt);
    position_ = 0;
    return read_next();
  }

  void finish_row() {
    // What the source does not tell of is not compared.
    if (!current_ || current_->first_seq < begin_.value) return;
    if (current_->is_other || position_ != current_->lines.size()) note(current_->first_seq);
  }

  void note(std::uint64_t first_seq) {
    if (differences_.size() == kDifferencesNamed) return;
    differences_.push_back(fmt::format(
        "table ledger: the lines of event {} and those after it are not what the journal makes",
        first_seq));
  }

  base::Status read_next() {
    TRY_ASSIGN(const bool has_row, rows_.step());
    if (!has_row) return {};
    TRY_ASSIGN(const LedgerRow row, ledger_row_of(rows_));
    ComparedRow& next = next_.emplace();
    next.first_seq = row.first_seq;
    return visit_lines(row, name_of_, [&](const model::LedgerLine& line) {
      next.lines.push_back(line);
      return base::Status{};
    });
  }

  Statement rows_;
  const LedgerGap gap_;
  const NameOfNumber name_of_;
  const model::EventSeq begin_;         // the first event whose lines are made
  std::optional<ComparedRow> current_;  // that lines are compared with
  std::size_t position_ = 0;            // of the next line in it
  std::optional<ComparedRow> next_;
  std::vector<std::string> differences_;
};

}  // namespace

base::Status add_up_ledger(const Database& database, const Inventory& inventory,
                           const StateSource& source, const CheckBooks& books,
                           std::vector<std::string>& damages) {
  if (inventory.ledger_gap.is_open()) return {};
  const NameOfNumber name = name_of(inventory);
  const VisitLedger visit_all = [&](const Ledger::Visit& visit) -> base::Status {
    TRY_ASSIGN(Statement rows, database.prepare(fmt::format(
                                   "SELECT {} FROM ledger ORDER BY first_seq", kLedgerColumns)));
    while (true) {
      TRY_ASSIGN(const bool has_row, rows.step());
      if (!has_row) return {};
      TRY_ASSIGN(const LedgerRow row, ledger_row_of(rows));
      TRY(visit_lines(row, name, visit));
    }
  };
  TRY_ASSIGN(const std::vector<std::string> found, books(source, visit_all));
  for (const std::string& sentence : found) {
    damages.push_back(fmt::format("table ledger: {}", sentence));
  }
  return {};
}

base::Status compare_ledger(const Database& database, const Inventory& inventory,
                            const StateSource& source, const MadeLines& made,
                            std::vector<std::string>& damages) {
  TRY_ASSIGN(Statement rows, database.prepare(fmt::format(
                                 "SELECT {} FROM ledger ORDER BY first_seq", kLedgerColumns)));
  const model::EventSeq before = source.snapshot ? source.snapshot->upto : model::EventSeq();
  LedgerComparison comparison(std::move(rows), inventory, model::EventSeq(before.value + 1));
  TRY(comparison.start());
  TRY(made(source, [&](model::EventSeq seq, std::span<const model::LedgerLine> lines) {
    return comparison.take(seq, lines);
  }));
  TRY(comparison.finish());
  for (std::string& difference : std::move(comparison).differences()) {
    damages.push_back(std::move(difference));
  }
  return {};
}

}  // namespace gpu_platform::store
