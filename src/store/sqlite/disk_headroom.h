#pragma once

#include <filesystem>

#include "base/result.h"
#include "base/units.h"
#include "store/store.h"

namespace gpu_platform::store {

struct DiskHeadroomOptions {
  // Kept in a file of its own and given up when the disk is full, so that the endings of accepted
  // jobs can still be recorded. Zero: none.
  base::Bytes ballast = base::kMiB * 32;
  // Less than this free beside the ballast: no new work.
  base::Bytes low_water = base::kMiB * 16;
};

// Watches the space of the file system that holds the data directory and keeps a reserve of it.
// Used by the thread that owns the journal; each call costs one statvfs.
class DiskHeadroom {
 public:
  DiskHeadroom(std::filesystem::path ballast_file, DiskHeadroomOptions options);

  // What is free now; makes, gives up and makes again the ballast as the space comes and goes.
  // kAmple only while the whole reserve is there. Space that cannot be asked for counts as none.
  Headroom assess();

  // Gives up the ballast, if there is one. True when that freed space.
  bool release_ballast();

  // Free for an unprivileged writer beside the ballast.
  base::Bytes available() const;

 private:
  bool make_ballast();

  std::filesystem::path file_;
  std::filesystem::path directory_;
  DiskHeadroomOptions options_;
  bool has_ballast_ = false;
  bool is_low_ = false;
};

}  // namespace gpu_platform::store
