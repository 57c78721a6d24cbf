#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Job arrays: one submission that becomes many jobs, one for each index. Members have consecutive
// ids in the order of their indices; the array is known by the id of its first member.

namespace gpu_platform::model {

// first, first + step, … up to last, which is one of them. step >= 1.
struct IndexRun {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t step = 1;

  friend bool operator==(const IndexRun&, const IndexRun&) = default;
};

// `runs` do not overlap and ascend: every index of one is below every index of the next. There is
// at least one index.
struct ArraySpec {
  std::vector<IndexRun> runs;
  std::uint32_t limit = 0;  // most members that may be active at once; 0: as many as there are

  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

inline constexpr std::uint64_t kMaxArrayMembers = 100'000;
inline constexpr std::size_t kMaxArrayRuns = 1'000;
inline constexpr std::uint32_t kLargestArrayIndex = 4'294'967'294;

// "0-99", "1,3,5-9:2", each also with "%8" behind it. Indices may come in any order; one that comes
// twice counts once. Errors are kInvalidArgument of the field "array".
base::Result<ArraySpec> parse_array(std::string_view text);
// The shortest form that parse_array reads back: "0-99%8".
std::string to_string(const ArraySpec& array);

std::uint64_t member_count(const ArraySpec& array);
std::uint32_t least_index(const ArraySpec& array);
std::uint32_t largest_index(const ArraySpec& array);
// Between the two smallest indices, as SLURM_ARRAY_TASK_STEP has it; 1 where there is only one.
std::uint32_t index_step(const ArraySpec& array);
// The index of the member at that position, below member_count; and back, nothing for an index that
// the array does not have. Cost: its runs.
std::uint32_t index_at(const ArraySpec& array, std::uint64_t position);
std::optional<std::uint64_t> position_of(const ArraySpec& array, std::uint32_t index);

}  // namespace gpu_platform::model
