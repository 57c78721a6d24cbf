#include "store/sqlite/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/codec.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

std::uint64_t head_checksum(const Head& head) {
  const std::uint64_t values[3] = {head.first_seq, head.last_seq, head.jobs};
  return base::hash64({reinterpret_cast<const char*>(values), sizeof values});
}

// The columns beside payload are not in it: job_of_row compares them with the decoded job.
std::uint64_t job_checksum(std::uint64_t id, std::uint64_t archived_seq, std::string_view payload) {
  const std::uint64_t place[2] = {id, archived_seq};
  return base::hash64(payload, base::hash64({reinterpret_cast<const char*>(place), sizeof place}));
}

std::uint64_t environment_checksum(std::string_view ref, std::string_view bytes) {
  return base::hash64(bytes, base::hash64(ref));
}

std::unexpected<base::Error> damaged(std::string_view table, std::string_view record,
                                     std::string_view what) {
  return fail(ErrorCode::kDataLoss, fmt::format("table {}, record {}: {}", table, record, what));
}

constexpr std::string_view kMismatch = "the checksum does not match";

}  // namespace

base::Result<Head> read_head(const Database& database) {
  TRY_ASSIGN(Statement row,
             database.prepare("SELECT first_seq, last_seq, jobs, checksum FROM head WHERE id = 1"));
  TRY_ASSIGN(const bool has_row, row.step());
  if (!has_row) return damaged("head", "1", "it is missing");
  const Head head{row.number(0), row.number(1), row.number(2)};
  if (head_checksum(head) != row.number(3) || head.last_seq + 1 < head.first_seq) {
    return damaged("head", "1", kMismatch);
  }
  return head;
}

