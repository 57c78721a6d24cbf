#include "store/sqlite/mark_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "model/job_array.h"
#include "model/job_spec.h"
#include "store/batch.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// Visits the events of the batch that begins with `first_seq`. Returns false when it is not there.
base::Result<bool> visit_batch_at(
    const Database& database, std::uint64_t first_seq,
    const std::function<base::Status(const model::EventRecord&)>& visit) {
  TRY_ASSIGN(Statement row, database.prepare(fmt::format(
                                "SELECT {} FROM journal WHERE first_seq = ?", kBatchColumns)));
  TRY_ASSIGN(const bool has_row, row.bind(first_seq).step());
  if (!has_row) return false;
  TRY(visit_batch(batch_of_row(row), {}, visit));
  return true;
}

// Whether the journal has another batch at the place of the one of which the mark speaks. A record
// that does not verify, or is not there, is damaged: that is for others to notice.
base::Result<bool> has_another_batch(const Database& database, const Mark& mark) {
  TRY_ASSIGN(Statement row,
             database.prepare(fmt::format("SELECT {} FROM journal WHERE first_seq <= ? "
                                          "ORDER BY first_seq DESC LIMIT 1",
                                          kBatchColumns)));
  auto has_row = row.bind(mark.batch_first).step();
  if (!has_row && has_row.error().code == ErrorCode::kDataLoss) return false;
  TRY(has_row);
  if (!*has_row) return false;
  const StoredBatch batch = batch_of_row(row);
  const auto pass = [](const model::EventRecord&) -> base::Status { return {}; };
  if (batch.last_seq() < mark.batch_first || !visit_batch(batch, {}, pass)) return false;
  return batch.first_seq != mark.batch_first || batch.last_seq() != mark.last_seq ||
         batch.checksum != mark.batch_checksum;
}

}  // namespace

base::Result<std::string> what_is_missing(const Database& database, const Head& head,
                                          const Mark& mark) {
  if (mark.last_seq == 0) return std::string();
  if (head.last_seq >= mark.last_seq) {
    if (mark.batch_first == 0) return std::string();
    TRY_ASSIGN(const bool is_another, has_another_batch(database, mark));
    if (!is_another) return std::string();
    return fmt::format(
        "its events {} to {} are not those that were durable at {}: it is another store's "
        "database, or went on by itself from a copy",
        mark.batch_first, mark.last_seq, base::utc(mark.at));
  }
  TRY_ASSIGN(const Mark own, mark_of(database, head));
  const std::string last = own.last_seq == 0 ? "it has no event"
                                             : fmt::format("it ends with event {} ({})",
                                                           own.last_seq, base::utc(own.at));
  std::string text =
      fmt::format("{}, but event {} was durable at {}: events {} to {} are missing", last,
                  mark.last_seq, base::utc(mark.at), head.last_seq + 1, mark.last_seq);
  if (mark.last_job > own.last_job) {
    text += fmt::format(", and with them jobs {} to {} or some of them", own.last_job + 1,
                        mark.last_job);
  }
  return text;
}

base::Error outdated_store(const StoreFiles& files, const std::string& missing) {
  return base::Error{
      ErrorCode::kFailedPrecondition,
      fmt::format("{} is older than the work that was acknowledged here: {}. Nothing was changed. "
                  "Put the newest store.db in its place, together with its store.db-wal. To go on "
                  "without what is missing, as after a backup was put back on purpose, start once "
                  "with `gpu-platform serve --accept-loss`: ids of jobs are not given again, and "
                  "API tokens must be made anew",
                  files.database.string(), missing),
      {}};
}

base::Status check_base_of_log(const StoreFiles& files, const std::optional<Mark>& mark) {
  if (!mark || mark->copied_seq == 0) return {};
  const auto alone = Database::open(files.database.string(), Database::Mode::kWithoutLog);
  if (!alone) return {};
  // A page that a crash tore while the log was copied says nothing: the log has it.
  const auto head = read_head(*alone);
  if (!head || head->last_seq >= mark->copied_seq) return {};
  return fail(ErrorCode::kDataLoss,
              fmt::format("it is older than {}, which goes on from event {} or later, while the "
                          "file itself ends with event {} (if it is a backup that was put here, "
                          "remove store.db-wal and store.db-shm: they belong to the former one)",
                          files.wal.filename().string(), mark->copied_seq, head->last_seq));
}

base::Result<Mark> mark_of(const Database& database, const Head& head) {
  Mark mark;
  mark.last_seq = head.last_seq;
  TRY_ASSIGN(const model::JobId highest, highest_job(database));
  mark.last_job = highest.value;
  TRY_ASSIGN(Statement row,
             database.prepare(fmt::format("SELECT {} FROM journal ORDER BY first_seq DESC LIMIT 1",
                                          kBatchColumns)));
  TRY_ASSIGN(const bool has_row, row.step());
  if (!has_row) return mark;
  const StoredBatch batch = batch_of_row(row);
  mark.batch_first = batch.first_seq;
  mark.batch_checksum = batch.checksum;
  const auto note = [&](const model::EventRecord& record) -> base::Status {
    mark.at = record.at;
    return {};
  };
  // A damaged record is noticed by the one who needs it.
  if (auto visited = visit_batch(batch, {}, note);
      !visited && visited.error().code != ErrorCode::kDataLoss) {
    return std::unexpected(std::move(visited).error());
  }
  return mark;
}

base::Result<model::JobId> highest_job(const Database& database) {
  TRY_ASSIGN(const std::int64_t archived,
             database.query_integer("SELECT coalesce(max(id), 0) FROM jobs"));
  TRY_ASSIGN(Statement row, database.prepare("SELECT first_job, batch FROM audit_submissions "
                                             "ORDER BY first_job DESC LIMIT 1"));
  TRY_ASSIGN(const bool has_row, row.step());
  model::JobId highest(static_cast<std::uint64_t>(archived));
  if (!has_row) return highest;
  highest = std::max(highest, model::JobId(row.number(0)));
  const auto note = [&](const model::EventRecord& record) -> base::Status {
    highest = std::max(highest, last_job_of(record.event));
    return {};
  };
  // The first of an array is known already, where the batch is damaged.
  if (auto visited = visit_batch_at(database, row.number(1), note);
      !visited && visited.error().code != ErrorCode::kDataLoss) {
    return std::unexpected(std::move(visited).error());
  }
  return highest;
}

model::JobId last_job_of(const model::Event& event) {
  if (const auto* submitted = std::get_if<model::JobSubmitted>(&event)) {
    const auto& array = submitted->spec->array;
    return model::JobId(submitted->job.value + (array ? model::member_count(*array) : 1) - 1);
  }
  const auto* repaired = std::get_if<model::StoreRepaired>(&event);
  return repaired == nullptr ? model::JobId() : model::JobId(repaired->last_job_id);
}

}  // namespace gpu_platform::store
