#include "telemetry/history/rows.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "telemetry/history.h"
#include "telemetry/history/schema.h"

namespace gpu_platform::telemetry {

namespace {

constexpr std::int64_t kPageBytes = 4096;

// The name is in an index, too.
std::uint64_t bytes_of_note(std::string_view name, std::uint64_t bytes) {
  constexpr std::uint64_t kOfRow = 16;
  return 2 * name.size() + bytes + kOfRow;
}

// Without this error, what an index names again and again would be tried for ever.
std::unexpected<base::Error> no_rows() {
  return base::fail(base::ErrorCode::kDataLoss, "an index does not name the rows that are there");
}

}  // namespace

base::Result<HistoryRows> HistoryRows::open(const std::filesystem::path& path,
                                            base::Bytes max_bytes) {
  TRY_ASSIGN(store::Database database, open_history(path));
  const std::int64_t log_pages =
      std::clamp<std::int64_t>(max_bytes.value() / 32 / kPageBytes, 64, 1'000);
  TRY(database.execute(fmt::format("PRAGMA wal_autocheckpoint = {}", log_pages)));
  TRY(database.execute(fmt::format("PRAGMA journal_size_limit = {}", log_pages * kPageBytes)));
  // Readers are short, and a checkpoint that waits for them can be made later.
  TRY(database.execute("PRAGMA busy_timeout = 200"));
  return HistoryRows(std::move(database), log_pages);
}

void HistoryRows::forget() {
  ids_.clear();
  codes_.clear();
  names_.clear();
  note_bytes_.reset();
}

base::Result<store::Statement*> HistoryRows::statement(const char* sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    TRY_ASSIGN(store::Statement prepared, database_.prepare(sql));
    found = statements_.emplace(sql, std::move(prepared)).first;
  }
  return &found->second;
}

base::Result<SubjectId> HistoryRows::id_of(const Subject& subject) {
  const auto known = ids_.find(subject);
  if (known != ids_.end()) return known->second;
  const auto bind = [&](store::Statement& statement) {
    statement.bind(static_cast<std::int64_t>(subject.of)).bind(subject.node).bind(subject.uuid);
    statement.bind(subject.attempt.job.value).bind(std::uint64_t{subject.attempt.attempt});
  };
  TRY_ASSIGN(store::Statement* const add,
             statement("INSERT OR IGNORE INTO subjects (of, node, uuid, job, attempt, counters) "
                       "VALUES (?, ?, ?, ?, ?, x'')"));
  bind(*add);
  TRY(add->run());
  TRY_ASSIGN(store::Statement* const find,
             statement("SELECT id FROM subjects WHERE of = ? AND node = ? AND uuid = ? "
                       "AND job = ? AND attempt = ?"));
  const store::StatementRun scope(*find);
  bind(*find);
  TRY_ASSIGN(const bool has_row, find->step());
  if (!has_row) return base::fail(base::ErrorCode::kDataLoss, "a subject is not there");
  return ids_[subject] = find->integer(0);
}

base::Result<Subject> HistoryRows::subject(SubjectId id) {
  TRY_ASSIGN(store::Statement* const find,
             statement("SELECT of, node, uuid, job, attempt FROM subjects WHERE id = ?"));
  const store::StatementRun scope(*find);
  find->bind(id);
  TRY_ASSIGN(const bool has_row, find->step());
  if (!has_row) return base::fail(base::ErrorCode::kDataLoss, "a block has no subject");
  Subject subject;
  subject.of = static_cast<Of>(find->integer(0));
  subject.node = find->text(1);
  subject.uuid = find->text(2);
  subject.attempt.job = model::JobId(find->number(3));
  subject.attempt.attempt = static_cast<std::uint32_t>(find->number(4));
  return subject;
}

// They are kept as a block of one time.
base::Result<std::vector<Value>> HistoryRows::counters(SubjectId id, Of of) {
  std::optional<Block> block;
  {
    TRY_ASSIGN(store::Statement* const find,
               statement("SELECT counters FROM subjects WHERE id = ?"));
    const store::StatementRun scope(*find);
    find->bind(id);
    TRY_ASSIGN(const bool has_row, find->step());
    if (has_row && !find->blob(0).empty()) {
      TRY_ASSIGN(block, decode(std::string(find->blob(0))));
    }
  }
  std::vector<Value> counters;
  if (!block) return counters;
  for (const Column& column : block->columns) {
    const std::optional<MetricId> metric = metric_named(of, column.metric);
    if (metric && column.values.size() == 1) counters.push_back({*metric, column.values.front()});
  }
  std::ranges::sort(counters, {}, &Value::metric);
  return counters;
}

base::Status HistoryRows::set_counters(SubjectId id, const std::vector<Value>& counters) {
  Block block;
  block.times.emplace_back();
  for (const Value& value : counters) {
    Column& column = block.columns.emplace_back();
    column.metric = metric(value.metric).name;
    column.values.push_back(value.value);
  }
  TRY_ASSIGN(const std::string bytes, encode(std::move(block)));
  TRY_ASSIGN(store::Statement* const set,
             statement("UPDATE subjects SET counters = ? WHERE id = ?"));
  set->bind_blob(bytes).bind(id);
  return set->run();
}

base::Status HistoryRows::add(const SpanKey& key, const Block& block, bool is_piece) {
  if (block.times.empty()) return {};
  TRY_ASSIGN(const std::string bytes, encode(block));
  TRY_ASSIGN(store::Statement* const add,
             statement("INSERT INTO blocks (subject, tier, span, begins, is_piece, bytes) "
                       "VALUES (?, ?, ?, ?, ?, ?)"));
  add->bind(key.subject).bind(number_of(key.tier)).bind(key.span.unix_ns());
  add->bind(std::ranges::min(block.times).unix_ns()).bind(std::int64_t{is_piece});
  add->bind_blob(bytes);
  return add->run();
}

base::Result<std::vector<BlockRow>> HistoryRows::rows_of(const SpanKey& key) {
  struct Stored {
    std::int64_t id = 0;
    bool is_piece = false;
    std::string bytes;
  };
  std::vector<Stored> stored;
  {
    TRY_ASSIGN(store::Statement* const find,
               statement("SELECT id, is_piece, bytes FROM blocks "
                         "WHERE subject = ? AND tier = ? AND span = ? ORDER BY id"));
    const store::StatementRun scope(*find);
    find->bind(key.subject).bind(number_of(key.tier)).bind(key.span.unix_ns());
    while (true) {
      TRY_ASSIGN(const bool has_row, find->step());
      if (!has_row) break;
      stored.push_back({find->integer(0), find->integer(1) != 0, std::string(find->blob(2))});
    }
  }
  if (stored.empty()) return no_rows();
  std::vector<BlockRow> rows;
  for (const Stored& row : stored) {
    TRY_ASSIGN(std::optional<Block> block, decode(row.bytes));
    if (block && block->tier == key.tier) {
      rows.push_back({row.id, row.is_piece, *std::move(block)});
    } else {
      ++damaged_rows_;
      TRY(remove(row.id));
    }
  }
  return rows;
}

base::Status HistoryRows::set_whole(std::int64_t row) {
  TRY_ASSIGN(store::Statement* const set, statement("UPDATE blocks SET is_piece = 0 WHERE id = ?"));
  set->bind(row);
  return set->run();
}

base::Status HistoryRows::remove(std::int64_t row) {
  TRY_ASSIGN(store::Statement* const remove, statement("DELETE FROM blocks WHERE id = ?"));
  remove->bind(row);
  return remove->run();
}

base::Result<std::vector<SpanKey>> HistoryRows::keys(store::Statement& statement, Tier tier) {
  const store::StatementRun scope(statement);
  std::vector<SpanKey> keys;
  while (true) {
    TRY_ASSIGN(const bool has_row, statement.step());
    if (!has_row) return keys;
    keys.push_back({statement.integer(0), tier, base::Instant(statement.integer(1))});
  }
}

base::Result<std::vector<SpanKey>> HistoryRows::with_pieces(Tier tier, base::Instant begins,
                                                            std::size_t max_count) {
  TRY_ASSIGN(store::Statement* const find,
             statement("SELECT DISTINCT subject, span FROM blocks INDEXED BY pieces "
                       "WHERE is_piece = 1 AND tier = ? AND span <= ? "
                       "ORDER BY span, subject LIMIT ?"));
  find->bind(number_of(tier)).bind(begins.unix_ns()).bind(std::uint64_t{max_count});
  return keys(*find, tier);
}

base::Result<std::vector<SpanKey>> HistoryRows::oldest(Tier tier, std::size_t max_count) {
  TRY_ASSIGN(store::Statement* const find,
             statement("SELECT DISTINCT subject, span FROM blocks INDEXED BY blocks_by_age "
                       "WHERE tier = ?1 AND span = (SELECT MIN(span) FROM blocks WHERE tier = ?1) "
                       "LIMIT ?2"));
  find->bind(number_of(tier)).bind(std::uint64_t{max_count});
  return keys(*find, tier);
}

base::Result<std::uint64_t> HistoryRows::remove_until(Tier tier, base::Instant begins,
                                                      std::size_t max_count) {
  TRY_ASSIGN(store::Statement* const remove,
             statement("DELETE FROM blocks WHERE id IN (SELECT id FROM blocks "
                       "INDEXED BY blocks_by_age WHERE tier = ? AND span <= ? AND is_piece = 0 "
                       "LIMIT ?)"));
  remove->bind(number_of(tier)).bind(begins.unix_ns()).bind(std::uint64_t{max_count});
  TRY(remove->run());
  return static_cast<std::uint64_t>(sqlite3_changes64(database_.handle()));
}

base::Status HistoryRows::remove_span(const SpanKey& key) {
  TRY_ASSIGN(store::Statement* const remove,
             statement("DELETE FROM blocks WHERE subject = ? AND tier = ? AND span = ?"));
  remove->bind(key.subject).bind(number_of(key.tier)).bind(key.span.unix_ns());
  TRY(remove->run());
  if (sqlite3_changes64(database_.handle()) == 0) return no_rows();
  return {};
}

base::Status HistoryRows::remove_empty_subjects() {
  ids_.clear();
  return database_.execute(
      "DELETE FROM subjects WHERE NOT EXISTS "
      "(SELECT 1 FROM blocks WHERE blocks.subject = subjects.id)");
}

base::Result<std::uint64_t> HistoryRows::batch() {
  TRY_ASSIGN(const std::int64_t number,
             database_.query_integer("SELECT coalesce(max(value), 0) FROM facts "
                                     "WHERE name = 'batch'"));
  return static_cast<std::uint64_t>(number);
}

base::Status HistoryRows::set_batch(std::uint64_t number) {
  TRY_ASSIGN(store::Statement* const set,
             statement("INSERT OR REPLACE INTO facts (name, value) VALUES ('batch', ?)"));
  set->bind(number);
  return set->run();
}

base::Status HistoryRows::put_note(std::string_view name, std::string_view bytes) {
  TRY(count_note(name, bytes_of_note(name, bytes.size())));
  TRY_ASSIGN(store::Statement* const put,
             statement("INSERT OR REPLACE INTO notes (name, bytes) VALUES (?, ?)"));
  put->bind(name).bind_blob(bytes);
  return put->run();
}

base::Status HistoryRows::remove_note(std::string_view name) {
  TRY(count_note(name, 0));
  TRY_ASSIGN(store::Statement* const remove, statement("DELETE FROM notes WHERE name = ?"));
  remove->bind(name);
  return remove->run();
}

// `bytes`: what it will take.
base::Status HistoryRows::count_note(std::string_view name, std::uint64_t bytes) {
  if (!note_bytes_) return {};
  TRY_ASSIGN(store::Statement* const find,
             statement("SELECT length(bytes) FROM notes WHERE name = ?"));
  const store::StatementRun scope(*find);
  find->bind(name);
  TRY_ASSIGN(const bool has_row, find->step());
  if (has_row) *note_bytes_ -= std::min(*note_bytes_, bytes_of_note(name, find->number(0)));
  *note_bytes_ += bytes;
  return {};
}

base::Result<std::uint64_t> HistoryRows::note_bytes() {
  if (note_bytes_) return *note_bytes_;
  TRY_ASSIGN(store::Statement* const find, statement("SELECT name, length(bytes) FROM notes"));
  const store::StatementRun scope(*find);
  std::uint64_t bytes = 0;
  while (true) {
    TRY_ASSIGN(const bool has_row, find->step());
    if (!has_row) break;
    bytes += bytes_of_note(find->text(0), find->number(1));
  }
  note_bytes_ = bytes;
  return bytes;
}

base::Result<std::size_t> HistoryRows::remove_oldest_summaries(std::uint64_t bytes,
                                                               std::size_t max_count) {
  std::vector<std::string> names;
  {
    TRY_ASSIGN(store::Statement* const find,
               statement("SELECT name, length(bytes) FROM notes "
                         "WHERE substr(name, 1, length(?1)) = ?1 "
                         "ORDER BY CAST(substr(name, length(?1) + 1) AS INTEGER), name LIMIT ?2"));
    const store::StatementRun scope(*find);
    find->bind(kSummaryNotes).bind(std::uint64_t{max_count});
    for (std::uint64_t freed = 0; freed < bytes;) {
      TRY_ASSIGN(const bool has_row, find->step());
      if (!has_row) break;
      freed += bytes_of_note(find->text(0), find->number(1));
      names.emplace_back(find->text(0));
    }
  }
  for (const std::string& name : names) {
    TRY(remove_note(name));
    if (sqlite3_changes64(database_.handle()) == 0) return no_rows();
  }
  return names.size();
}

base::Result<FileSize> HistoryRows::size() {
  TRY_ASSIGN(const std::int64_t page, database_.query_integer("PRAGMA page_size"));
  TRY_ASSIGN(const std::int64_t pages, database_.query_integer("PRAGMA page_count"));
  TRY_ASSIGN(const std::int64_t unused, database_.query_integer("PRAGMA freelist_count"));
  return FileSize{static_cast<std::uint64_t>(pages * page),
                  static_cast<std::uint64_t>((pages - unused) * page)};
}

base::Status HistoryRows::shrink(std::uint64_t bytes) {
  TRY_ASSIGN(const FileSize now, size());
  if (now.bytes > bytes) {
    const std::uint64_t pages = std::min(now.bytes - bytes, now.bytes - now.used) / kPageBytes;
    if (pages > 0) TRY(database_.execute(fmt::format("PRAGMA incremental_vacuum({})", pages)));
  }
  return copy_log();
}

// The file itself becomes shorter only here.
base::Status HistoryRows::copy_log() {
  TRY_ASSIGN(store::Statement* const copy, statement("PRAGMA wal_checkpoint(PASSIVE)"));
  std::int64_t pages = 0;
  {
    const store::StatementRun scope(*copy);
    TRY_ASSIGN(const bool has_row, copy->step());
    if (has_row) pages = copy->integer(1);
  }
  if (pages <= max_log_pages_) return {};
  return database_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

base::Result<std::optional<base::Instant>> HistoryRows::newest_span(Tier tier) {
  TRY_ASSIGN(store::Statement* const find,
             statement("SELECT span FROM blocks INDEXED BY blocks_by_age WHERE tier = ? "
                       "ORDER BY span DESC LIMIT 1"));
  const store::StatementRun scope(*find);
  find->bind(number_of(tier));
  TRY_ASSIGN(const bool has_row, find->step());
  if (!has_row) return std::nullopt;
  return base::Instant(find->integer(0));
}

// A few digits in place of a name of 20 letters, in each of many blocks.
base::Result<std::string> HistoryRows::code_of(const std::string& name) {
  const auto known = codes_.find(name);
  if (known != codes_.end()) return known->second;
  TRY_ASSIGN(store::Statement* const add,
             statement("INSERT OR IGNORE INTO names (name) VALUES (?)"));
  add->bind(std::string_view(name));
  TRY(add->run());
  TRY_ASSIGN(store::Statement* const find, statement("SELECT id FROM names WHERE name = ?"));
  const store::StatementRun scope(*find);
  find->bind(std::string_view(name));
  TRY_ASSIGN(const bool has_row, find->step());
  if (!has_row) return base::fail(base::ErrorCode::kDataLoss, "the name of a metric is not there");
  return codes_[name] = std::to_string(find->integer(0));
}

// Empty: no metric has that code.
base::Result<std::string> HistoryRows::name_of(const std::string& code) {
  const auto known = names_.find(code);
  if (known != names_.end()) return known->second;
  std::int64_t id = 0;
  if (std::from_chars(code.data(), code.data() + code.size(), id).ec != std::errc()) {
    return std::string();
  }
  TRY_ASSIGN(store::Statement* const find, statement("SELECT name FROM names WHERE id = ?"));
  const store::StatementRun scope(*find);
  find->bind(id);
  TRY_ASSIGN(const bool has_row, find->step());
  return has_row ? names_[code] = std::string(find->text(0)) : std::string();
}

base::Result<std::string> HistoryRows::encode(Block block) {
  for (Column& column : block.columns) {
    TRY_ASSIGN(column.metric, code_of(column.metric));
  }
  return encode_block(block);
}

// None: the bytes are damaged.
base::Result<std::optional<Block>> HistoryRows::decode(std::string_view bytes) {
  auto block = decode_block(bytes);
  if (!block) return std::nullopt;
  for (Column& column : block->columns) {
    TRY_ASSIGN(column.metric, name_of(column.metric));
    if (column.metric.empty()) return std::nullopt;
  }
  return *std::move(block);
}

}  // namespace gpu_platform::telemetry
