#include "shims/views/usage_report.h"

#include <algorithm>

#include "base/parse.h"
#include "client/answer.h"
#include "model/gpu_catalogue.h"
#include "model/job_spec.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kSecondsOfHour = 3600;
constexpr double kMicroInUnit = 1e6;
constexpr std::string_view kWithoutTeam = "root";  // Slurm's account above all others
constexpr std::string_view kBilling = "billing";
constexpr std::string_view kAllGpus = "gres/gpu";
constexpr std::string_view kGpusOfType = "gres/gpu:";

double seconds_within(const v1::Attempt& attempt, const Period& period, base::Instant now) {
  const auto began = client::time_of(attempt.started_at());
  if (!began) return 0;
  const base::Instant ended = client::time_of(attempt.ended_at()).value_or(now);
  const base::Instant from = std::max(*began, period.begin);
  const base::Instant to = std::min(ended, period.end);
  return to <= from ? 0 : static_cast<double>(base::whole_milliseconds(to - from)) / 1000;
}

std::string account_of_team(const std::string& team) {
  return team.empty() ? std::string(kWithoutTeam) : team;
}

// Returns whether the resource counts GPUs of that type; those without a type count all.
bool counts_type(std::string_view resource, std::string_view gpu_type) {
  if (!names_type(resource)) return true;
  const std::string_view asked = resource.substr(kGpusOfType.size());
  const std::string wanted = model::canonical_gpu_type(asked).value_or(std::string(asked));
  return model::gpu_type_matches(wanted, gpu_type) || asked == lower_case(gpu_type);
}

// An amount of money as seconds of billing.
double billing_seconds(std::string_view amount) {
  const auto money = base::parse_signed_money(amount);
  return money ? static_cast<double>(money->value()) * kSecondsOfHour / kMicroInUnit : 0;
}

double part_seconds(const v1::UsagePart& part, std::string_view resource) {
  return resource == kBilling ? billing_seconds(part.cost()) : part.gpu_hours() * kSecondsOfHour;
}

double used_seconds(const v1::UsageFigures& figures, std::string_view resource) {
  return resource == kBilling ? billing_seconds(figures.cost())
                              : figures.gpu_hours() * kSecondsOfHour;
}

void add_rest(const v1::UsagePart& part, std::string_view resource, Portions& portions) {
  const double seconds = part_seconds(part, resource);
  if (part.name() == "idle") {
    portions.idle += seconds;
  } else if (part.name() == "reserved" || part.name() == "held") {
    portions.planned += seconds;
  } else if (part.name() == "draining") {
    portions.planned_down += seconds;
  } else {
    portions.down += seconds;
  }
}

void add_portions(const v1::UsageFigures& figures, std::string_view resource, Portions& portions) {
  portions.used += used_seconds(figures, resource);
  portions.planned += part_seconds(figures.starting(), resource);
  portions.planned += part_seconds(figures.cleaning(), resource);
  for (const v1::UsagePart& part : figures.rest()) add_rest(part, resource, portions);
}

// The type of the GPUs of a group; empty where usage is not grouped by it.
std::string type_of_group(const v1::UsageGroup& group, const LedgerColumns& columns) {
  return columns.with_types && group.keys_size() > 2 ? group.keys(2) : std::string();
}

}  // namespace

bool names_type(std::string_view resource) {
  return resource.starts_with(kGpusOfType) && resource.size() > kGpusOfType.size();
}

bool is_of_ledger(std::string_view resource) {
  return resource == kBilling || resource == kAllGpus || names_type(resource);
}

bool is_counted(std::string_view resource) {
  return names_type(resource) ||
         std::ranges::find(kCountedResources, resource) != std::end(kCountedResources);
}

Period recorded_part(const Period& period, std::optional<base::Instant> since) {
  if (!since) return period;
  return {std::clamp(*since, period.begin, period.end), period.end};
}

void add_attempts(const std::vector<v1::Job>& jobs, const Period& period, base::Instant now,
                  HeldBy& held_by) {
  for (const v1::Job& job : jobs) {
    for (const v1::Attempt& attempt : job.attempts()) {
      const double seconds = seconds_within(attempt, period, now);
      if (seconds <= 0) continue;
      Held& held = held_by[{account_of_team(job.spec().team()), job.spec().user()}];
      held["cpu"] += seconds * attempt.cpus();
      held["mem"] += seconds * static_cast<double>(attempt.memory_bytes()) / kMib;
      held["node"] += seconds * attempt.nodes().size();
    }
  }
}

void add_ledger(const v1::Usage& usage, const LedgerColumns& columns, HeldBy& held_by) {
  for (const v1::UsageGroup& group : usage.groups()) {
    if (group.keys_size() < 2) continue;
    const std::string type = type_of_group(group, columns);
    for (const std::string& resource : columns.resources) {
      const double seconds = used_seconds(group.figures(), resource);
      // Time that no job had is in groups of no account, which used nothing.
      if (seconds == 0 || !counts_type(resource, type)) continue;
      held_by[{account_of_team(group.keys(0)), group.keys(1)}][resource] += seconds;
    }
  }
}

std::vector<std::string> lineage_of(const std::string& account, const AccountParents& parents) {
  std::vector<std::string> lineage;
  std::string at = account;
  // Teams are a tree; the bound holds whatever the answer of a daemon says.
  while (at != kWithoutTeam && !at.empty() && lineage.size() <= parents.size()) {
    lineage.push_back(at);
    const auto above = parents.find(at);
    at = above == parents.end() ? std::string() : above->second;
  }
  lineage.emplace_back(kWithoutTeam);
  std::ranges::reverse(lineage);
  return lineage;
}

void add_accounts(const AccountParents& parents, HeldBy& held_by) {
  HeldBy accounts;
  for (const auto& [owner, held] : held_by) {
    for (const std::string& account : lineage_of(owner.first, parents)) {
      Held& whole = accounts[{account, ""}];
      for (const auto& [resource, seconds] : held) whole[resource] += seconds;
    }
  }
  // What an account had by itself is in its whole.
  for (auto& [account, whole] : accounts) held_by[account] = std::move(whole);
}

std::optional<Portions> portions_of(const v1::Usage& usage, std::string_view resource,
                                    const LedgerColumns& columns) {
  if (usage.total().rest().empty()) return std::nullopt;
  Portions portions;
  if (!names_type(resource)) {
    add_portions(usage.total(), resource, portions);
    return portions;
  }
  for (const v1::UsageGroup& group : usage.groups()) {
    if (counts_type(resource, type_of_group(group, columns)))
      add_portions(group.figures(), resource, portions);
  }
  return portions;
}

double capacity_of(const v1::Status& status, std::string_view resource) {
  double capacity = 0;
  if (resource.starts_with(kAllGpus)) {
    for (const v1::Gpu& gpu : status.gpus()) capacity += counts_type(resource, gpu.type()) ? 1 : 0;
    return capacity;
  }
  for (const v1::Node& node : status.nodes()) {
    if (resource == "cpu") capacity += node.cpus();
    if (resource == "mem") capacity += static_cast<double>(node.memory_bytes()) / kMib;
    if (resource == "node") capacity += 1;
  }
  return capacity;
}

}  // namespace gpu_platform::shims
