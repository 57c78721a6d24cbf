#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"

// A job of the platform as Slurm's commands tell of it.

namespace gpu_platform::shims {

// A label of the job; empty where it has none.
std::string label_of(const v1::Job& job, const std::string& name);

// "42", and "40_3" of a member of an array; "40_[3-4]" with the indices of several (QueueEntry).
std::string array_task_id(const v1::Job& job, std::string_view members = {});
// "3" of "40_3"; empty of a job without an array.
std::string array_index_of(const v1::Job& job);

// Its nodes ("a1,b[1-2]"), empty while it has none; the first of them, where a batch script runs;
// how many it has or asks for.
std::string node_of(const v1::Job& job);
std::string first_node_of(const v1::Job& job);
std::int64_t node_count(const v1::Job& job);
// As it was submitted with sbatch or srun; else one for each node.
std::int64_t task_count(const v1::Job& job);
std::vector<std::string> node_names(const v1::Job& job);
// Returns whether the job has one of the nodes of a list ("a1,b[1-2]").
bool is_on_any(const v1::Job& job, const std::string& list);
// The files that its output and its errors go to; without a file of their own, errors go to that of
// the output.
std::string output_file_of(const v1::Job& job);
std::string error_file_of(const v1::Job& job);
// Null if it has had none.
const v1::Attempt* latest_attempt(const v1::Job& job);
// The nodes it must have or must not have, as it was submitted; empty for none.
std::string required_nodes_of(const v1::Job& job);
std::string excluded_nodes_of(const v1::Job& job);
// The GPU types it asks for: "h100|a100", "(null)" for any.
std::string types_of(const v1::Job& job);

std::string partition_of(const v1::Job& job);
std::string qos_of(const v1::Job& job);
std::string comment_of(const v1::Job& job);
// "afterok:1(unfulfilled)", "(null)" for none.
std::string dependency_of(const v1::Job& job);
// The script's path and arguments, or the program; "(null)" for --wrap and standard input.
std::string command_of(const v1::Job& job);
// Whether it has a batch script, as the jobs of sbatch have.
bool is_batch(const v1::Job& job);
// A number that grows with the class of priority and the number in it; 0 while it is held.
std::string priority_of(const v1::Job& job);
// How many members of its array may run at once; empty without a limit.
std::string array_throttle(const v1::Job& job);
// Attempts before this one.
std::int64_t restarts_of(const v1::Job& job);
// When it started, or will by the plan.
std::optional<base::Instant> expected_start(const v1::Job& job);
// The exit status as wait() gives it: 256 times the code, or the signal.
std::int64_t exit_status_of(const v1::Job& job);

// The first group of a user, as name and number; the user's own name where it is not known.
std::string group_name(const std::string& user);
std::int64_t group_number(const std::string& user);

// A line of the queue: a job, or several members of an array that wait.
struct QueueEntry {
  v1::Job job;          // of several the first
  std::string members;  // their indices, "3-4,7%2"; empty: it is the job alone
};

// Members of one array that wait, as one entry, as squeue has them without -r. Other jobs stay as
// they are, and so does the order of what comes first.
std::vector<QueueEntry> with_joined_members(std::vector<v1::Job> jobs);
std::vector<QueueEntry> single_entries(std::vector<v1::Job> jobs);
// How long it has run, with 0 before its start.
base::Duration run_time(const v1::Job& job, base::Instant now);
base::Duration time_limit(const v1::Job& job);

// "2026-11-21T08:30:15" in the local time zone; "Unknown" or "N/A" where there is none.
std::string slurm_time(const std::optional<base::Instant>& at, std::string_view none);

// "0:9": exit code and signal of its program.
std::string exit_and_signal(const v1::Job& job);
std::string exit_and_signal(const v1::JobStep& step);
// The same as sacct tells it of the job: of one that was stopped, by its limit or by a person, 0:0,
// however its program ended then. The line of its batch script has that.
std::string recorded_exit_of(const v1::Job& job);

// Name of the user of this process.
std::string own_user();

}  // namespace gpu_platform::shims
