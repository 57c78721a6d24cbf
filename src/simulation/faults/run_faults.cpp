#include "simulation/faults/run_faults.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "simulation/faults/world.h"

namespace gpu_platform::simulation {

namespace {

void check_every_fault_occurred(FaultReport& report) {
  if (report.seeds < kSeedsThatTryEverything) return;
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (report.faults[i] > 0) continue;
    report.violations.push_back({0, 0, "coverage",
                                 fmt::format("no world of {} had the fault {}", report.seeds,
                                             to_string(static_cast<FaultKind>(i)))});
  }
}

}  // namespace

FaultReport run_faults(const FaultOptions& options) {
  FaultReport report;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    const std::uint64_t seed = options.first_seed + i;
    if (options.before_seed) options.before_seed(seed);
    World world(seed, options.plant, report.faults);
    world.run();
    ++report.seeds;
    report.events += world.events();
    const std::uint64_t hash = world.hash();
    report.hash = base::hash64({reinterpret_cast<const char*>(&hash), sizeof hash}, report.hash);
    if (const auto& violation = world.findings().first()) report.violations.push_back(*violation);
    if (report.violations.size() >= options.max_violations) return report;
  }
  if (options.plant == Plant::kNone && report.violations.empty()) {
    check_every_fault_occurred(report);
  }
  return report;
}

std::string repeat_command(const Violation& violation, Plant plant) {
  std::string command =
      fmt::format("gpu-platform simulate faults --seeds 1 --first-seed {}", violation.seed);
  if (plant != Plant::kNone) command += fmt::format(" --plant {}", to_string(plant));
  return command;
}

}  // namespace gpu_platform::simulation
