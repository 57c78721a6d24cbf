#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/mig_profile.h"

// How a GPU is cut by MIG: which profiles it has, and where their instances may lie. A GPU has
// compute slices and memory slices. An instance takes as many compute slices as its profile says,
// anywhere, and a run of memory slices from one of the profile's starts. Both numbers are needed:
// on a GPU of 7 compute and 8 memory slices, 3g takes 4 memory slices and 7g takes 8.

namespace gpu_platform::model {

// A set of memory slices of a GPU, or of starts among them: bit i is slice i.
using MigSlices = std::uint8_t;
inline constexpr std::uint32_t kMaxMigSlices = 8;
// Groups of profiles of which a GPU has one instance at a time, as of all with "+me".
inline constexpr std::uint32_t kMaxMigGroups = 2;
using MigGroups = std::uint8_t;  // a set of such groups

struct MigProfile {
  MigProfileName name;
  std::uint32_t id = 0;  // the driver's, which it creates instances by
  std::uint32_t compute_slices = 0;
  std::uint32_t memory_slices = 0;
  MigSlices starts = 0;
  MigGroups groups = 0;  // those that it belongs to
  // As the driver tells it; none: the table does not have it.
  std::optional<base::Bytes> memory = {};

  friend bool operator==(const MigProfile&, const MigProfile&) = default;
};

// Returns the memory slices of an instance that begins at `start`, one of the profile's starts.
MigSlices slices_of(const MigProfile& profile, std::uint32_t start);

// Once for each type of GPU.
struct MigGeometry {
  std::uint32_t compute_slices = 0;
  std::uint32_t memory_slices = 0;
  std::vector<MigProfile> profiles;  // ascending name; other values refer to them by number

  friend bool operator==(const MigGeometry&, const MigGeometry&) = default;
};

// Returns the number of the profile in the geometry; nothing if the GPU has no such profile.
std::optional<std::size_t> find_profile(const MigGeometry& geometry, const MigProfileName& name);
// Returns the names of all profiles as a list: "1g.10gb, 1g.10gb+me, 2g.20gb".
std::string profiles_of(const MigGeometry& geometry);

// Returns what an instance is of a GPU where shares are counted: in quotas, fair share and bills.
// It is by compute slices, so a 3g of a GPU of 7 is 3/7 although it takes half of the memory.
base::GpuShare share_of(const MigGeometry& geometry, const MigProfile& profile);

// Returns the memory of an instance on a GPU with so much. Where the driver was not asked, it is
// that of the instance's memory slices.
base::Bytes memory_of(const MigGeometry& geometry, const MigProfile& profile,
                      base::Bytes gpu_memory);

// What NVIDIA's driver does with a GPU of this catalogue type (gpu_catalogue.h): from its
// documentation and from GPUs that were asked. Null: the type has no MIG, or the table does not
// know it. For virtual nodes, and to compare with; on a real node the driver is asked.
const MigGeometry* known_mig_geometry(std::string_view gpu_type);
// The types that the table has, ascending.
std::vector<std::string_view> gpu_types_with_mig();

// The driver's description of one profile.
struct MigProfileFacts {
  struct Placement {
    std::uint32_t start = 0;
    std::uint32_t size = 0;  // both in memory slices
  };

  std::uint32_t number = 0;  // in the driver's list of all profiles, NVML_GPU_INSTANCE_PROFILE_…
  std::uint32_t id = 0;
  std::string name;  // "MIG 1g.10gb"; empty: the driver is too old to tell
  std::uint32_t compute_slices = 0;
  std::uint32_t max_instances = 0;
  base::Bytes memory;
  std::vector<Placement> placements;
};

// Makes the geometry of a GPU from its driver's description. An error says why that cannot be
// modelled: then the GPU gets no instances from us.
base::Result<MigGeometry> geometry_of(std::span<const MigProfileFacts> facts,
                                      base::Bytes gpu_memory);

// Returns in what the driver's geometry differs from that of the table, as sentences. Memory sizes
// are not compared, because they change with the driver's version.
std::vector<std::string> differences(const MigGeometry& of_driver, const MigGeometry& of_table);

}  // namespace gpu_platform::model
