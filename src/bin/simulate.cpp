#include <string_view>

#include "bin/verbs.h"
#include "cli/exit_code.h"
#include "cli/session.h"
#include "simulation/reports/simulate_faults_main.h"

namespace gpu_platform::bin {

namespace {

constexpr std::string_view kHelp =
    "Run the scheduling core on virtual time.\n"
    "\n"
    "Usage: gpu-platform simulate faults [options]\n"
    "\n"
    "  faults    crashes, lost reports, lost nodes, full disks and clock jumps, with every "
    "invariant\n"
    "            checked after every event (simulate faults --help)\n";

}  // namespace

int simulate_main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "faults") return simulation::simulate_faults_main(argc - 1, argv + 1);
  const cli::Surroundings surroundings = cli::surroundings_of_process();
  cli::Console console(surroundings);
  if (what == "--help" || what == "-h") {
    console.out(kHelp);
    return cli::kOk;
  }
  console.error(what.empty() ? "simulate: name what to simulate: faults"
                             : "simulate \"" + std::string(what) + "\": only faults is known");
  return cli::kUsage;
}

}  // namespace gpu_platform::bin
