#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "base/result.h"

// SQLite as the store uses it: connections and prepared statements that close themselves, and
// results in place of return codes. One thread at a time per connection.

namespace gpu_platform::store {

// kDataLoss for a damaged file, kResourceExhausted for a full disk, kUnavailable for a database
// that another process has locked, kInternal for the rest. `doing` names the action for the
// message.
base::Error sqlite_error(sqlite3* database, int code, std::string_view doing);

// A prepared statement. step() until it returns false (or an error), then reset() or destroy. Views
// given by text() and blob() hold until the next step, reset or destruction. Bound text and blobs
// are not copied: they must outlive the statement's run.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  Statement& bind(std::int64_t value);
  Statement& bind(std::uint64_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::string_view text);
  Statement& bind_blob(std::string_view bytes);

  // True when there is a row.
  base::Result<bool> step();
  // Runs a statement that yields no rows, and resets it.
  base::Status run();
  // Ends the run and forgets what was bound.
  void reset();

  std::int64_t integer(int column) const;
  std::uint64_t number(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  std::string_view text(int column) const;
  std::string_view blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

// Resets a kept statement at the end of the scope, so that an early return leaves no read open.
class StatementRun {
 public:
  explicit StatementRun(Statement& statement) : statement_(statement) {}
  ~StatementRun() { statement_.reset(); }
  StatementRun(const StatementRun&) = delete;
  StatementRun& operator=(const StatementRun&) = delete;

 private:
  Statement& statement_;
};

class Database {
 public:
  enum class Mode {
    kReadWrite,  // the file must exist
    kReadOnly,
    kWithoutLog,  // as kReadOnly, but the file alone: its log is not looked at
    kMemory,      // a private database in memory; the path is not looked at
    // As kReadWrite, but closing leaves the write-ahead log alone, so that looking at a file that
    // turns out to be damaged changes nothing.
    kKeepLog,
  };

  Database() = default;
  static base::Result<Database> open(const std::string& path, Mode mode);

  base::Result<Statement> prepare(std::string_view sql) const;
  base::Status execute(const std::string& sql) const;
  // The first column of the first row.
  base::Result<std::int64_t> query_integer(std::string_view sql) const;
  base::Result<std::string> query_text(std::string_view sql) const;

  // Runs `work` in one transaction: committed when it succeeds, rolled back when it or the commit
  // fails.
  base::Status transaction(const std::function<base::Status()>& work) const;

  bool is_open() const { return handle_ != nullptr; }
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
  mutable Statement begin_;
  mutable Statement commit_;
};

}  // namespace gpu_platform::store
