#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/units.h"

// store.marker: says that a database was made here, and how much of it was durable. It is a file of
// its own, so that a database (or a log) that is older than work that was acknowledged is noticed:
// a backup that was put back, a log that was cut off.
//
// The file has a fixed size and is written in place, without a sync, after the commit of which it
// speaks is synced. So it may lag behind the database, after a power cut by much, and is never
// ahead of it. Two places are written in turn, each with a checksum: one that was torn or damaged
// leaves the other. A file without a valid place says nothing, and is made anew.

namespace gpu_platform::store {

struct Mark {
  std::uint64_t last_seq = 0;        // last event that was durable; 0: none
  base::Instant at;                  // its time
  std::uint64_t last_job = 0;        // the highest id that may have been given to a job
  std::uint64_t batch_first = 0;     // the batch that ends with last_seq; 0: not known
  std::uint64_t batch_checksum = 0;  // of that batch
  std::uint64_t copied_seq = 0;      // the database has it without its log
  std::uint64_t copied_bytes = 0;    // and was so large then; 0: not known

  friend bool operator==(const Mark&, const Mark&) = default;
};

// The valid mark of the file; nothing where there is none.
std::optional<Mark> read_mark(const std::filesystem::path& marker);

// Writes the whole file anew and syncs it. An error changes nothing that counts: the caller may go
// on without.
base::Status make_marker(const std::filesystem::path& marker, const Mark& mark);

// The writing side while the store is open. The file is mapped, as SQLite maps store.db-shm: a
// system call after each commit would be as dear as a tenth of the commit.
class MarkWriter {
 public:
  // A file that cannot be opened, or that the disk has no room for, is not written.
  explicit MarkWriter(const std::filesystem::path& marker);
  MarkWriter() = default;

  // A failure is no error: the mark lags.
  void write(const Mark& mark);

 private:
  struct Unmap {
    void operator()(char* file) const;
  };
  std::unique_ptr<char, Unmap> file_;
  std::uint64_t turn_ = 0;
};

}  // namespace gpu_platform::store
