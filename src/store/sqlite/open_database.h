#pragma once

#include <optional>
#include <span>

#include "base/result.h"
#include "store/sqlite/data_dir.h"
#include "store/sqlite/database.h"
#include "store/sqlite/durable_mark.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/wal_check.h"

// From files on disk to an open database that can be trusted as far as a quick look can tell. All
// of it needs the directory's lock, and no other connection of this process to the file may be
// open: closing a file drops the locks that SQLite holds on it (POSIX).

namespace gpu_platform::store {

inline constexpr std::uint64_t kPageBytes = 4096;

// Makes an empty database with its tables under `path`, complete and synced when it returns.
base::Status create_database(const std::filesystem::path& path, std::span<const Migration> steps);

// Makes the database of a new store. Refuses, with kDataLoss, when traces say that there was one.
base::Status create_store(const StoreFiles& files, const DirectoryLock& lock,
                          std::span<const Migration> steps);

// The file's header, its size and its log, before SQLite sees them; kDataLoss when something is
// wrong. Copies that SQLite made in any way are fine. A size that does not fit
// matters: with too few pages in its books, SQLite would write new ones over old ones.
// `log_may_be_missing`: also where the last program did not end in order.
base::Status check_files(const StoreFiles& files, const DirectoryLock& lock,
                         const std::optional<Mark>& mark, bool log_may_be_missing = false);

}  // namespace gpu_platform::store
