#include "store/sqlite/database.h"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::store {

namespace {

base::ErrorCode code_of(sqlite3* database, int code) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return base::ErrorCode::kDataLoss;
    case SQLITE_FULL:
      return base::ErrorCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return base::ErrorCode::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return base::ErrorCode::kPermissionDenied;
    default:
      break;
  }
  // A page that cannot be read is lost data; a page that cannot be written may be a full disk.
  if (code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ ||
      code == SQLITE_IOERR_CORRUPTFS || code == SQLITE_IOERR_DATA) {
    return base::ErrorCode::kDataLoss;
  }
  if (database != nullptr && (code & 0xff) == SQLITE_IOERR &&
      sqlite3_system_errno(database) == ENOSPC) {
    return base::ErrorCode::kResourceExhausted;
  }
  return base::ErrorCode::kInternal;
}

}  // namespace

base::Error sqlite_error(sqlite3* database, int code, std::string_view doing) {
  const int extended = database != nullptr ? sqlite3_extended_errcode(database) : code;
  const char* text = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  std::string message = fmt::format("{}: {} (SQLite code {})", doing, text, extended);
  const int system_error = database != nullptr ? sqlite3_system_errno(database) : 0;
  if ((extended & 0xff) == SQLITE_IOERR && system_error != 0) {
    message += ", " + base::system_error("system", system_error).message;
  }
  return base::Error{code_of(database, extended), std::move(message), {}};
}

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text64(statement_.get(), ++bound_, text.data() == nullptr ? "" : text.data(),
                      text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data() == nullptr ? "" : bytes.data(),
                      bytes.size(), SQLITE_STATIC);
  return *this;
}

base::Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3* database = sqlite3_db_handle(statement_.get());
  return std::unexpected(sqlite_error(database, code, sqlite3_sql(statement_.get())));
}

base::Status Statement::run() {
  const StatementRun scope(*this);
  TRY(step());
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::text(int column) const {
  const void* bytes = sqlite3_column_text(statement_.get(), column);
  if (bytes == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

namespace {

int open_flags(Database::Mode mode) {
  switch (mode) {
    case Database::Mode::kReadOnly:
      return SQLITE_OPEN_READONLY;
    case Database::Mode::kWithoutLog:
      return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    case Database::Mode::kMemory:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    default:
      return SQLITE_OPEN_READWRITE;
  }
}

// The file as a URI that SQLite takes for one that never changes: then it reads no log.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02x}", byte);
  }
  return uri + "?immutable=1";
}

}  // namespace

base::Result<Database> Database::open(const std::string& path, Mode mode) {
  sqlite3* raw = nullptr;
  const std::string name = mode == Mode::kMemory       ? ":memory:"
                           : mode == Mode::kWithoutLog ? immutable_uri(path)
                                                       : path;
  const int code =
      sqlite3_open_v2(name.c_str(), &raw, open_flags(mode) | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.handle_.reset(raw);
  if (code != SQLITE_OK) return std::unexpected(sqlite_error(raw, code, "open " + path));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  if (mode == Mode::kKeepLog) {
    int on = 1;
    sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_file_control(raw, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
  }
  // Waits out another process that recovers or closes the file.
  sqlite3_busy_timeout(raw, 5000);
  TRY_ASSIGN(database.begin_, database.prepare("BEGIN IMMEDIATE"));
  TRY_ASSIGN(database.commit_, database.prepare("COMMIT"));
  return database;
}

base::Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(handle(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return std::unexpected(sqlite_error(handle(), code, sql));
  return Statement(raw);
}

base::Status Database::execute(const std::string& sql) const {
  const int code = sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(sqlite_error(handle(), code, sql));
  return {};
}

base::Result<std::int64_t> Database::query_integer(std::string_view sql) const {
  TRY_ASSIGN(Statement statement, prepare(sql));
  TRY_ASSIGN(const bool has_row, statement.step());
  if (!has_row) {
    return base::fail(base::ErrorCode::kNotFound, fmt::format("{}: no row", sql));
  }
  return statement.integer(0);
}

base::Result<std::string> Database::query_text(std::string_view sql) const {
  TRY_ASSIGN(Statement statement, prepare(sql));
  TRY_ASSIGN(const bool has_row, statement.step());
  if (!has_row) {
    return base::fail(base::ErrorCode::kNotFound, fmt::format("{}: no row", sql));
  }
  return std::string(statement.text(0));
}

base::Status Database::transaction(const std::function<base::Status()>& work) const {
  TRY(begin_.run());
  base::Status status = work();
  if (status) status = commit_.run();
  // Some errors (full disk, input/output) have rolled back already.
  if (!status && sqlite3_get_autocommit(handle()) == 0) {
    sqlite3_exec(handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return status;
}

}  // namespace gpu_platform::store
