#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/store.h"

namespace gpu_platform::store {

// A query with its parameters in order; the text depends on which filters are set, never on their
// values, so prepared statements can be kept by it. Parameters refer to the query, which must
// outlive it.
struct ArchiveSql {
  std::string text;
  std::vector<std::variant<std::int64_t, std::string_view>> parameters;
};

// Yields the columns kJobColumns of table jobs, newest first, at most query.limit rows. Which index
// drives the search is decided here rather than by SQLite's planner, which has no statistics to go
// by: a page of 100 jobs out of a million is found without reading rows that do not match, except
// where two filters match much each and little together. `from`: only ids from there on (invalid:
// all); with it, a bound of the time is only tested (latest_endings.h has found where to look).
ArchiveSql archive_sql(const ArchiveQuery& query, model::JobId from = {});

}  // namespace gpu_platform::store
