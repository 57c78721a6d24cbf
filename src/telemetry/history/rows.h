#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "store/sqlite/database.h"
#include "telemetry/block.h"
#include "telemetry/frame.h"

namespace gpu_platform::telemetry {

using SubjectId = std::int64_t;

// What has rows: the span of a tier of a subject.
struct SpanKey {
  SubjectId subject = 0;
  Tier tier = Tier::kRaw;
  base::Instant span;

  friend bool operator==(const SpanKey&, const SpanKey&) = default;
};

struct BlockRow {
  std::int64_t id = 0;
  bool is_piece = false;
  Block block;  // the columns have the names of metrics
};

// How much the file has and may shrink to.
struct FileSize {
  std::uint64_t bytes = 0;  // of the file alone
  std::uint64_t used = 0;   // of these, what has content
};

// The rows of the history's file as its writer sees them (schema.h). One thread. After a failure
// of a transaction, forget(): what it has read of the file may not be there.
class HistoryRows {
 public:
  // `max_bytes` is of the whole file and says how long its log may be. Errors: open_history().
  static base::Result<HistoryRows> open(const std::filesystem::path& path, base::Bytes max_bytes);

  const store::Database& database() const { return database_; }
  void forget();

  base::Result<SubjectId> id_of(const Subject& subject);  // made if it is new
  base::Result<Subject> subject(SubjectId id);
  // The last values of its counters that are in its points.
  base::Result<std::vector<Value>> counters(SubjectId id, Of of);
  base::Status set_counters(SubjectId id, const std::vector<Value>& counters);

  base::Status add(const SpanKey& key, const Block& block, bool is_piece);
  // In the order in which they came. Rows whose bytes are damaged are removed and counted. Where
  // the key came from an index, there are rows: kDataLoss if there are none.
  base::Result<std::vector<BlockRow>> rows_of(const SpanKey& key);
  base::Status set_whole(std::int64_t row);
  base::Status remove(std::int64_t row);

  // Spans with pieces that begin at or before `begins`, the oldest first, at most so many.
  base::Result<std::vector<SpanKey>> with_pieces(Tier tier, base::Instant begins,
                                                 std::size_t max_count);
  // The subjects of the oldest span of the tier, at most so many; empty: it has none.
  base::Result<std::vector<SpanKey>> oldest(Tier tier, std::size_t max_count);
  // Removes whole rows of spans that begin at or before `begins`, at most so many; how many.
  base::Result<std::uint64_t> remove_until(Tier tier, base::Instant begins, std::size_t max_count);
  base::Status remove_span(const SpanKey& key);  // kDataLoss if it has no row
  // Removes the subjects that have no row of blocks.
  base::Status remove_empty_subjects();

  base::Result<std::uint64_t> batch();
  base::Status set_batch(std::uint64_t number);
  base::Status put_note(std::string_view name, std::string_view bytes);
  base::Status remove_note(std::string_view name);
  // Roughly what the notes take. The first call looks at each of them.
  base::Result<std::uint64_t> note_bytes();
  // Removes summaries of jobs (kSummaryNotes), those of the oldest jobs first, until so many bytes
  // are free or so many notes are removed; how many. kDataLoss if one cannot be found again.
  base::Result<std::size_t> remove_oldest_summaries(std::uint64_t bytes, std::size_t max_count);

  base::Result<FileSize> size();
  // Gives the disk what has no content, as far as the file is larger than this, and copies the log
  // into the file. A log that has become too long is cut, unless readers are in its way.
  base::Status shrink(std::uint64_t bytes);
  // The begin of the newest span of the tier; none: it has no row.
  base::Result<std::optional<base::Instant>> newest_span(Tier tier);
  std::uint64_t damaged_rows() const { return damaged_rows_; }

 private:
  HistoryRows(store::Database database, std::int64_t max_log_pages)
      : database_(std::move(database)), max_log_pages_(max_log_pages) {}
  base::Status copy_log();
  base::Status count_note(std::string_view name, std::uint64_t bytes);
  base::Result<store::Statement*> statement(const char* sql);
  base::Result<std::string> code_of(const std::string& name);
  base::Result<std::string> name_of(const std::string& code);
  base::Result<std::string> encode(Block block);
  base::Result<std::optional<Block>> decode(std::string_view bytes);
  base::Result<std::vector<SpanKey>> keys(store::Statement& statement, Tier tier);

  store::Database database_;
  std::int64_t max_log_pages_ = 0;
  std::map<std::string_view, store::Statement> statements_;  // by their text, a literal
  std::map<Subject, SubjectId> ids_;
  std::map<std::string, std::string> codes_;  // of names
  std::map<std::string, std::string> names_;  // of codes
  std::optional<std::uint64_t> note_bytes_;   // none: not counted yet
  std::uint64_t damaged_rows_ = 0;
};

}  // namespace gpu_platform::telemetry
