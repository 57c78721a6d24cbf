#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

// Which GPUs and CPUs of a job its steps have, and how much of its memory. The shares are locks of
// the kernel on one file without a name that the job's first process made. A lock goes with the
// last process that inherited it, so a step that is killed leaves nothing behind. The file is the
// job's own, and so no step has anything beyond the job.

namespace gpu_platform::shims {

// Makes the file, in the job's first process: the path by which steps find it, while that process
// lives. The file stays open in the program that this process becomes.
base::Result<std::string> make_share_file();

// What the job has on one of its nodes.
struct NodeRoom {
  std::uint32_t node = 0;  // its place among the job's
  std::uint32_t gpus = 0;
  std::uint32_t cpus = 0;
};

// Memory is counted in parts of what the job has on the node.
inline constexpr std::uint32_t kMemoryParts = 1024;

// What a step needs on one node.
struct ShareWish {
  std::uint32_t gpus = 0;
  std::uint32_t cpus = 0;
  std::uint32_t memory = 0;  // of kMemoryParts
};

struct NodeShare {
  std::uint32_t node = 0;           // its place among the job's
  std::vector<std::uint32_t> gpus;  // their places among the node's
  std::vector<std::uint32_t> cpus;  // their places among the node's
};

class StepShares {
 public:
  static base::Result<StepShares> open(const std::string& path);
  StepShares(StepShares&& other) noexcept;
  StepShares& operator=(StepShares&&) = delete;
  ~StepShares();

  // 0, 1, 2, … by the job's steps.
  base::Result<std::uint32_t> next_step();

  // A node for each wish, in the order of `rooms`: all of them, or nothing where there is no room
  // now. They are kept until this and every process that was forked meanwhile has ended.
  // next_step() comes before it.
  base::Result<std::optional<std::vector<NodeShare>>> take(const std::vector<NodeRoom>& rooms,
                                                           const std::vector<ShareWish>& wishes);

  // Returns true when a step has ended that had a share at the last take() without room, false when
  // the time is over. Each such step is waited for by a thread of its own, which blocks in the
  // kernel and ends with the step or with this process.
  base::Result<bool> wait_for_an_end(std::optional<std::int64_t> milliseconds);

 private:
  explicit StepShares(int fd) : fd_(fd) {}
  base::Status find_others();

  int fd_;
  std::uint32_t id_ = 0;
  std::vector<std::uint32_t> others_;  // steps with shares
  std::set<std::uint32_t> awaited_;    // that have a thread
  int ends_[2] = {-1, -1};             // a pipe: threads write a byte for each end
};

}  // namespace gpu_platform::shims
