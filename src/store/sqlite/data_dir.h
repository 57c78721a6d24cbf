#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "os/descriptor.h"

// The files of a store and their users:
//
//   lock             held (flock) by the one process that uses the directory; its pid, and "open"
//                    while the database is
//   store.db         the database, with store.db-wal and store.db-shm beside it
//   store.marker     says that a database was made here and what of it was durable
//                    (durable_mark.h), so that a missing or older one is noticed
//   store.ballast    reserved space (disk_headroom.h)
//   store.db.damaged-N   what a recovery has put aside
//
// Files are made readable and writable by their owner alone.

namespace gpu_platform::store {

struct StoreFiles {
  explicit StoreFiles(std::filesystem::path data_dir) : dir(std::move(data_dir)) {}

  std::filesystem::path dir;
  std::filesystem::path lock = dir / "lock";
  std::filesystem::path database = dir / "store.db";
  std::filesystem::path wal = dir / "store.db-wal";
  std::filesystem::path shared_memory = dir / "store.db-shm";
  std::filesystem::path marker = dir / "store.marker";
  std::filesystem::path ballast = dir / "store.ballast";
  std::filesystem::path creating = dir / "store.db.creating";
  std::filesystem::path recovering = dir / "store.db.recovering";  // a recovery under way
  std::filesystem::path found = dir / "store.db.found";          // rows that only their pages have
  std::filesystem::path recovered = dir / "store.db.recovered";  // complete, not yet in its place
};

// The right to use a data directory, released with the object or the process. Not inherited by
// programs that this one executes.
class DirectoryLock {
 public:
  // kAlreadyExists, naming the holder's pid, when another process has it.
  static base::Result<DirectoryLock> acquire(const StoreFiles& files);

  // Whether the last holder ended without closing the database.
  bool was_left_open() const { return was_left_open_; }
  // Notes that the database is open from here on, or closed again.
  base::Status note_open();
  base::Status note_closed();

 private:
  base::Status write(std::string_view text);

  os::Descriptor fd_;
  std::string path_;
  bool was_left_open_ = false;
};

// Makes the directory and its parents where missing: 0700, or 0711 where others may pass. Refuses
// one that others may write to.
base::Status prepare_directory(const StoreFiles& files, bool others_may_pass);

// Creates an empty file (0600), or empties an existing one.
base::Status create_private_file(const std::filesystem::path& path);
base::Status write_private_file(const std::filesystem::path& path, std::string_view content);
base::Status sync_directory(const std::filesystem::path& dir);
base::Status rename_file(const std::filesystem::path& from, const std::filesystem::path& to);
// No error when there is none.
base::Status remove_file(const std::filesystem::path& path);
bool file_exists(const std::filesystem::path& path);

// kDataLoss with what to do about it appended.
base::Error damaged_store(const StoreFiles& files, std::string_view what);

}  // namespace gpu_platform::store
