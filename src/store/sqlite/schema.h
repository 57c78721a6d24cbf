#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/sqlite/database.h"

// The tables, and how a database of an earlier version becomes one of this. docs/journal.md
// describes them.

namespace gpu_platform::store {

// Marks the file as ours (PRAGMA application_id): "gpup".
inline constexpr std::int64_t kApplicationId = 0x67707570;

// One step of the schema: brings a database from `version - 1` to `version` (PRAGMA user_version).
struct Migration {
  std::int64_t version = 0;
  std::string_view sql;
};

// Every step there ever was, ascending from 1 without gaps. Steps are never changed, only added.
std::span<const Migration> migrations();

// Makes the tables in an empty database: every step, in one transaction.
base::Status create_schema(const Database& database, std::span<const Migration> steps);

// Brings the database to the newest version, all missing steps in one transaction; it is unchanged
// when that fails. kFailedPrecondition when the database is of a newer version than the last step,
// kDataLoss when its tables are not those of its own version.
base::Status upgrade_schema(const Database& database, std::span<const Migration> steps);

// The version that the database says; of a copy made from a dump, which says none, that of its
// tables. kDataLoss when it is no store.
base::Result<std::int64_t> schema_version(const Database& database,
                                          std::span<const Migration> steps);

// Compares the tables with those that the steps up to the database's version make.
base::Status check_schema(const Database& database, std::span<const Migration> steps);

}  // namespace gpu_platform::store
