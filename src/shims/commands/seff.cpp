#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "shims/command_call.h"
#include "shims/steps/step_variables.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"

// seff: a short report about a job.

namespace gpu_platform::shims {

namespace {

constexpr Option kEfficiencyOptions[] = {
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'v', Take::kNothing, Rule::kHonoured, "", ""},
    {"debug", 'd', Take::kNothing, Rule::kAccepted, "", ""},
};

// "1.50 GB" of kibibytes, "0.00 MB" of none.
std::string size_text(double kibibytes) {
  constexpr std::string_view kUnits = "KMGTPE";
  if (kibibytes <= 0) return "0.00 MB";
  std::size_t unit = 0;
  for (; kibibytes >= 1024 && unit + 1 < kUnits.size(); ++unit) kibibytes /= 1024;
  return fmt::format("{:.2f} {}B", kibibytes, kUnits[unit]);
}

double percent(double part, double whole) {
  return whole > 0 ? part / whole * 100 : 0;
}

// The part of seff about what was used.
std::string use_text(const v1::Job& job, base::Instant now) {
  const v1::Attempt* last = latest_attempt(job);
  const double used_cpu = last != nullptr ? std::round(last->cpu_time_seconds()) : 0;
  const double used = last != nullptr ? static_cast<double>(last->peak_memory_bytes()) / 1024 : 0;
  const auto cpus = static_cast<double>(std::max<std::int64_t>(1, cpus_of(job).value_or(1)));
  const double memory = static_cast<double>(memory_of(job).value_or(0)) / 1024;
  const auto nodes = static_cast<double>(node_count(job));
  const auto wall = static_cast<double>(base::whole_milliseconds(run_time(job, now)) / 1000);
  const auto clock = [](double seconds) {
    return long_elapsed(base::seconds(static_cast<std::int64_t>(seconds)));
  };
  std::string text = fmt::format("CPU Utilized: {}\n", clock(used_cpu));
  text += fmt::format("CPU Efficiency: {:.2f}% of {} core-walltime\n",
                      percent(used_cpu, wall * cpus), clock(wall * cpus));
  text += fmt::format("Job Wall-clock time: {}\n", clock(wall));
  text += fmt::format("Memory Utilized: {}\n", size_text(used));
  text += fmt::format("Memory Efficiency: {:.2f}% of {} ({}/node)\n", percent(used, memory),
                      size_text(memory), size_text(memory / nodes));
  const v1::JobGpuUse& gpus = job.gpu_use();
  const auto count = std::ssize(job.gpus());
  if (gpus.has_utilization_percent()) {
    text += fmt::format("GPU Efficiency: {:.2f}% of {} GPU{}\n", gpus.utilization_percent(), count,
                        count == 1 ? "" : "s");
  }
  if (gpus.has_memory_percent()) {
    text += fmt::format("GPU Memory Utilized: {}\nGPU Memory Efficiency: {:.2f}%\n",
                        size_text(static_cast<double>(gpus.memory_bytes()) / 1024),
                        gpus.memory_percent());
  }
  if (gpus.has_energy_joules()) {
    text += fmt::format("GPU Energy: {:.0f} J\n", gpus.energy_joules());
  }
  return text;
}

std::string efficiency_page(const v1::Job& job, base::Instant now) {
  const std::string user = cli::harmless(job.spec().user());
  const std::string_view state = recorded_state_of(job).name;
  const std::int64_t cpus = std::max<std::int64_t>(1, cpus_of(job).value_or(1));
  const std::int64_t nodes = node_count(job);
  std::string text = fmt::format("Job ID: {}\n", job.id());
  if (!job.array_id().empty()) text += fmt::format("Array Job ID: {}\n", array_task_id(job));
  text += fmt::format("Cluster: {}\nUser/Group: {}/{}\n", kCluster, user, group_name(user));
  if (state == "PENDING" || state == "RUNNING") {
    text += fmt::format("State: {}\n", state);
  } else {
    text += fmt::format("State: {} (exit code {})\n", state, job.exit_code());
  }
  if (cpus == 1) {
    text += "Cores: 1\n";
  } else {
    text += fmt::format("Nodes: {}\nCores per node: {}\n", nodes, cpus / nodes);
  }
  if (state == "PENDING") return text + "Efficiency not available for jobs in the PENDING state.\n";
  text += use_text(job, now);
  if (state == "RUNNING")
    text += "WARNING: what a job used is known after its end; this is not all of it.\n";
  return text;
}

}  // namespace

std::span<const Option> seff_options() {
  return kEfficiencyOptions;
}

int seff(CommandCall& call) {
  const auto given = call.given({kEfficiencyOptions, "JOB_ID", true});
  if (!given) return given.error();
  if (given->words.size() != 1) return call.fail("name one job: seff JOB_ID");
  auto client = call.client();
  if (!client) return 1;
  const auto job = get_job(*client, given->words.front());
  if (!job && job.error().kind == client::Failure::Kind::kProblem) {
    call.console().err("Job not found.\n");
    return 2;
  }
  if (!job) return call.fail(job.error());
  call.console().out(efficiency_page(*job, call.around().now()));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
