#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"

// Parts of a GPU as Slurm counts them: --gres=shard:N and --gres=mps:N. Pure.

namespace gpu_platform::shims {

// As Slurm's own configuration usually has it: a percentage.
inline constexpr std::uint32_t kMpsPerGpu = 100;

struct SharedGres {
  bool is_mps = false;
  std::uint32_t count = 0;

  friend bool operator==(const SharedGres&, const SharedGres&) = default;
};

// Whether one item of --gres is such a part: "shard", "mps:50".
bool is_shared_gres(std::string_view item);

// Reads them out of the value of --gres; other resources are passed over.
base::Result<std::optional<SharedGres>> parse_shared_gres(std::string_view gres);

// Asks for the part, of a GPU that has so many shards. As many as a GPU has are a whole GPU.
base::Status put_shared_gres(const SharedGres& part, std::uint32_t shards_per_gpu,
                             v1::JobSpec& spec);

// "shard:2", "mps:50": the part that a job asks for, in the way in which it was asked for; jobs of
// other commands show mps. Empty for whole GPUs.
std::string shared_gres_of(const v1::JobSpec& spec);

}  // namespace gpu_platform::shims
