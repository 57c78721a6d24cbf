#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/job.h"
#include "store/batch.h"
#include "store/sqlite/database.h"
#include "store/store.h"

// How the rows of each table are written, read and verified: used by the store and by its repair.
// Every read function expects a statement that stands on a row of the columns named beside it, and
// answers kDataLoss with a message that names table and record when the row does not verify.

namespace gpu_platform::store {

// The one row of table head.
struct Head {
  std::uint64_t first_seq = 1;  // of the oldest event that the journal keeps
  std::uint64_t last_seq = 0;   // first_seq - 1 when the journal is empty
  std::uint64_t jobs = 0;       // rows of table jobs
};
base::Result<Head> read_head(const Database& database);
// Those numbers, when the checksum is theirs.
std::optional<Head> head_of(const Head& numbers, std::uint64_t checksum);

// Prepared statements of the writing side, kept as long as the connection.
class RecordWriter {
 public:
  RecordWriter() = default;
  static base::Result<RecordWriter> prepare(const Database& database);

  base::Status put_head(const Head& head);
  base::Status put_batch(const StoredBatch& batch);
  // Each job once. Replaces earlier rows of the same jobs, and returns how many had none.
  base::Result<std::size_t> put_jobs(std::span<const model::Job> jobs, std::uint64_t archived_seq);
  // Removes the row and the labels of an ended job; returns whether it was there.
  base::Result<bool> drop_job(model::JobId job);
  base::Status put_environment(const Environment& environment);
  base::Status drop_environment(std::string_view ref);
  base::Status put_snapshot(std::uint64_t upto, std::string_view state);
  base::Status keep_newest_snapshots();

 private:
  // So many jobs in one statement.
  struct JobInsertion {
    std::size_t rows = 0;
    Statement statement;
  };

  base::Result<std::size_t> remove_jobs(std::span<const model::Job> jobs);
  base::Result<bool> remove_job(model::JobId job);
  static base::Status insert(JobInsertion& insertion, std::span<const model::Job> jobs,
                             std::uint64_t archived_seq);
  base::Status put_labels(const model::Job& job);

  Statement head_;
  Statement batch_;
  Statement any_job_between_;
  Statement job_exists_;
  Statement drop_job_;
  std::array<JobInsertion, 3> job_insertions_;  // the largest first
  Statement drop_labels_;
  Statement job_row_;
  Statement drop_label_;
  Statement label_;
  Statement environment_;
  Statement drop_environment_;
  Statement snapshot_;
  Statement drop_snapshots_;
};

inline constexpr std::string_view kBatchColumns = "first_seq, count, checksum, payload";
StoredBatch batch_of_row(const Statement& row);

// The columns are read in this order, from column `first` on.
inline constexpr std::string_view kJobColumns =
    "id, archived_seq, user, team, name, state, ended_at_ns, checksum, payload";
base::Result<model::Job> job_of_row(const Statement& row);
std::uint64_t archived_seq_of_row(const Statement& row);

inline constexpr std::string_view kSnapshotColumns = "upto, checksum, state";
base::Result<StoredSnapshot> snapshot_of_row(const Statement& row);

inline constexpr std::string_view kEnvironmentColumns = "ref, checksum, bytes";
base::Result<Environment> environment_of_row(const Statement& row);

}  // namespace gpu_platform::store
