#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "telemetry/frame.h"

namespace gpu_platform::telemetry {

// The frames that have come and are not on disk yet. They become batches, which are numbered in
// the order in which they reach the disk, so that a reader knows which of them it has seen there.
// Safe from any thread. A lock is held while pointers are copied, never while a disk is waited for.
class OpenFrames {
 public:
  explicit OpenFrames(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Frames that do not fit are dropped and counted. Returns whether at least half of the room is
  // taken: then they should be written.
  bool add(const Frames& frames);

  struct Batch {
    std::uint64_t number = 0;
    std::vector<Frames> frames;
  };
  // All that is here, as the next batch. The frames stay here until written() or given_up().
  Batch begin();
  void written();
  // The batch could not be written. Its frames are kept for the next one up to so many bytes;
  // of more, the oldest are dropped and counted.
  void given_up(std::size_t max_kept_bytes);

  // What a reader needs in memory that has seen the batches up to this one on disk. None: a batch
  // behind it has left the memory; look at the disk again.
  std::optional<std::vector<Frames>> after(std::uint64_t batch) const;
  // The file's last batch is this one.
  void start_after(std::uint64_t batch);

  std::uint64_t dropped() const;
  void count_dropped(std::uint64_t frames);

 private:
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::vector<Frames> writing_;
  std::vector<Frames> open_;
  std::size_t writing_bytes_ = 0;
  std::size_t open_bytes_ = 0;
  std::uint64_t written_ = 0;  // the last batch that is on disk and not here
  std::uint64_t dropped_ = 0;
};

// Roughly what the frames take in memory.
std::size_t bytes_of(const Frames& frames);

}  // namespace gpu_platform::telemetry
