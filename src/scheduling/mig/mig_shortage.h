#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/ids.h"
#include "model/mig_geometry.h"

// Why an instance fits on no GPU, and which jobs are in its way. Computed from the GPUs as they
// are, so from published snapshots as well.

namespace gpu_platform::scheduling {

// An instance on a GPU.
struct MigHolder {
  model::JobId job;         // unset: it is no job's, so nothing that jobs do removes it
  std::size_t profile = 0;  // by the GPU's geometry
  std::uint32_t start = 0;
};

// A GPU that takes instances, with all that are on it.
struct MigGpu {
  const model::MigGeometry* geometry = nullptr;
  std::vector<MigHolder> holders;
};

// An instance that would have to be elsewhere.
struct MigMove {
  model::JobId job;
  model::MigProfileName profile;

  friend auto operator<=>(const MigMove&, const MigMove&) = default;
};

// What would make a place on some GPUs that have none.
struct MigWayOut {
  std::vector<MigMove> moves;  // ascending; each GPU needs all of them, and no fewer would do
  std::uint32_t gpus = 0;

  friend bool operator==(const MigWayOut&, const MigWayOut&) = default;
};

struct MigShortage {
  model::MigProfileName profile;
  std::uint32_t gpus_of_profile = 0;     // that have the profile at all
  std::uint32_t gpus_with_place = 0;     // now
  std::vector<MigWayOut> ways_out = {};  // the fewest moves first, then the most GPUs, then by jobs

  friend bool operator==(const MigShortage&, const MigShortage&) = default;
};

// Of each GPU without a place the ways out have one: with the fewest instances, then with the
// fewest compute slices, then that of the lowest jobs. Cost: up to 2^7 looks at each such GPU.
MigShortage explain_mig(const model::MigProfileName& profile, std::span<const MigGpu> gpus);

// Returns it as a sentence without its full stop: "a 3g.40gb fits on no GPU: 2 could hold it if job
// 12's 1g.10gb were elsewhere". It names the first ways out and counts the others. If no GPU has
// the profile, it names those that there are.
std::string sentence_of(const MigShortage& shortage, std::span<const MigGpu> gpus);

}  // namespace gpu_platform::scheduling
