#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

// Reads rows from the pages of a damaged database and of its log, without SQLite. A page that the
// tree of a table does not lead to any more, a frame behind the place where SQLite takes the log to
// end, an older image of a page: rows are found in each of them. Whether a row is what was written
// is for its own checksum to say (records.h).
//
// https://www.sqlite.org/fileformat2.html describes pages, cells and records.

namespace gpu_platform::store {

// A value as it is stored; views hold until the visit ends. A number that SQLite stores as a
// fraction is left out: the store has none.
struct RawValue {
  enum class Kind { kNull, kInteger, kText, kBlob };
  Kind kind = Kind::kNull;
  std::int64_t integer = 0;
  std::string_view bytes;
};

struct RawRow {
  bool has_rowid = false;  // false: of a table without row ids, or of an index
  std::int64_t rowid = 0;
  std::vector<RawValue> values;
};

// Calls visit for everything in the two files that looks like a row, some many times, in no order.
// A file that is not there or cannot be read has none.
base::Status visit_raw_rows(const std::filesystem::path& database, const std::filesystem::path& wal,
                            const std::function<base::Status(const RawRow&)>& visit);

}  // namespace gpu_platform::store
