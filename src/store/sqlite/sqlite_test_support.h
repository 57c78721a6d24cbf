#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "store/sqlite/sqlite_store.h"
#include "store/test_support.h"

namespace gpu_platform::store {

// Small reserves, so that tests do not fill the disk.
inline SqliteOptions options_for(const std::filesystem::path& dir) {
  return {.dir = dir, .headroom = {.ballast = base::kMiB, .low_water = base::kMiB}};
}

inline std::unique_ptr<SqliteStore> open_store(const std::filesystem::path& dir) {
  auto store = SqliteStore::open(options_for(dir));
  EXPECT_TRUE(store) << store.error().message;
  return store ? *std::move(store) : nullptr;
}

// The error of opening the store, for tests that expect one.
inline base::Error open_error(const SqliteOptions& options) {
  auto store = SqliteStore::open(options);
  EXPECT_FALSE(store) << "expected an error";
  return store ? base::Error{} : store.error();
}
inline base::Error open_error(const std::filesystem::path& dir) {
  return open_error(options_for(dir));
}

// Runs SQL on the database of a closed store, as the sqlite3 shell could.
inline void run_sql(const std::filesystem::path& dir, const std::string& sql) {
  auto database = Database::open((dir / "store.db").string(), Database::Mode::kReadWrite);
  ASSERT_TRUE(database) << database.error().message;
  const auto status = database->execute(sql);
  ASSERT_TRUE(status) << status.error().message;
}

// Makes a database one of version 3, which had no ledger.
inline constexpr std::string_view kToVersion3 =
    "DROP TABLE ledger; DROP TABLE ledger_names; DROP TABLE ledger_users; DROP TABLE ledger_gap;"
    "PRAGMA user_version = 3";

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline bool mentions(const base::Error& error, std::string_view text) {
  return error.message.find(text) != std::string::npos;
}

}  // namespace gpu_platform::store
