#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/output_pattern.h"

// File names of -o, -e and -i with their replacement symbols (sbatch(1), "filename pattern"). Pure.

namespace gpu_platform::shims {

struct PatternValues {
  std::string job;             // %j, and %A of a job that is no member of an array; %J: see is_step
  std::string name;            // %x
  std::string user;            // %u
  std::string node;            // %N
  std::uint32_t task = 0;      // %t
  std::uint32_t restarts = 0;  // %r
  std::uint32_t step = 0;      // %s
  std::string array = {};      // %A of a member; empty: it is none
  std::string index = {};      // %a of a member; empty: it is none
  bool is_step = false;        // %J names the step too: "12.0"
  std::uint32_t node_number = 0;  // %n, among the nodes of the step
};

// The file's name. "%5j" pads numbers with zeros; a backslash anywhere switches replacement off.
// Symbols of arrays in other jobs, and unknown ones, are errors.
base::Result<std::string> expanded(std::string_view pattern, const PatternValues& values);

// The same as a pattern of the platform's own (model/output_pattern.h), which opens the file before
// the job's first process: nothing where it has no such symbol (%r, padded ids, and %t unless there
// is one task). `pattern` has passed expanded().
std::optional<std::string> platform_pattern(std::string_view pattern, bool is_one_task,
                                            model::PatternOf of = model::PatternOf::kJob);

}  // namespace gpu_platform::shims
