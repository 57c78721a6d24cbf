#include "outbound/queue.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "os/descriptor.h"

namespace gpu_platform::outbound {

namespace {

using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::int64_t kPageBytes = 4096;

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS messages ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, key TEXT NOT NULL,"
    " is_done INTEGER NOT NULL DEFAULT 0, made_ns INTEGER NOT NULL, content_type TEXT NOT NULL,"
    " subject TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (channel, key));"
    "CREATE INDEX IF NOT EXISTS waiting ON messages (is_done, channel, id);";

// Files of earlier programs do not have it.
constexpr const char* kAddRecipients =
    "ALTER TABLE messages ADD COLUMN recipients TEXT NOT NULL DEFAULT ''";

ErrorCode code_of(int code) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kDataLoss;
    case SQLITE_FULL:
      return ErrorCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::kAlreadyExists;
    default:
      return ErrorCode::kInternal;
  }
}

std::unexpected<base::Error> sqlite_failure(sqlite3* database, std::string_view doing) {
  const int code = sqlite3_extended_errcode(database);
  const bool is_disk_full =
      (code & 0xff) == SQLITE_IOERR && sqlite3_system_errno(database) == ENOSPC;
  return base::fail(is_disk_full ? ErrorCode::kResourceExhausted : code_of(code),
                    fmt::format("the queue of messages: {}: {} (SQLite code {})", doing,
                                sqlite3_errmsg(database), code));
}

Status execute(sqlite3* database, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_failure(database, sql);
}

// A statement with its parameters in order. They outlive it.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) : database_(database), sql_(sql) {
    if (sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) != SQLITE_OK) {
      statement_ = nullptr;
    }
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Statement& bind(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(const std::string& text) {
    sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
  }
  Statement& bind_bytes(const std::string& bytes) {
    sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_STATIC);
    return *this;
  }
  // Whether there is a row.
  Result<bool> step() {
    const int code = statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return sqlite_failure(database_, sql_);
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string bytes(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return data == nullptr ? std::string() : std::string(data, size);
  }

 private:
  sqlite3* database_;
  const char* sql_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

// SQLite gives the files beside it the rights of this one.
Status make_file(const std::string& folder, const std::string& path) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(base::system_error("make " + folder, errno));
  }
  const os::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return std::unexpected(base::system_error("open " + path, errno));
  return {};
}

Status find_damage(sqlite3* database) {
  Statement check(database, "PRAGMA quick_check(1)");
  TRY_ASSIGN(const bool has_row, check.step());
  if (has_row && check.bytes(0) == "ok") return {};
  return base::fail(ErrorCode::kDataLoss, has_row ? check.bytes(0) : "it cannot be checked");
}

std::string put_aside(const std::string& path) {
  for (int number = 1;; ++number) {
    const std::string other = fmt::format("{}.damaged-{}", path, number);
    if (::access(other.c_str(), F_OK) == 0) continue;
    ::rename(path.c_str(), other.c_str());
    ::unlink((path + "-wal").c_str());
    ::unlink((path + "-shm").c_str());
    return other;
  }
}

Status add_recipients(sqlite3* database) {
  Statement known(database,
                  "SELECT 1 FROM pragma_table_info('messages') WHERE name = 'recipients'");
  TRY_ASSIGN(const bool is_known, known.step());
  return is_known ? Status() : execute(database, kAddRecipients);
}

// Addresses have no line breaks.
std::string joined(const std::vector<std::string>& recipients) {
  return fmt::format("{}", fmt::join(recipients, "\n"));
}

std::vector<std::string> parted(std::string_view recipients) {
  std::vector<std::string> all;
  while (!recipients.empty()) {
    const std::size_t end = recipients.find('\n');
    all.emplace_back(recipients.substr(0, end));
    recipients.remove_prefix(end == std::string_view::npos ? recipients.size() : end + 1);
  }
  return all;
}

