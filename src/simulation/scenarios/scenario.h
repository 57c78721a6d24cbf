#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpu_platform::simulation {

// One line of a scenario: "submit a gpus=8 limit=1h" has the verb "submit", the argument "a" and
// two options; "expect start a n1" has the verb "expect start".
struct Statement {
  std::size_t line = 0;  // from 1
  std::string verb;
  std::vector<std::string> arguments;
  std::map<std::string, std::string, std::less<>> options;
};

struct Scenario {
  std::string file;  // for messages
  std::vector<Statement> statements;
};

// Reads the text form that tests/scenarios/README.md describes. Checks verbs, the number of
// arguments and the names of options; an error begins with "FILE:LINE: ".
base::Result<Scenario> parse_scenario(std::string_view text, std::string file);

// Runs it through the controller, the memory store and the virtual engine on virtual time.
// Empty when every expectation held; otherwise the first that did not, or the first statement that
// cannot be carried out, as "FILE:LINE: …".
std::string run_scenario(const Scenario& scenario);

}  // namespace gpu_platform::simulation
