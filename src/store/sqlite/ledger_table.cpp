#include "store/sqlite/ledger_table.h"

#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "store/ledger_batch.h"

namespace gpu_platform::store {

namespace {

std::uint64_t ledger_checksum(std::uint64_t first_seq, const LedgerSpan& span, std::uint64_t count,
                              std::string_view payload) {
  const std::uint64_t place[4] = {first_seq, static_cast<std::uint64_t>(span.from),
                                  static_cast<std::uint64_t>(span.to), count};
  return base::hash64(payload, base::hash64({reinterpret_cast<const char*>(place), sizeof place}));
}

std::uint64_t name_checksum(std::uint64_t number, std::string_view text) {
  const std::string_view place(reinterpret_cast<const char*>(&number), sizeof number);
  return base::hash64(text, base::hash64(place));
}

std::unexpected<base::Error> damaged_ledger(std::uint64_t first_seq, std::string_view what) {
  return base::fail(base::ErrorCode::kDataLoss,
                    fmt::format("table ledger, record {}: {}", first_seq, what));
}

std::unexpected<base::Error> damaged_name(std::uint64_t number, std::string_view what) {
  return base::fail(base::ErrorCode::kDataLoss,
                    fmt::format("table ledger_names, record {}: {}", number, what));
}

}  // namespace

base::Result<LedgerWriter> LedgerWriter::prepare(const Database& database) {
  LedgerWriter writer;
  const std::pair<Statement*, std::string> statements[] = {
      {&writer.extent_,
       "SELECT coalesce((SELECT min(first_seq) FROM ledger), 0), "
       "coalesce((SELECT max(first_seq) FROM ledger), 0)"},
      {&writer.put_gap_,
       "INSERT OR REPLACE INTO ledger_gap(id, after_seq, last_seq) VALUES (1, ?, ?)"},
      {&writer.drop_gap_, "DELETE FROM ledger_gap"},
      {&writer.put_,
       fmt::format("INSERT INTO ledger({}) VALUES (?, ?, ?, ?, ?, ?)", kLedgerColumns)},
      {&writer.put_name_,
       fmt::format("INSERT INTO ledger_names({}) VALUES (?, ?, ?)", kLedgerNameColumns)},
      {&writer.put_user_,
       "INSERT INTO ledger_users(name, to_ms, from_ms, batch) VALUES (?, ?, ?, ?)"},
      {&writer.oldest_, fmt::format("SELECT {} FROM ledger WHERE first_seq = ?", kLedgerColumns)},
      {&writer.next_,
       "SELECT first_seq, to_ms FROM ledger WHERE first_seq >= ? ORDER BY first_seq LIMIT 1"},
      {&writer.drop_, "DELETE FROM ledger WHERE first_seq = ?"},
      {&writer.drop_user_,
       "DELETE FROM ledger_users WHERE name = ? AND to_ms = ? AND from_ms = ? AND batch = ?"},
      {&writer.drop_after_, "DELETE FROM ledger WHERE first_seq > ?"},
      {&writer.drop_users_after_, "DELETE FROM ledger_users WHERE batch > ?"},
  };
  for (const auto& [statement, sql] : statements) {
    TRY_ASSIGN(*statement, database.prepare(sql));
  }
  TRY_ASSIGN(Statement rows,
             database.prepare(fmt::format("SELECT {} FROM ledger_names", kLedgerNameColumns)));
  while (true) {
    TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) return writer;
    TRY_ASSIGN(LedgerName name, ledger_name_of(rows));
    const auto known = writer.numbers_.emplace(std::move(name.text), name.number).first;
    writer.names_.emplace(name.number, known->first);
  }
}

base::Result<LedgerExtent> LedgerWriter::read_extent() {
  LedgerExtent extent;
  {
    const StatementRun scope(extent_);
    TRY(extent_.step());
    extent.oldest = extent_.number(0);
    extent.newest = extent_.number(1);
  }
  if (extent.oldest == 0) return extent;
  const StatementRun scope(next_);
  TRY(next_.bind(extent.oldest).step());
  extent.oldest_to = next_.integer(1);
  return extent;
}

