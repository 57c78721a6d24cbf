#include <algorithm>

#include "base/check.h"
#include "simulation/scenarios/scenario.h"
#include "target.h"

// The text form of scenarios.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  const auto scenario = simulation::parse_scenario(input, "x.scn");
  if (!scenario) {
    CHECK(scenario.error().message.starts_with("x.scn:"));
    return;
  }
  const auto lines = static_cast<std::size_t>(1 + std::ranges::count(input, '\n'));
  std::size_t last = 0;
  for (const simulation::Statement& statement : scenario->statements) {
    CHECK(statement.line > last && statement.line <= lines);
    CHECK(!statement.verb.empty());
    last = statement.line;
  }
}

std::vector<std::string> seeds() {
  return {"node n1 gpus=8 model=h100\nsubmit a gpus=8 time=1h\nexpect start a n1\n",
          "policy scheduling.order=fair_share\nsubmit b text=\"a # b\"  # why\nexpect wait b "
          "because=no_capacity\n"};
}

}  // namespace gpu_platform::fuzz
