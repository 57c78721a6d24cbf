#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The names of MIG profiles: the sizes in which instances of a GPU come.

namespace gpu_platform::model {

// What a profile has more or less of than the plain one of its size: "+me" (a share of the media
// engines), "+me.all" (all of them), "+gfx" (graphics), "-me" (none of the media engines).
struct MigAttribute {
  char sign = '+';   // or '-'
  std::string name;  // "me"

  friend auto operator<=>(const MigAttribute&, const MigAttribute&) = default;
};

// "3g.40gb": the name is the driver's, and its memory is rounded to whole GB by a rule of the
// driver. Two types of GPU may have profiles of one name that differ in compute slices or memory.
// Ordered by size.
struct MigProfileName {
  std::uint32_t compute_slices = 0;
  std::uint32_t memory_gb = 0;
  std::vector<MigAttribute> attributes = {};  // in the order of the name

  friend auto operator<=>(const MigProfileName&, const MigProfileName&) = default;
};
std::string to_string(const MigProfileName& name);  // "1g.10gb+me"

// A profile that a job asks for, perhaps on GPUs of one type or family alone.
struct MigRequest {
  MigProfileName profile;
  std::string gpu_type = {};  // in the catalogue's form, "H100"; empty: any that has the profile

  friend auto operator<=>(const MigRequest&, const MigRequest&) = default;
};
std::string to_string(const MigRequest& request);  // "h100-1g.10gb"

// Reads "1g.10gb", "1g.10gb+me", "1g.24gb-me" and, with a type of the catalogue, "h100-1g.10gb" and
// "h100-80gb-1g.10gb". Case does not matter. Errors carry no field. It does not know which profiles
// exist: see mig_geometry.h.
base::Result<MigRequest> parse_mig_request(std::string_view text);
// The same without a type of GPU. The driver's "MIG 1g.10gb" is read as well.
base::Result<MigProfileName> parse_mig_profile(std::string_view text);

}  // namespace gpu_platform::model
