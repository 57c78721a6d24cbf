#include "base/check.h"
#include "config/yaml/reader.h"
#include "target.h"

// The site's configuration file.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  // None of the files that a configuration may name is there.
  const config::Checked checked = config::parse_configuration(input, "/nonexistent");
  if (!checked) {
    CHECK(!checked.error().empty());
    for (const config::Problem& problem : checked.error()) {
      CHECK(!problem.message.empty() && problem.line >= 0 && problem.column >= 0);
      // A file that is the wrong one is not printed line by line.
      const std::string line = config::describe(problem, "f.yaml");
      for (const char c : line) CHECK(c >= ' ' || c < '\0');
    }
  }
  CHECK(config::parse_configuration(input, "/nonexistent") == checked);
}

std::vector<std::string> seeds() {
  return {"scheduling:\n  max_queue_size: 50\n", "teams:\n  - name: a\n    members: [ann, bob]\n",
          "access:\n  roles: {operator: [ann]}\n  visibility: {jobs: team}\nteams:\n  - {name: a, "
          "coordinators: [bob]}\n"};
}

}  // namespace gpu_platform::fuzz
