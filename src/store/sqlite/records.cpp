#include "store/sqlite/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "model/codec.h"
#include "model/job_spec.h"

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

// A statement for many rows takes less than half of what as many statements take: its cursors stay
// open, and stand where the next row goes. "OR ROLLBACK": an error undoes the whole transaction
// anyway. To undo the statement alone SQLite would keep a copy of every page that a row changes,
// and so it does for INSERT OR REPLACE.
constexpr std::size_t kJobsPerInsertion[] = {64, 8, 1};

std::string job_insertion(std::size_t rows) {
  constexpr std::string_view kRow = "(?, ?, ?, ?, ?, ?, ?, ?, ?)";
  std::string sql = fmt::format("INSERT OR ROLLBACK INTO jobs({}) VALUES {}", kJobColumns, kRow);
  for (std::size_t i = 1; i < rows; ++i) sql.append(", ").append(kRow);
  return sql;
}

constexpr std::string_view kMismatch = "the checksum does not match";

}  // namespace

base::Result<Head> read_head(const Database& database) {
  TRY_ASSIGN(Statement row,
             database.prepare("SELECT first_seq, last_seq, jobs, checksum FROM head WHERE id = 1"));
  TRY_ASSIGN(const bool has_row, row.step());
  if (!has_row) return damaged("head", "1", "it is missing");
  const auto head = head_of({row.number(0), row.number(1), row.number(2)}, row.number(3));
  if (!head) return damaged("head", "1", kMismatch);
  return *head;
}

std::optional<Head> head_of(const Head& numbers, std::uint64_t checksum) {
  const bool is_one =
      head_checksum(numbers) == checksum && numbers.last_seq + 1 >= numbers.first_seq;
  return is_one ? std::optional(numbers) : std::nullopt;
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
  TRY(prepare_into(writer.any_job_between_, "SELECT 1 FROM jobs WHERE id BETWEEN ? AND ? LIMIT 1"));
  // INSERT OR REPLACE would cost more: for that SQLite keeps a copy of every page that a row
  // changes.
  TRY(prepare_into(writer.drop_job_, "DELETE FROM jobs WHERE id = ?"));
  for (std::size_t i = 0; i < writer.job_insertions_.size(); ++i) {
    JobInsertion& insertion = writer.job_insertions_[i];
    insertion.rows = kJobsPerInsertion[i];
    TRY(prepare_into(insertion.statement, job_insertion(insertion.rows)));
  }
  TRY(prepare_into(writer.drop_labels_, "DELETE FROM job_labels WHERE job = ?"));
  TRY(prepare_into(writer.job_row_, fmt::format("SELECT {} FROM jobs WHERE id = ?", kJobColumns)));
  TRY(prepare_into(writer.drop_label_,
                   "DELETE FROM job_labels WHERE key = ? AND value = ? AND job = ?"));
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

// Returns how many there were. One look at the range of ids is enough as a rule: there is none.
base::Result<std::size_t> RecordWriter::remove_jobs(std::span<const model::Job> jobs) {
  const auto [first, last] = std::ranges::minmax_element(jobs, {}, &model::Job::id);
  bool any = false;
  {
    const StatementRun scope(any_job_between_);
    TRY_ASSIGN(any, any_job_between_.bind(first->id.value).bind(last->id.value).step());
  }
  std::size_t removed = 0;
  if (!any) return removed;
  for (const model::Job& job : jobs) {
    TRY_ASSIGN(const bool existed, remove_job(job.id));
    removed += existed ? 1 : 0;
  }
  return removed;
}

base::Result<bool> RecordWriter::remove_job(model::JobId job) {
  bool exists = false;
  {
    const StatementRun scope(job_exists_);
    TRY_ASSIGN(exists, job_exists_.bind(job.value).step());
  }
  // This is for rare cases: a job ends a second time after a recovery, or its row is damaged and
  // goes. It scans all labels.
  if (exists) {
    TRY(drop_job_.bind(job.value).run());
    TRY(drop_labels_.bind(job.value).run());
  }
  return exists;
}

base::Result<bool> RecordWriter::drop_job(model::JobId job) {
  std::vector<model::Label> labels;
  bool is_damaged = false;
  {
    const StatementRun scope(job_row_);
    TRY_ASSIGN(const bool exists, job_row_.bind(job.value).step());
    if (!exists) return false;
    const auto found = job_of_row(job_row_);
    if (found) labels = found->spec->labels;
    is_damaged = !found;
  }
  if (is_damaged) return remove_job(job);
  for (const model::Label& label : labels) {
    TRY(drop_label_.bind(label.key).bind(label.value).bind(job.value).run());
  }
  TRY(drop_job_.bind(job.value).run());
  return true;
}

base::Status RecordWriter::insert(JobInsertion& insertion, std::span<const model::Job> jobs,
                                  std::uint64_t archived_seq) {
  CHECK(jobs.size() == insertion.rows);
  std::string payloads;
  model::JobAppender appender;
  std::array<std::size_t, std::ranges::max(kJobsPerInsertion)> ends{};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    appender.append(jobs[i], payloads);
    ends[i] = payloads.size();
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const model::Job& job = jobs[i];
    const std::string_view payload = std::string_view(payloads).substr(begin, ends[i] - begin);
    begin = ends[i];
    insertion.statement.bind(job.id.value)
        .bind(archived_seq)
        .bind(job.spec->user)
        .bind(job.spec->team)
        .bind(job.spec->name)
        .bind(to_string(job.state))
        .bind(job.ended_at.unix_ns())
        .bind(job_checksum(job.id.value, archived_seq, payload))
        .bind_blob(payload);
  }
  return insertion.statement.run();
}

base::Status RecordWriter::put_labels(const model::Job& job) {
  for (const auto& label : job.spec->labels) {
    TRY(label_.bind(label.key).bind(label.value).bind(job.id.value).run());
  }
  return {};
}

base::Result<std::size_t> RecordWriter::put_jobs(std::span<const model::Job> jobs,
                                                 std::uint64_t archived_seq) {
  std::size_t replaced = 0;
  auto insertion = job_insertions_.begin();
  for (auto left = jobs; !left.empty(); left = left.subspan(insertion->rows)) {
    while (insertion->rows > left.size()) ++insertion;
    const auto block = left.first(insertion->rows);
    TRY_ASSIGN(const std::size_t removed, remove_jobs(block));
    replaced += removed;
    TRY(insert(*insertion, block, archived_seq));
    for (const model::Job& job : block) TRY(put_labels(job));
  }
  return jobs.size() - replaced;
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
