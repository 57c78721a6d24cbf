#include <algorithm>

#include "base/check.h"
#include "config/network_file.h"
#include "target.h"

// The file that says where nodes are in the network.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  const auto places = config::parse_network(input);
  const auto lines = 1 + std::ranges::count(input, '\n');
  if (!places) {
    CHECK(places.error().line >= 0 && places.error().line <= lines);
    CHECK(!places.error().message.empty());
    return;
  }
  CHECK(config::parse_network(input) == places);
  for (const auto& [node, place] : *places) CHECK(!node.empty());
}

std::vector<std::string> seeds() {
  return {"dgx-[01-16]  domain=su1 rack=r1 zone=hall-a\n# a comment\nn1 rack=r2\n",
          "a[1-3,7],b domain=x\n"};
}

}  // namespace gpu_platform::fuzz