base::Status LedgerWriter::put_gap(const LedgerGap& gap) {
  if (!gap.is_open()) return drop_gap_.run();
  return put_gap_.bind(gap.after.value).bind(gap.last.value).run();
}

base::Result<std::uint64_t> LedgerWriter::number_of(std::string_view name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  const std::uint64_t number = names_.empty() ? 1 : names_.rbegin()->first + 1;
  TRY(put_name_.bind(number).bind(name_checksum(number, name)).bind(name).run());
  const auto added = numbers_.emplace(name, number).first;
  names_.emplace(number, added->first);
  fresh_.push_back(number);
  return number;
}

base::Result<std::string_view> LedgerWriter::name_of(std::uint64_t number) const {
  const auto name = names_.find(number);
  if (name == names_.end()) return damaged_name(number, "it is missing");
  return name->second;
}

void LedgerWriter::settle(bool is_kept) {
  for (const std::uint64_t number : fresh_) {
    if (is_kept) continue;
    const auto name = names_.find(number);
    const auto text = numbers_.find(name->second);
    names_.erase(name);
    numbers_.erase(text);
  }
  fresh_.clear();
}

base::Status LedgerWriter::change_users(std::uint64_t batch,
                                        std::span<const model::LedgerLine> lines,
                                        Statement& change) {
  for (const auto& [user, span] : users_of(lines)) {
    TRY_ASSIGN(const std::uint64_t number, number_of(user));
    TRY(change.bind(number).bind(span.to).bind(span.from).bind(batch).run());
  }
  return {};
}

base::Status LedgerWriter::put(std::uint64_t first_seq, std::span<const model::LedgerLine> lines) {
  TRY_ASSIGN(const std::string payload,
             encode_lines(lines, [this](std::string_view name) { return number_of(name); }));
  const LedgerSpan span = span_of(lines);
  const std::uint64_t count = lines.size();
  TRY(put_.bind(first_seq)
          .bind(span.from)
          .bind(span.to)
          .bind(count)
          .bind(ledger_checksum(first_seq, span, count, payload))
          .bind_blob(payload)
          .run());
  return change_users(first_seq, lines, put_user_);
}

base::Status LedgerWriter::put(const Commit& commit, LedgerExtent& extent) {
  if (commit.ledger.empty()) return {};
  const std::uint64_t first_seq = commit.events.front().seq.value;
  TRY(put(first_seq, commit.ledger));
  extent.newest = first_seq;
  if (extent.oldest == 0) {
    extent.oldest = first_seq;
    extent.oldest_to = span_of(commit.ledger).to;
  }
  if (!commit.ledger_not_before.is_set()) return {};
  const model::Millis not_before = model::millis_of(commit.ledger_not_before);
  for (std::size_t dropped = 0; dropped < kLedgerBatchesDropped; ++dropped) {
    if (extent.oldest_to >= not_before || extent.oldest == extent.newest) break;
    TRY(drop_oldest(extent));
  }
  return {};
}

base::Status LedgerWriter::drop_oldest(LedgerExtent& extent) {
  std::vector<model::LedgerLine> lines;
  {
    const StatementRun scope(oldest_);
    TRY_ASSIGN(const bool has_row, oldest_.bind(extent.oldest).step());
    if (!has_row) return damaged_ledger(extent.oldest, "it is missing");
    TRY_ASSIGN(const LedgerRow row, ledger_row_of(oldest_));
    TRY(visit_lines(
        row, [this](std::uint64_t number) { return name_of(number); },
        [&](const model::LedgerLine& line) {
          lines.push_back(line);
          return base::Status{};
        }));
  }
  TRY(change_users(extent.oldest, lines, drop_user_));
  TRY(drop_.bind(extent.oldest).run());
  const StatementRun scope(next_);
  TRY_ASSIGN(const bool has_row, next_.bind(extent.oldest + 1).step());
  if (!has_row) return damaged_ledger(extent.newest, "it is missing");
  extent.oldest = next_.number(0);
  extent.oldest_to = next_.integer(1);
  return {};
}

