#include "store/sqlite/audit_table.h"

#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/codec.h"

namespace gpu_platform::store {

namespace {

std::uint64_t audit_checksum(std::uint64_t first_seq, std::int64_t at_ns, std::uint64_t count,
                             std::string_view payload) {
  const std::uint64_t place[3] = {first_seq, static_cast<std::uint64_t>(at_ns), count};
  return base::hash64(payload, base::hash64({reinterpret_cast<const char*>(place), sizeof place}));
}

std::unexpected<base::Error> damaged_audit(std::uint64_t first_seq, std::string_view what) {
  return base::fail(base::ErrorCode::kDataLoss,
                    fmt::format("table audit, record {}: {}", first_seq, what));
}

}  // namespace

base::Result<AuditWriter> AuditWriter::prepare(const Database& database) {
  AuditWriter writer;
  const std::pair<Statement*, std::string> statements[] = {
      {&writer.extent_,
       "SELECT coalesce(sum(count), 0), coalesce(min(first_seq), 0), "
       "coalesce(max(first_seq), 0) FROM audit INDEXED BY audit_by_time"},
      {&writer.row_, fmt::format("INSERT INTO audit({}) VALUES (?, ?, ?, ?, ?)", kAuditColumns)},
      {&writer.oldest_, fmt::format("SELECT {} FROM audit WHERE first_seq = ?", kAuditColumns)},
      {&writer.next_,
       "SELECT first_seq, at_ns FROM audit WHERE first_seq >= ? ORDER BY first_seq "
       "LIMIT 1"},
      {&writer.put_user_, "INSERT INTO audit_users(uid, batch) VALUES (?, ?)"},
      {&writer.put_job_, "INSERT INTO audit_jobs(job, batch) VALUES (?, ?)"},
      {&writer.put_submission_,
       "INSERT OR REPLACE INTO audit_submissions(first_job, batch) VALUES (?, ?)"},
      {&writer.drop_, "DELETE FROM audit WHERE first_seq = ?"},
      {&writer.drop_user_, "DELETE FROM audit_users WHERE uid = ? AND batch = ?"},
      {&writer.drop_job_, "DELETE FROM audit_jobs WHERE job = ? AND batch = ?"},
      {&writer.drop_submission_, "DELETE FROM audit_submissions WHERE first_job = ? AND batch = ?"},
  };
  for (const auto& [statement, sql] : statements) {
    TRY_ASSIGN(*statement, database.prepare(sql));
  }
  return writer;
}

base::Result<AuditExtent> AuditWriter::read_extent() {
  AuditExtent extent;
  {
    const StatementRun scope(extent_);
    TRY(extent_.step());
    extent.entries = extent_.number(0);
    extent.oldest = extent_.number(1);
    extent.newest = extent_.number(2);
  }
  if (extent.oldest == 0) return extent;
  const StatementRun scope(next_);
  TRY(next_.bind(extent.oldest).step());
  extent.oldest_at = base::Instant(next_.integer(1));
  return extent;
}

base::Status AuditWriter::change_keys(std::uint64_t batch, const AuditKeys& keys, Statement& user,
                                      Statement& job, Statement& submission) {
  for (const std::uint32_t uid : keys.uids) {
    TRY(user.bind(std::uint64_t{uid}).bind(batch).run());
  }
  for (const model::JobId id : keys.jobs) TRY(job.bind(id.value).bind(batch).run());
  if (!keys.first_submitted.valid()) return {};
  return submission.bind(keys.first_submitted.value).bind(batch).run();
}

base::Status AuditWriter::put(const AuditRow& row) {
  const std::string payload = encode_entries(row.entries);
  const std::int64_t at = row.entries.front().at.unix_ns();
  const std::uint64_t count = row.entries.size();
  TRY(row_.bind(row.first_seq)
          .bind(at)
          .bind(count)
          .bind(audit_checksum(row.first_seq, at, count, payload))
          .bind_blob(payload)
          .run());
  return change_keys(row.first_seq, keys_of(row.entries), put_user_, put_job_, put_submission_);
}

base::Status AuditWriter::put(const Commit& commit, AuditExtent& extent) {
  const AuditRow row{commit.events.front().seq.value, audit_entries_of(commit.events)};
  if (row.entries.empty()) return {};
  TRY(put(row));
  extent.entries += row.entries.size();
  extent.newest = row.first_seq;
  if (extent.oldest == 0) {
    extent.oldest = row.first_seq;
    extent.oldest_at = row.entries.front().at;
  }
  for (std::size_t dropped = 0; dropped < kAuditBatchesDropped; ++dropped) {
    const bool is_wanted = extent.oldest_at >= commit.audit_keep.not_before &&
                           extent.entries <= commit.audit_keep.max_entries;
    if (is_wanted || extent.oldest == extent.newest) break;
    TRY(drop_oldest(extent));
  }
  return {};
}

base::Status AuditWriter::drop_oldest(AuditExtent& extent) {
  AuditRow row;
  {
    const StatementRun scope(oldest_);
    TRY_ASSIGN(const bool has_row, oldest_.bind(extent.oldest).step());
    if (!has_row) return damaged_audit(extent.oldest, "it is missing");
    TRY_ASSIGN(row, audit_row_of(oldest_));
  }
  TRY(change_keys(row.first_seq, keys_of(row.entries), drop_user_, drop_job_, drop_submission_));
  TRY(drop_.bind(row.first_seq).run());
  extent.entries -= row.entries.size();
  const StatementRun scope(next_);
  TRY_ASSIGN(const bool has_row, next_.bind(row.first_seq + 1).step());
  if (!has_row) return damaged_audit(extent.newest, "it is missing");
  extent.oldest = next_.number(0);
  extent.oldest_at = base::Instant(next_.integer(1));
  return {};
}

base::Result<AuditRow> audit_row_of(const Statement& row) {
  AuditRow found{row.number(0), {}};
  const std::string_view payload = row.blob(4);
  if (row.number(3) != audit_checksum(found.first_seq, row.integer(1), row.number(2), payload)) {
    return damaged_audit(found.first_seq, "the checksum does not match");
  }
  auto entries = model::decode_audit_entries(payload);
  if (!entries) return damaged_audit(found.first_seq, entries.error().message);
  if (entries->empty() || entries->size() != row.number(2)) {
    return damaged_audit(found.first_seq, "its columns differ from its contents");
  }
  found.entries = *std::move(entries);
  return found;
}

AuditSql audit_sql(const model::AuditQuery& query) {
  AuditSql sql;
  const auto add = [&sql](std::string_view text, std::uint64_t value) {
    sql.text += text;
    sql.parameters.push_back(static_cast<std::int64_t>(value));
  };
  const std::string columns = "SELECT a.first_seq, a.at_ns, a.count, a.checksum, a.payload FROM ";
  if (query.first_job.valid()) {
    // The submission that made it is the last that begins at or before it.
    sql.text = columns + "audit AS a WHERE a.first_seq IN (SELECT batch FROM audit_jobs ";
    add("WHERE job >= ? ", query.first_job.value);
    add("AND job <= ? UNION SELECT batch FROM audit_submissions ", query.last_job.value);
    add("WHERE first_job >= coalesce((SELECT max(first_job) FROM audit_submissions "
        "WHERE first_job <= ?), 0) ",
        query.first_job.value);
    add("AND first_job <= ?)", query.last_job.value);
  } else if (query.seen_by) {
    sql.text = columns + "audit_users AS u CROSS JOIN audit AS a ON a.first_seq = u.batch ";
    add("WHERE u.uid = ?", *query.seen_by);
  } else {
    sql.text = columns + "audit AS a WHERE 1";
  }
  const bool by_user = !query.first_job.valid() && query.seen_by.has_value();
  const std::string_view key = by_user ? "u.batch" : "a.first_seq";
  // A batch begins at the first of its times: the last that begins before `until` is the newest
  // that can hold an entry of before it, and the last that begins before `since` the oldest.
  constexpr std::string_view kBegun =
      "coalesce((SELECT first_seq FROM audit WHERE at_ns < ? ORDER BY at_ns DESC, first_seq DESC "
      "LIMIT 1), 0)";
  if (query.before.valid()) add(fmt::format(" AND {} < ?", key), query.before.value);
  if (query.until.is_set()) {
    add(fmt::format(" AND {} <= {}", key, kBegun),
        static_cast<std::uint64_t>(query.until.unix_ns()));
  }
  if (query.since.is_set()) {
    add(fmt::format(" AND {} >= {}", key, kBegun),
        static_cast<std::uint64_t>(query.since.unix_ns()));
  }
  sql.text += fmt::format(" ORDER BY {} DESC", key);
  return sql;
}

}  // namespace gpu_platform::store
