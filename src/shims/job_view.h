#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/client.h"
#include "cli/json_view.h"

// A job of the platform as Slurm's commands tell of it.

namespace gpu_platform::shims {

// A state under both of its names.
struct StateName {
  std::string_view code;  // "PD"
  std::string_view name;  // "PENDING"

  friend bool operator==(const StateName&, const StateName&) = default;
};

StateName state_of(const cli::Json& job);

// "42", and "40_3" of a member of an array.
std::string array_task_id(const cli::Json& job);

// As sacct tells it: without the states in passing CONFIGURING and COMPLETING, which programs that
// read sacct take for ends.
StateName recorded_state_of(const cli::Json& job);

// The states of the platform that may be one of Slurm's states ("PD", "pending"), for filters of
// the daemon; exact is state_of. Nothing for what is no state.
std::optional<std::vector<std::string>> platform_states(std::string_view name);
bool is_in_state(const StateName& state, const std::vector<std::string>& names);
bool has_ended(const cli::Json& job);

// Why it waits or how it ended, in Slurm's words: "Resources", "TimeLimit".
std::string reason_of(const cli::Json& job);

// Its node, empty while it has none.
std::string node_of(const cli::Json& job);

std::string partition_of(const cli::Json& job);
std::string comment_of(const cli::Json& job);

// "gpu:8" or "gpu:h100:8" as it was asked for; empty for none.
std::string gpus_asked(const cli::Json& job);

// What it has on all its nodes, else what it asks for.
std::optional<std::int64_t> cpus_of(const cli::Json& job);
std::optional<std::int64_t> memory_of(const cli::Json& job);

// "cpu=8,mem=64G,node=1,gres/gpu=2"
std::string trackable(const cli::Json& job);

// How long it has run, with 0 before its start.
base::Duration run_time(const cli::Json& job, base::Instant now);
base::Duration time_limit(const cli::Json& job);

// "2026-11-21T08:30:15" in the local time zone; "Unknown" or "N/A" where there is none.
std::string slurm_time(const std::optional<base::Instant>& at, std::string_view none);

// "0:9": exit code and signal.
std::string exit_and_signal(const cli::Json& job);

// "64G", "512M", as Slurm writes memory.
std::string slurm_memory(std::int64_t bytes);

// All jobs of a query ("user=ada&state=RUNNING"), ascending id.
cli::Called<std::vector<cli::Json>> list_jobs(cli::Client& client, const std::string& query);
// The job of that id; of an array its members.
cli::Called<std::vector<cli::Json>> get_jobs(cli::Client& client, const std::string& id);
cli::Called<cli::Json> get_job(cli::Client& client, const std::string& id);

// Name of the user of this process.
std::string own_user();

}  // namespace gpu_platform::shims
