#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "shims/options/option_table.h"
#include "shims/steps/step_variables.h"

// Heterogeneous jobs, whose parts are written one after the other. Parts that are alike, on each of
// their nodes, are one job with all nodes: a gang. Others are refused. Pure.

namespace gpu_platform::shims {

struct HetPart {
  std::uint32_t nodes = 1;
  std::uint32_t tasks = 1;
};

// The options of the one job, and what of it each part has. Errors say how to write it instead.
struct HetJob {
  Settings settings;
  std::vector<HetPart> parts;
};
base::Result<HetJob> joined_parts(const std::vector<Settings>& parts);

// "1:8,2:16": the parts, for the variable that carries them to the job's first process, and read
// again. Text that is none gives no parts.
std::string parts_text(const std::vector<HetPart>& parts);
std::vector<HetPart> parts_in(std::string_view text);

// Adds Slurm's variables of the parts, and makes those of the job the ones of its first part.
void add_het_variables(Variables& variables, const std::vector<HetPart>& parts);

// Restricts a step in such a job to the parts that --het-group names ("0", "0,2", "0-1"), else to
// the first one. Nothing for other jobs and for a step that names its nodes.
base::Status put_het_group(const Variables& variables, Settings& settings);

// A step whose words have parts with a ":" between them ("a : --het-group=1 b"): `settings`, of the
// first part, then has the groups and tasks of all. Without parts the command alone.
struct HetStep {
  std::vector<std::string> command;                // of the first part
  std::vector<std::vector<std::string>> programs;  // by task; empty: one command for all
};
base::Result<HetStep> joined_step(const Variables& variables, const std::vector<std::string>& words,
                                  Settings& settings, std::vector<std::string>& warnings);

}  // namespace gpu_platform::shims
