#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpu_platform::scheduling {

// How much each profile of a geometry is asked for, from the requests of the past. It decays with
// requests and not with time, so that it is the same in every replay, and in integers.
//
// What it says changes with every kEpoch-th request alone: whatever is computed from it then stays
// valid for all of those between. Ownership: a value. Thread: one owner.
class MigDemand {
 public:
  static constexpr std::uint32_t kEpoch = 256;

  // Before the first epoch has passed, all profiles are as likely.
  explicit MigDemand(std::size_t profiles) : counts_(profiles), weights_(profiles, 1) {}

  // Counts a request, whether it starts or waits. Returns whether the weights are new.
  bool count(std::size_t profile);
  // By profile; a request of the last epoch counts as kOne, one of the epoch before as half, and so
  // on, until it counts as nothing.
  const std::vector<std::uint64_t>& weights() const { return weights_; }
  // The profiles that have a weight.
  std::vector<bool> is_wanted() const;

  friend bool operator==(const MigDemand&, const MigDemand&) = default;

 private:
  static constexpr std::uint64_t kOne = 16;

  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> weights_;
  std::uint32_t requests_ = 0;  // of this epoch
};

}  // namespace gpu_platform::scheduling