Status drop_channels(sqlite3* database, const std::map<std::string, std::uint64_t>& channels) {
  for (const auto& [channel, count] : channels) {
    Statement drop(database, "DELETE FROM messages WHERE channel = ?");
    TRY(drop.bind(channel).step());
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Queue>> Queue::open(Options options) {
  const std::string path = options.folder + "/outbox.db";
  for (bool is_second = false;; is_second = true) {
    TRY(make_file(options.folder, path));
    sqlite3* raw = nullptr;
    const int code =
        sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    std::unique_ptr<Queue> queue(new Queue(options, Handle(raw, sqlite3_close)));
    if (code != SQLITE_OK) return sqlite_failure(raw, "open " + path);
    Status status = queue->prepare();
    if (status) return queue;
    if (status.error().code != ErrorCode::kDataLoss || is_second) {
      return std::unexpected(std::move(status).error());
    }
    queue.reset();
    const std::string aside = put_aside(path);
    if (options.warn) {
      options.warn(fmt::format("outbox file={} damaged: {}; moved to {}, its messages are lost",
                               path, status.error().message, aside));
    }
  }
}

Status Queue::prepare() {
  sqlite3* database = database_.get();
  sqlite3_extended_result_codes(database, 1);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Two that deliver from one file would deliver everything twice.
  sqlite3_busy_timeout(database, 2000);
  TRY(execute(database, "PRAGMA locking_mode = EXCLUSIVE"));
  TRY(execute(database, "PRAGMA journal_mode = WAL"));
  TRY(execute(database, "PRAGMA synchronous = FULL"));
  TRY(find_damage(database));
  TRY(execute(database, kSchema));
  TRY(add_recipients(database));
  TRY(execute(
      database,
      fmt::format("PRAGMA max_page_count = {}", options_.max_bytes.value() / kPageBytes).c_str()));
  Statement counts(database,
                   "SELECT channel, count(*) FROM messages WHERE is_done = 0 GROUP BY channel");
  while (true) {
    TRY_ASSIGN(const bool has_row, counts.step());
    if (!has_row) return {};
    counts_[counts.bytes(0)] = static_cast<std::uint64_t>(counts.integer(1));
  }
}

Status Queue::in_transaction(const std::function<Status()>& work) {
  TRY(execute(database_.get(), "BEGIN IMMEDIATE"));
  Status status = work();
  if (status) status = execute(database_.get(), "COMMIT");
  // Some errors (full disk, input/output) have rolled back already.
  if (!status && sqlite3_get_autocommit(database_.get()) == 0) {
    (void)execute(database_.get(), "ROLLBACK");
  }
  return status;
}

Result<std::uint64_t> Queue::put(const Delivery& delivery) {
  if (delivery.key.empty()) return base::invalid("key", "a message needs a key");
  if (delivery.body.size() + delivery.subject.size() > kMaxMessageBytes) {
    return base::invalid("body", fmt::format("a message has at most {} bytes", kMaxMessageBytes));
  }
  const std::lock_guard lock(mutex_);
  std::uint64_t& count = counts_[delivery.channel];
  bool is_new = false;
  std::uint64_t dropped = 0;
  TRY(in_transaction([&] { return put_in_transaction(delivery, count, is_new, dropped); }));
  count = count + (is_new ? 1 : 0) - dropped;
  return dropped;
}

Status Queue::put_in_transaction(const Delivery& delivery, std::uint64_t count, bool& is_new,
                                 std::uint64_t& dropped) {
  Statement insert(database_.get(),
                   "INSERT OR IGNORE INTO messages"
                   " (channel, key, made_ns, content_type, subject, body, recipients)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?)");
  const std::string recipients = joined(delivery.to);
  insert.bind(delivery.channel).bind(delivery.key).bind(delivery.made.unix_ns());
  insert.bind(delivery.content_type).bind(delivery.subject).bind_bytes(delivery.body);
  insert.bind(recipients);
  TRY(insert.step());
  is_new = sqlite3_changes(database_.get()) == 1;
  if (!is_new || count < options_.max_waiting) return {};
  Statement drop(database_.get(),
                 "DELETE FROM messages WHERE id IN (SELECT id FROM messages"
                 " WHERE is_done = 0 AND channel = ? ORDER BY id LIMIT ?)");
  drop.bind(delivery.channel);
  drop.bind(static_cast<std::int64_t>(count + 1 - options_.max_waiting));
  TRY(drop.step());
  dropped = static_cast<std::uint64_t>(sqlite3_changes(database_.get()));
  return {};
}

Result<std::optional<Queue::Message>> Queue::front(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  Statement select(database_.get(),
                   "SELECT id, key, made_ns, content_type, subject, body, recipients FROM messages"
                   " WHERE is_done = 0 AND channel = ? ORDER BY id LIMIT 1");
  select.bind(channel);
  TRY_ASSIGN(const bool has_row, select.step());
  if (!has_row) return std::nullopt;
  Message message;
  message.id = select.integer(0);
  message.delivery = {.channel = channel,
                      .key = select.bytes(1),
                      .content_type = select.bytes(3),
                      .subject = select.bytes(4),
                      .body = select.bytes(5),
                      .to = parted(select.bytes(6)),
                      .made = base::Instant(select.integer(2))};
  return message;
}

Status Queue::done(const Message& message) {
  const std::lock_guard lock(mutex_);
  std::uint64_t changed = 0;
  // Without a sync: each message has had one, and the next put() syncs this, too.
  TRY(execute(database_.get(), "PRAGMA synchronous = NORMAL"));
  const Status status = in_transaction([&]() -> Status {
    Statement mark(database_.get(),
                   "UPDATE messages SET is_done = 1, subject = '', body = x'', recipients = ''"
                   " WHERE id = ? AND is_done = 0");
    TRY(mark.bind(message.id).step());
    changed = static_cast<std::uint64_t>(sqlite3_changes(database_.get()));
    Statement forget(database_.get(),
                     "DELETE FROM messages WHERE is_done = 1 AND channel = ? AND id <= ?");
    TRY(forget.bind(message.delivery.channel).bind(message.id - kRemembered).step());
    return {};
  });
  TRY(execute(database_.get(), "PRAGMA synchronous = FULL"));
  TRY(status);
  counts_[message.delivery.channel] -= changed;
  return {};
}

Result<std::map<std::string, std::uint64_t>> Queue::keep_only(
    const std::set<std::string>& channels) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::uint64_t> dropped;
  for (const auto& [channel, count] : counts_) {
    if (!channels.contains(channel)) dropped[channel] = count;
  }
  TRY(in_transaction([&] { return drop_channels(database_.get(), dropped); }));
  for (const auto& [channel, count] : dropped) counts_.erase(channel);
  std::erase_if(dropped, [](const auto& entry) { return entry.second == 0; });
  return dropped;
}

Queue::Waiting Queue::waiting(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(channel);
  Waiting waiting{.count = found == counts_.end() ? 0 : found->second, .oldest = std::nullopt};
  Statement oldest(database_.get(),
                   "SELECT made_ns FROM messages WHERE is_done = 0 AND channel = ?"
                   " ORDER BY id LIMIT 1");
  const Result<bool> has_row = oldest.bind(channel).step();
  if (has_row && *has_row) waiting.oldest = base::Instant(oldest.integer(0));
  return waiting;
}

}  // namespace gpu_platform::outbound
