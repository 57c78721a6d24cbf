#include <array>

#include "bin/site_check.h"
#include "bin/verbs.h"
#include "cli/cli.h"

int main(int argc, char** argv) {
  namespace cli = gpu_platform::cli;
  namespace bin = gpu_platform::bin;
  const std::array<cli::OtherCommand, 4> others = {{
      {bin::kVerbs[0].name, bin::kVerbs[0].summary, bin::serve_main},
      {bin::kVerbs[1].name, bin::kVerbs[1].summary, bin::doctor_main},
      {bin::kVerbs[2].name, bin::kVerbs[2].summary, bin::simulate_main},
      {bin::kVerbs[3].name, bin::kVerbs[3].summary, bin::store_main},
  }};
  return cli::run(argc, argv, others, bin::check_site);
}
