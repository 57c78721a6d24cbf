#include "store/sqlite/open_database.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

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
  for (const auto& entry : std::filesystem::directory_iterator(files.dir, error)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with("store.db.damaged-")) return name;
  }
  return lock.was_left_open() ? files.lock.filename().string() : "";
}

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// The fields of https://www.sqlite.org/fileformat2.html#the_database_header that never change in a
// database of ours. Gives the number of pages that the header speaks of.
base::Result<std::uint64_t> check_header(const std::filesystem::path& path) {
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
  // Page size; write and read version 2: write-ahead log; no reserved bytes; fixed fractions.
  constexpr std::string_view kLayout("\x10\x00\x02\x02\x00\x40\x20\x20", 8);
  // Schema format 4, default cache size, no auto-vacuum, UTF-8.
  constexpr std::string_view kFormat("\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\1", 16);
  if (header.substr(16, 8) != kLayout || header.substr(44, 16) != kFormat ||
      big_endian(header.substr(64, 4)) != 0) {
    return fail(ErrorCode::kDataLoss, "the file header is not that of a store");
  }
  if (big_endian(header.substr(68, 4)) != kApplicationId) {
    return fail(ErrorCode::kDataLoss, "the file is a SQLite database of another program");
  }
  return big_endian(header.substr(28, 4));
}

base::Status check_size(const StoreFiles& files, std::uint64_t pages_in_header,
                        const WalSummary& wal) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(files.database, error);
  // With commits in the log, pages may be missing that are there; more than all there cannot be.
  const bool has_log = wal.valid_frames > 0;
  const std::uint64_t pages = has_log ? wal.database_pages : pages_in_header;
  const bool fits = has_log ? size <= pages * kPageBytes : size == pages * kPageBytes;
  if (!error && fits) return {};
  return fail(
      ErrorCode::kDataLoss,
      fmt::format("the file has {} bytes where {} pages of {} are due", size, pages, kPageBytes));
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
  TRY(write_private_file(files.marker,
                         "A gpu-platform store was made here; its database is store.db.\n"));
  return sync_directory(files.dir);
}

base::Status check_files(const StoreFiles& files, const DirectoryLock& lock) {
  TRY_ASSIGN(const std::uint64_t pages, check_header(files.database));
  TRY_ASSIGN(const WalSummary wal, check_wal(files.wal));
  if (!wal.is_present && lock.was_left_open()) {
    return fail(ErrorCode::kDataLoss,
                fmt::format("{} is missing: it held the last commits of a program that did not end "
                            "in order",
                            files.wal.string()));
  }
  return check_size(files, pages, wal);
}

}  // namespace gpu_platform::store
