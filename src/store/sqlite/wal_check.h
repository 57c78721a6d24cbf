#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace gpu_platform::store {

struct WalSummary {
  bool is_present = false;
  std::uint64_t valid_frames = 0;    // up to the last commit that SQLite will take
  std::uint64_t database_pages = 0;  // after that commit, 0 when there is none
};

// Reads a write-ahead log as SQLite's recovery will. SQLite takes the first frame that does not
// verify for the end of the log, which is right for a log that a crash cut off, and silently loses
// acknowledged commits when a frame in the middle has been damaged. The two can be told apart: a
// transaction is begun only after the one before it was synced, so at most one commit of the
// current run of the log can lie behind the first bad frame after a crash. More are damage:
// kDataLoss. (Damage to the very last commit looks like a crash during it; the head row tells when
// the database's own pages are newer.) To be called before SQLite opens the file.
base::Result<WalSummary> check_wal(const std::filesystem::path& wal);

}  // namespace gpu_platform::store
