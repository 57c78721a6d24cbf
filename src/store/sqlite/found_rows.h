#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "store/sqlite/data_dir.h"
#include "store/sqlite/database.h"
#include "store/sqlite/records.h"

// Rows of a damaged store that SQLite does not give any more, but that lie in a page of the
// database or of its log all the same (raw_pages.h), and verify.

namespace gpu_platform::store {

// What is known without them. Each says whether that row needs no finding.
struct KnownRows {
  std::function<bool(std::uint64_t first, std::uint64_t last)> has_events;  // any of these
  std::function<bool(std::uint64_t upto)> has_snapshot;
  std::function<bool(std::uint64_t id)> has_job;
  std::function<bool(std::uint64_t first_seq)> has_audit;
  std::function<bool(std::string_view ref)> has_environment;
};

struct FoundRows {
  Database database;         // a store's tables, with these rows alone; files.found
  std::optional<Head> head;  // the latest head row
  std::uint64_t rows = 0;
};

// Collects them in files.found, which is for the caller to remove. No connection to the database of
// the store may be open. Costs a look at every page.
base::Result<FoundRows> find_rows(const StoreFiles& files, const KnownRows& known);

}  // namespace gpu_platform::store
