#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "shims/submission/resources.h"

// The SLURM_* variables, all of the set that batch scripts and launchers read: a job that has some
// and not others misleads the programs that take the first for the whole. Jobs that were not
// submitted through the shims have none. Pure.

namespace gpu_platform::shims {

using Variables = std::map<std::string, std::string, std::less<>>;

// NAME=VALUE entries by name; of two with one name the first counts, as for getenv.
Variables variables_of(const std::vector<std::string>& environment);
std::vector<std::string> environment_of(const Variables& variables);

// What the submission knows.
struct Submitted {
  std::string directory;
  std::string host;
  std::string partition;
  std::string account;
  std::string qos;
  std::optional<std::int64_t> time_limit_seconds;
};
Variables submission_variables(const Submitted& submitted, const Resources& resources);

// What is known when the job starts, besides the variables that the platform gives it.
struct StartFacts {
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t pid = 0;
  std::int64_t unix_seconds = 0;
};
// Adds the job's variables to its environment, which has the above and the platform's own.
void add_job_variables(Variables& variables, const StartFacts& facts);

// Adds again what the platform's own variables say, for a step: launchers take the job's SLURM_*
// variables away before they call srun (Snakemake does).
void add_allocation_variables(Variables& variables);

// Adds those of one task of a step.
struct Task {
  std::uint32_t rank = 0;
  std::uint32_t tasks = 1;
  std::int64_t pid = 0;
  std::uint32_t step = 0;
};
void add_task_variables(Variables& variables, const Task& task);

// Value of a variable, empty when it is not there.
std::string_view variable(const Variables& variables, std::string_view name);

// What a process on one of the job's nodes has as `name`. Jobs on one node have no such parts.
std::string_view part_of_node(const Variables& variables, std::size_t node, std::string_view name);
// The names of the job's nodes, in its order.
std::vector<std::string> node_names(const Variables& variables);

// "n[001-003,7],m" as the names it stands for; the text itself where its brackets make no sense.
std::vector<std::string> host_names(std::string_view list);

inline constexpr std::string_view kPartition = "gpu";  // of all nodes: there is one
inline constexpr std::string_view kCluster = "gpu-platform";

}  // namespace gpu_platform::shims
