#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse.h"
#include "base/result.h"
#include "config/configuration.h"
#include "model/command.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "simulation/scenarios/scenario.h"

namespace gpu_platform::simulation {

// A list separated by commas.
std::vector<std::string> parts_of(std::string_view list);

// The values of statements. Absent options leave what they would set as it was.

const std::string* option(const Statement& statement, std::string_view name);

template <class Number>
base::Status set_count(const Statement& statement, std::string_view name, std::uint64_t least,
                       std::uint64_t most, Number& value) {
  const std::string* text = option(statement, name);
  if (text == nullptr) return {};
  const auto read = base::parse_count(*text, least, most);
  if (!read) return base::invalid({}, fmt::format("{}: {}", name, read.error().message));
  value = static_cast<Number>(*read);
  return {};
}
base::Status set_duration(const Statement& statement, std::string_view name, base::Duration& value);
base::Status set_size(const Statement& statement, std::string_view name, base::Bytes& value);
base::Status set_bool(const Statement& statement, std::string_view name, bool& value);

// The behaviour of a virtual job, beyond its specification.
struct JobScript {
  base::Duration runs = base::hours(10'000);
  std::uint8_t exit = 0;
  std::optional<std::uint8_t> launch_exit;  // the program is missing (127) or forbidden (126)
  std::uint32_t launch_failures = 0;        // its first so many starts fail by fault of the host
  std::uint32_t prolog_failures = 0;        // the site's prolog fails at its first so many starts
  std::string prolog_fails_on;              // or on that node; empty: none
  bool epilog_fails = false;                // the site's epilog after each of its attempts
  bool ignores_term = false;
  base::Duration starts_after;
  base::Duration cleaning;
};

// Sets the links between the node's GPUs from the options of "node".
base::Status set_topology(const Statement& statement, model::NodeInfo& node);
base::Result<model::NodeInfo> node_of(const Statement& statement);
base::Result<model::JobSpec> spec_of(const Statement& statement);
base::Result<JobScript> script_of(const Statement& statement);
// The keys of the configuration (config/schema.h) that change while the daemon runs, and
// the two of its structures that are one value here.
std::vector<std::string_view> options_of_policy();
base::Status change_policy(const Statement& statement, config::Configuration& configuration);
// Applies "team" and "quota": the team or the limits of the statement replace former ones of that
// name.
base::Status change_organisation(const Statement& statement, model::Policy& policy);
// Applies "sharing": the statement's rules replace the former ones.
base::Status change_sharing(const Statement& statement, model::Policy& policy);
// Sets the ways in which jobs can share a GPU of the node.
base::Status set_share_modes(const Statement& statement, model::NodeInfo& node);
base::Result<model::ActOnJobs> bulk_of(const Statement& statement);
base::Result<model::Exit> exit_of(const Statement& statement);
std::uint32_t uid_of_user(std::string_view user);

}  // namespace gpu_platform::simulation
