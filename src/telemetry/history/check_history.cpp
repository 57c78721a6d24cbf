#include "telemetry/history/check_history.h"

#include <system_error>

#include "store/sqlite/data_dir.h"
#include "telemetry/block.h"
#include "telemetry/history/schema.h"

namespace gpu_platform::telemetry {

namespace {

base::Status read_all_of(const store::Database& database, HistoryCheck& check) {
  TRY_ASSIGN(const bool has_tables, check_form(database));
  if (!has_tables) return {};
  TRY_ASSIGN(const std::string structure, database.query_text("PRAGMA integrity_check(1)"));
  if (structure != "ok") return base::fail(base::ErrorCode::kDataLoss, structure);
  TRY_ASSIGN(const std::int64_t notes, database.query_integer("SELECT COUNT(*) FROM notes"));
  check.notes = static_cast<std::uint64_t>(notes);
  TRY_ASSIGN(store::Statement blocks, database.prepare("SELECT bytes FROM blocks"));
  while (true) {
    TRY_ASSIGN(const bool has_row, blocks.step());
    if (!has_row) return {};
    ++(decode_block(blocks.blob(0)) ? check.blocks : check.damaged_blocks);
  }
}

}  // namespace

std::optional<HistoryCheck> check_history(const std::filesystem::path& path) {
  if (!store::file_exists(path)) return std::nullopt;
  HistoryCheck check;
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (!failed) check.bytes = bytes;
  const auto database = store::Database::open(path.string(), store::Database::Mode::kReadOnly);
  if (!database) {
    check.problem = database.error().message;
    return check;
  }
  if (const auto read = read_all_of(*database, check); !read) check.problem = read.error().message;
  return check;
}

}  // namespace gpu_platform::telemetry
