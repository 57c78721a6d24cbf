#include "config/schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/schema_keys.h"

namespace gpu_platform::config {

namespace {

// clang-format off
constexpr std::array kSections = {
    Section{"cluster", "What the site declares about its cluster."},
    Section{"scheduling", "The queue and its order."},
    Section{"quotas", "The limits of users and projects. The entry of a team has its own limits."},
    Section{"allocation", "How GPUs are guaranteed to teams and users."},
    Section{"gpu_selection",
        "The choice of GPUs by their load. "
        "It is for machines that people also use outside the queue: docs/scheduling.md describes it."},
    Section{"policies", "The limits of all jobs."},
    Section{"fault_tolerance", "What happens when a job, a node or a GPU fails."},
    Section{"execution", "How jobs are run."},
    Section{"engines",
        "Where jobs run: on this machine, in a Kubernetes cluster, or both. "
        "docs/kubernetes.md shows the way to the first job."},
    Section{"monitoring", "How often the hardware is read."},
    Section{"health", "What makes a GPU unfit for work."},
    Section{"telemetry", "What is read of GPUs and hosts, and how long it is kept. docs/monitoring.md has more."},
    Section{"accounting", "What GPUs cost, and what teams, users and projects may spend. docs/accounting.md has more."},
    Section{"alerts", "What people are told of, and how. docs/alerts.md has more."},
    Section{"store", "What is kept on disk."},
    Section{"api", "The API and its limits."},
    Section{"access",
        "Who may do what, and who sees the jobs and data of others. "
        "docs/security.md has the roles. "
        "Root and the user that the daemon runs as are always administrators."},
    Section{"slurm", "What Slurm's commands count and show. docs/slurm-shims.md has the commands."},
};
// clang-format on

std::vector<Key> joined() {
  std::vector<Key> keys;
  for (const std::span<const Key> part : {queue_keys(), execution_keys(), telemetry_keys(),
                                          alert_keys(), accounting_keys(), api_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace

Problem problem_at(std::string_view key, std::string message, const Configuration& configuration) {
  Problem problem{0, 0, std::string(key), std::move(message), {}};
  const auto place = std::ranges::find(configuration.places, key, &KeyPlace::key);
  if (place == configuration.places.end()) return problem;
  problem.line = place->line;
  problem.column = place->column;
  problem.file = place->file;
  return problem;
}

std::string describe(const Problem& problem, std::string_view file) {
  if (!problem.file.empty()) file = problem.file;
  if (problem.line == 0) return fmt::format("{}: {}", file, problem.message);
  return fmt::format("{}:{}:{}: {}", file, problem.line, problem.column, problem.message);
}

std::span<const Key> schema() {
  static const std::vector<Key> keys = joined();
  return keys;
}

std::span<const Section> sections() {
  return kSections;
}

}  // namespace gpu_platform::config
