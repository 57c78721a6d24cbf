#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "api/metrics/gpu_labels.h"
#include "api/metrics/scrape.h"
#include "model/job_spec.h"
#include "model/wait_reason.h"
#include "views/shares.h"
#include "views/unready_reasons.h"

// Waiting jobs and teams.

namespace gpu_platform::api {

namespace {

// A scrape explains so many jobs of the queue: more would make a page cost as much as a list.
constexpr std::uint64_t kMaxExplained = 1000;
// Teams with a series of their own; the others are one, "(other)".
constexpr std::size_t kMaxTeams = 50;

std::string reason_of(model::WaitCode code) {
  return base::to_lower(to_string(code));
}

struct Team {
  std::string name;
  double held = 0;
  double running = 0;
  double waiting = 0;
  double max_gpus = 0;
  double guaranteed_gpus = 0;
  bool has_max = false;
  bool has_guarantee = false;
};

std::map<std::string, Team> teams_of(const controller::Snapshot& snapshot) {
  std::map<std::string, Team> teams;
  const auto team_named = [&](const std::string& name) -> Team& {
    Team& team = teams[name];
    team.name = name.empty() ? "(none)" : name;
    return team;
  };
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    Team& team = team_named(job.spec->team);
    if (model::holds_resources(job)) {
      team.running += 1;
      team.held += in_gpus(model::share_of(job.current_attempt()->allocation));
    } else {
      team.waiting += 1;
    }
  });
  for (const views::QuotaRow& row : views::quotas_of(snapshot)) {
    if (row.subject.holder != model::QuotaHolder::kTeam || row.of_type) continue;
    Team& team = team_named(row.subject.name);
    team.has_max = row.quota.max_gpus.has_value();
    team.max_gpus = row.quota.max_gpus.value_or(0);
    team.has_guarantee = row.quota.guaranteed_gpus.has_value();
    team.guaranteed_gpus = row.quota.guaranteed_gpus.value_or(0);
  }
  return teams;
}

// The largest ones, and the sum of the others. Limits do not add up: a parent's hold for its
// children, too.
std::vector<Team> bounded(const std::map<std::string, Team>& teams) {
  std::vector<Team> rows;
  for (const auto& [name, team] : teams) rows.push_back(team);
  std::ranges::stable_sort(rows, std::greater(), &Team::held);
  if (rows.size() <= kMaxTeams) return rows;
  Team other{.name = "(other)"};
  for (std::size_t i = kMaxTeams; i < rows.size(); ++i) {
    other.held += rows[i].held;
    other.running += rows[i].running;
    other.waiting += rows[i].waiting;
  }
  rows.resize(kMaxTeams);
  rows.push_back(other);
  return rows;
}

}  // namespace

void add_queue(const Scrape& scrape, MetricPage& page) {
  const controller::Snapshot& snapshot = *scrape.snapshot;
  std::map<std::string, double> reasons;
  std::uint64_t explained = 0;
  const bool is_short = snapshot.counts.queued <= kMaxExplained;
  const auto explainer = is_short ? scrape.reader.explainer(scrape.snapshot) : nullptr;
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    switch (job.state) {
      case model::JobState::kHeld:
        ++reasons[reason_of(views::explain_held(job).code)];
        return;
      case model::JobState::kPending:
        ++reasons[++explained > kMaxExplained
                      ? "not_explained"
                      : reason_of(views::explain_pending(snapshot, job).code)];
        return;
      case model::JobState::kQueued:
        ++reasons[is_short ? reason_of(explainer->explain(job).code) : "not_explained"];
        return;
      default:
        return;
    }
  });
  MetricFamily& waiting = page.gauge("gpu_platform_waiting_jobs",
                                     "Waiting jobs by reason; not_explained: in a queue of more "
                                     "than 1,000 jobs.");
  for (const auto& [reason, count] : reasons) waiting.add({{"reason", reason}}, count);
}

void add_teams(const Scrape& scrape, MetricPage& page) {
  MetricFamily& held = page.gauge("gpu_platform_team_gpus_held",
                                  "GPUs that the jobs of a team hold, a part as a fraction.");
  MetricFamily& jobs = page.gauge("gpu_platform_team_jobs", "Jobs of a team: active or waiting.");
  MetricFamily& max = page.gauge("gpu_platform_team_max_gpus", "GPUs that a team may hold.");
  MetricFamily& guaranteed =
      page.gauge("gpu_platform_team_guaranteed_gpus", "GPUs that are guaranteed to a team.");
  for (const Team& team : bounded(teams_of(*scrape.snapshot))) {
    const MetricLabels labels{{"team", team.name}};
    held.add(labels, team.held);
    jobs.add(labels.with("state", "active"), team.running);
    jobs.add(labels.with("state", "waiting"), team.waiting);
    if (team.has_max) max.add(labels, team.max_gpus);
    if (team.has_guarantee) guaranteed.add(labels, team.guaranteed_gpus);
  }
}

}  // namespace gpu_platform::api