base::Status LedgerWriter::drop_after(model::EventSeq seq) {
  TRY(drop_after_.bind(seq.value).run());
  return drop_users_after_.bind(seq.value).run();
}

base::Result<LedgerGap> ledger_gap_of(const Database& database) {
  TRY_ASSIGN(Statement row,
             database.prepare("SELECT after_seq, last_seq FROM ledger_gap WHERE id = 1"));
  TRY_ASSIGN(const bool has_row, row.step());
  if (!has_row) return LedgerGap{};
  return LedgerGap{model::EventSeq(row.number(0)), model::EventSeq(row.number(1))};
}

base::Result<LedgerRow> ledger_row_of(const Statement& row) {
  const LedgerRow found{row.number(0), row.number(3), row.blob(5)};
  const LedgerSpan span{row.integer(1), row.integer(2)};
  if (row.number(4) != ledger_checksum(found.first_seq, span, found.count, found.payload)) {
    return damaged_ledger(found.first_seq, "the checksum does not match");
  }
  return found;
}

base::Status visit_lines(const LedgerRow& row, const NameOfNumber& name_of,
                         const Ledger::Visit& visit) {
  bool is_visitors_error = false;
  const base::Status visited =
      visit_lines(row.payload, row.count, name_of, [&](const model::LedgerLine& line) {
        base::Status status = visit(line);
        is_visitors_error = !status;
        return status;
      });
  if (visited || is_visitors_error) return visited;
  if (visited.error().code != base::ErrorCode::kDataLoss) return visited;
  return damaged_ledger(row.first_seq, visited.error().message);
}

base::Result<LedgerName> ledger_name_of(const Statement& row) {
  LedgerName name{row.number(0), std::string(row.text(2))};
  if (row.number(1) != name_checksum(name.number, name.text)) {
    return damaged_name(name.number, "the checksum does not match");
  }
  return name;
}

base::Result<std::string_view> LedgerNames::name_of(std::uint64_t number) {
  const auto known = known_.find(number);
  if (known != known_.end()) return std::string_view(known->second);
  const StatementRun scope(statement_);
  TRY_ASSIGN(const bool has_row, statement_.bind(number).step());
  if (!has_row) return damaged_name(number, "it is missing");
  TRY_ASSIGN(LedgerName name, ledger_name_of(statement_));
  return std::string_view(known_.emplace(number, std::move(name.text)).first->second);
}

LedgerSql ledger_sql(const LedgerQuery& query) {
  LedgerSql sql;
  const std::uint64_t upto = query.upto.valid() ? query.upto.value : INT64_MAX;
  if (query.user.empty()) {
    // Of batches after the window only the index is read.
    sql.text = fmt::format(
        "SELECT {} FROM ledger WHERE first_seq IN (SELECT first_seq FROM ledger "
        "INDEXED BY ledger_by_time WHERE to_ms >= ? AND from_ms < ?) AND first_seq <= ? "
        "ORDER BY first_seq",
        kLedgerColumns);
  } else {
    sql.text = fmt::format(
        "SELECT {} FROM ledger WHERE first_seq IN (SELECT batch FROM ledger_users "
        "WHERE name = (SELECT id FROM ledger_names WHERE text = ?) AND to_ms >= ? "
        "AND from_ms < ?) AND first_seq <= ? ORDER BY first_seq",
        kLedgerColumns);
    sql.parameters.emplace_back(std::string_view(query.user));
  }
  sql.parameters.emplace_back(query.from);
  sql.parameters.emplace_back(query.to);
  sql.parameters.emplace_back(static_cast<std::int64_t>(upto));
  return sql;
}

}  // namespace gpu_platform::store
