#include "store/sqlite/open_database.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "store/sqlite/mark_check.h"
#include "store/sqlite/records.h"

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

// What should not be there before the first database is. Empty when nothing is.
std::string trace_of_a_store(const StoreFiles& files, const DirectoryLock& lock) {
  for (const auto& path : {files.marker, files.wal, files.ballast}) {
    if (file_exists(path)) return path.filename().string();
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(files.dir, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with("store.db.damaged-")) return name;
  }
  return lock.was_left_open() ? files.lock.filename().string() : "";
}

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// 0: none that SQLite knows.
std::uint64_t page_size(std::string_view bytes) {
  const std::uint32_t size = big_endian(bytes);
  if (size == 1) return 65536;
  return size >= 512 && std::has_single_bit(size) ? size : 0;
}

// The fields of https://www.sqlite.org/fileformat2.html#the_database_header that never change in a
// database of ours, or of a copy that SQLite made of one.
struct FileHeader {
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;   // of which the header speaks
  bool has_log_mode = true;  // false: made by VACUUM INTO or from a dump, and not opened since
};

base::Result<FileHeader> check_header(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::unexpected(base::system_error("open " + path.string(), errno));
  std::array<char, 100> bytes{};
  if (!in.read(bytes.data(), bytes.size())) {
    return fail(ErrorCode::kDataLoss, fmt::format("the file is only {} bytes long", in.gcount()));
  }
  const std::string_view header(bytes.data(), bytes.size());
  if (header.substr(0, 16) != std::string_view("SQLite format 3\0", 16)) {
    return fail(ErrorCode::kDataLoss, "the file is not an SQLite database");
  }
  // Write and read version 2: write-ahead log, or 1: none; no reserved bytes; fixed fractions.
  constexpr std::string_view kLayout("\x02\x02\x00\x40\x20\x20", 6);
  constexpr std::string_view kLayoutOfCopy("\x01\x01\x00\x40\x20\x20", 6);
  const std::string_view layout = header.substr(18, 6);
  const std::uint64_t page_bytes = page_size(header.substr(16, 2));
  // Schema format 4, default cache size, no auto-vacuum, UTF-8.
  constexpr std::string_view kFormat("\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\1", 16);
  const std::uint32_t application = big_endian(header.substr(68, 4));
  if (page_bytes == 0 || (layout != kLayout && layout != kLayoutOfCopy) ||
      header.substr(44, 16) != kFormat || big_endian(header.substr(64, 4)) != 0) {
    return fail(ErrorCode::kDataLoss, "the file header is not that of a store");
  }
  // A dump does not say whose it is: the list of tables will (check_schema).
  if (application != kApplicationId && application != 0) {
    return fail(ErrorCode::kDataLoss, "the file is a SQLite database of another program");
  }
  return FileHeader{page_bytes, big_endian(header.substr(28, 4)), layout == kLayout};
}

base::Status check_size(const StoreFiles& files, const FileHeader& header, const WalSummary& wal,
                        const std::optional<Mark>& mark) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(files.database, error);
  // With commits in the log, pages may be missing that are there; more than all there cannot be.
  const bool has_log = wal.valid_frames > 0;
  const std::uint64_t pages = has_log ? wal.database_pages : header.pages;
  const std::uint64_t due = pages * header.page_bytes;
  // It never gets smaller, unless a person had it done.
  const std::uint64_t least = has_log && mark ? std::min(mark->copied_bytes, due) : 0;
  const bool fits = has_log ? size <= due && size >= least : size == due;
  if (!error && fits) return {};
  return fail(ErrorCode::kDataLoss,
              fmt::format("the file has {} bytes where {} pages of {} are due", size, pages,
                          header.page_bytes));
}

}  // namespace

base::Status create_database(const std::filesystem::path& path, std::span<const Migration> steps) {
  for (const char* suffix : {"", "-wal", "-shm"}) TRY(remove_file(path.string() + suffix));
  TRY(create_private_file(path));
  TRY_ASSIGN(const Database database, Database::open(path.string(), Database::Mode::kReadWrite));
  TRY(database.execute(fmt::format("PRAGMA page_size = {}", kPageBytes)));
  TRY(database.execute("PRAGMA journal_mode = WAL"));
  TRY(database.execute("PRAGMA synchronous = FULL"));
  TRY(create_schema(database, steps));
  TRY_ASSIGN(RecordWriter writer, RecordWriter::prepare(database));
  TRY(database.transaction([&] { return writer.put_head(Head{}); }));
  return database.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

base::Status create_store(const StoreFiles& files, const DirectoryLock& lock,
                          std::span<const Migration> steps) {
  const std::string trace = trace_of_a_store(files, lock);
  if (!trace.empty()) {
    return std::unexpected(damaged_store(
        files, fmt::format("it is missing, but {} shows that there was one (to start with an empty "
                           "store, use another data directory)",
                           trace)));
  }
  TRY(create_database(files.creating, steps));
  TRY(rename_file(files.creating, files.database));
  TRY(sync_directory(files.dir));
  TRY(make_marker(files.marker, {}));
  return sync_directory(files.dir);
}

base::Status check_files(const StoreFiles& files, const DirectoryLock& lock,
                         const std::optional<Mark>& mark, bool log_may_be_missing) {
  TRY_ASSIGN(const FileHeader header, check_header(files.database));
  TRY_ASSIGN(const WalSummary wal, check_wal(files.wal));
  if (wal.valid_frames > 0 && !header.has_log_mode) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{} belongs to another database (if store.db is a backup that was put "
                            "here, remove store.db-wal and store.db-shm)",
                            files.wal.string()));
  }
  if (!wal.is_present && lock.was_left_open() && !log_may_be_missing) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{} is missing: it held the last commits of a program that did not end "
                            "in order",
                            files.wal.string()));
  }
  // Before the size, which an older database does not have either: this says more.
  if (wal.valid_frames > 0) TRY(check_base_of_log(files, mark));
  return check_size(files, header, wal, mark);
}

}  // namespace gpu_platform::store
