#include <array>

#include "bin/verbs.h"
#include "cli/cli.h"

int main(int argc, char** argv) {
  namespace cli = gpu_platform::cli;
  namespace bin = gpu_platform::bin;
  const std::array<cli::OtherCommand, 4> others = {{
      {"serve", "run the daemon in the foreground", bin::serve_main},
      {"doctor", "say what this host can give, and what to mend", bin::doctor_main},
      {"simulate", "run the scheduling core on virtual time: simulate faults", bin::simulate_main},
      {"store", "check or recover the store of a daemon that is not running", bin::store_main},
  }};
  return cli::run(argc, argv, others);
}