base::Result<RecordWriter> RecordWriter::prepare(const Database& database) {
  RecordWriter writer;
  const auto prepare_into = [&](Statement& statement, std::string_view sql) -> base::Status {
    TRY_ASSIGN(statement, database.prepare(sql));
    return {};
  };
  TRY(prepare_into(writer.head_,
                   "INSERT INTO head(id, first_seq, last_seq, jobs, checksum) "
                   "VALUES (1, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET first_seq = "
                   "excluded.first_seq, last_seq = excluded.last_seq, jobs = excluded.jobs, "
                   "checksum = excluded.checksum"));
  TRY(prepare_into(writer.batch_,
                   "INSERT INTO journal(first_seq, count, checksum, payload) VALUES (?, ?, ?, ?)"));
  TRY(prepare_into(writer.job_exists_, "SELECT 1 FROM jobs WHERE id = ?"));
  // Not INSERT OR REPLACE: for that SQLite keeps a copy of every page that a row changes.
  TRY(prepare_into(writer.drop_job_, "DELETE FROM jobs WHERE id = ?"));
  TRY(prepare_into(writer.job_,
                   "INSERT INTO jobs(id, archived_seq, user, team, name, state, "
                   "ended_at_ns, checksum, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  TRY(prepare_into(writer.drop_labels_, "DELETE FROM job_labels WHERE job = ?"));
  TRY(prepare_into(writer.label_,
                   "INSERT OR REPLACE INTO job_labels(key, value, job) VALUES (?, ?, ?)"));
  TRY(prepare_into(writer.environment_,
                   "INSERT OR REPLACE INTO environments(ref, checksum, bytes) VALUES (?, ?, ?)"));
  TRY(prepare_into(writer.drop_environment_, "DELETE FROM environments WHERE ref = ?"));
  TRY(prepare_into(writer.snapshot_,
                   "INSERT OR REPLACE INTO snapshots(upto, checksum, state) VALUES (?, ?, ?)"));
  TRY(prepare_into(writer.drop_snapshots_,
                   "DELETE FROM snapshots WHERE upto NOT IN "
                   "(SELECT upto FROM snapshots ORDER BY upto DESC LIMIT 2)"));
  return writer;
}

base::Status RecordWriter::put_head(const Head& head) {
  return head_.bind(head.first_seq)
      .bind(head.last_seq)
      .bind(head.jobs)
      .bind(head_checksum(head))
      .run();
}

base::Status RecordWriter::put_batch(const StoredBatch& batch) {
  return batch_.bind(batch.first_seq)
      .bind(batch.count)
      .bind(batch.checksum)
      .bind_blob(batch.payload)
      .run();
}

base::Result<bool> RecordWriter::remove_job(const model::Job& job) {
  bool exists = false;
  {
    const StatementRun scope(job_exists_);
    TRY_ASSIGN(exists, job_exists_.bind(job.id.value).step());
  }
  // For the rare case alone: after a recovery, a job ends a second time. A scan of all labels.
  if (exists) {
    TRY(drop_job_.bind(job.id.value).run());
    TRY(drop_labels_.bind(job.id.value).run());
  }
  return exists;
}

base::Result<bool> RecordWriter::put_job(const model::Job& job, std::uint64_t archived_seq) {
  TRY_ASSIGN(const bool existed, remove_job(job));
  std::string payload;
  model::append_job(job, payload);
  TRY(job_.bind(job.id.value)
          .bind(archived_seq)
          .bind(job.spec->user)
          .bind(job.spec->team)
          .bind(job.spec->name)
          .bind(to_string(job.state))
          .bind(job.ended_at.unix_ns())
          .bind(job_checksum(job.id.value, archived_seq, payload))
          .bind_blob(payload)
          .run());
  for (const auto& label : job.spec->labels) {
    TRY(label_.bind(label.key).bind(label.value).bind(job.id.value).run());
  }
  return !existed;
}

base::Status RecordWriter::put_environment(const Environment& environment) {
  return environment_.bind(environment.ref)
      .bind(environment_checksum(environment.ref, environment.bytes))
      .bind_blob(environment.bytes)
      .run();
}

base::Status RecordWriter::drop_environment(std::string_view ref) {
  return drop_environment_.bind(ref).run();
}

base::Status RecordWriter::put_snapshot(std::uint64_t upto, std::string_view state) {
  return snapshot_.bind(upto).bind(snapshot_checksum(upto, state)).bind_blob(state).run();
}

base::Status RecordWriter::keep_newest_snapshots() {
  return drop_snapshots_.run();
}

StoredBatch batch_of_row(const Statement& row) {
  return {row.number(0), row.number(1), row.number(2), row.blob(3)};
}

std::uint64_t archived_seq_of_row(const Statement& row) {
  return row.number(1);
}

base::Result<model::Job> job_of_row(const Statement& row) {
  const std::uint64_t id = row.number(0);
  const std::string record = fmt::format("job {}", id);
  const std::string_view payload = row.blob(8);
  if (row.number(7) != job_checksum(id, row.number(1), payload)) {
    return damaged("jobs", record, kMismatch);
  }
  auto job = model::decode_job(payload);
  if (!job) return damaged("jobs", record, job.error().message);
  const bool columns_agree = job->id.value == id && job->spec->user == row.text(2) &&
                             job->spec->team == row.text(3) && job->spec->name == row.text(4) &&
                             to_string(job->state) == row.text(5) &&
                             job->ended_at.unix_ns() == row.integer(6);
  if (!columns_agree) return damaged("jobs", record, "its columns differ from its contents");
  return job;
}

base::Result<StoredSnapshot> snapshot_of_row(const Statement& row) {
  const std::uint64_t upto = row.number(0);
  const std::string_view state = row.blob(2);
  if (row.number(1) != snapshot_checksum(upto, state)) {
    return damaged("snapshots", fmt::format("after event {}", upto), kMismatch);
  }
  return StoredSnapshot{model::EventSeq(upto), std::string(state)};
}

base::Result<Environment> environment_of_row(const Statement& row) {
  Environment environment{std::string(row.text(0)), std::string(row.blob(2))};
  if (row.number(1) != environment_checksum(environment.ref, environment.bytes)) {
    return damaged("environments", environment.ref, kMismatch);
  }
  return environment;
}

}  // namespace gpu_platform::store
