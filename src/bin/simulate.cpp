#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bin/verbs.h"
#include "cli/words/arguments.h"
#include "client/exit_code.h"
#include "client/session.h"
#include "simulation/reports/fault_options.h"
#include "simulation/reports/report_faults.h"

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

constexpr cli::CommandText kFaults = {
    "simulate faults", "[options]",
    "Run the controller on virtual time through faults that are drawn from seeds: crashes at any "
    "journal point; lost, late and repeated messages; lost nodes; clock jumps; full disks; and a "
    "Kubernetes cluster that loses answers and repeats its watches.",
    "  gpu-platform simulate faults --seeds 1000\n"
    "  gpu-platform simulate faults --seeds 1 --first-seed 17    repeat one world\n"};

int simulate_faults(std::span<const std::string> words, client::Console& console) {
  simulation::FaultOptionTexts texts;
  bool is_json = false, shows_progress = false;
  cli::Arguments arguments(kFaults);
  arguments.option("--seeds", texts.seeds, "N", "how many worlds (default: 100)")
      .option("--first-seed", texts.first_seed, "S", "the first of them (default: 1)")
      .option("--plant", texts.plant, "DEFECT", "put this defect in, to see that it is found")
      .flag("--json", is_json, "print the report as JSON")
      .flag("--progress", shows_progress, "show progress on stderr if that is a terminal");
  if (const auto code = arguments.parse(words, console)) return *code;
  auto options = simulation::read_fault_options(texts);
  if (!options) {
    const base::Error& error = options.error();
    return cli::usage_error(console, fmt::format("{}: {}", error.field, error.message),
                            kFaults.name);
  }
  const auto as = is_json ? simulation::FaultReportAs::kJson : simulation::FaultReportAs::kText;
  return simulation::report_faults(*std::move(options), as, shows_progress) ? client::kOk
                                                                            : client::kFailure;
}

}  // namespace

int simulate_main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const client::ProcessEnvironment process_environment = client::environment_of_process();
  client::Console console(process_environment);
  if (what == "faults") {
    const std::vector<std::string> words(argv + 2, argv + argc);
    return simulate_faults(words, console);
  }
  if (what == "--help" || what == "-h") {
    console.out(kHelp);
    return client::kOk;
  }
  console.error(what.empty() ? "simulate: name what to simulate: faults"
                             : "simulate \"" + std::string(what) + "\": only faults is known");
  return client::kUsage;
}

}  // namespace gpu_platform::bin
