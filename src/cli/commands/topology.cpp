#include "base/percent.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/topology_text.h"

namespace gpu_platform::cli {

int run_topology(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> node;
  Output output;
  Arguments arguments(text);
  arguments.option("--node", node, "NAME", "show only this node").output(output, {"nodes", "node"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (node.has_value() && node->empty()) return usage_error(console, "--node: is empty", text.name);
  return show_message<v1::GetTopologyResponse>(
      console, *client, output,
      node ? "/v1/topology?node=" + base::percent_encoded(*node) : "/v1/topology",
      [&](Console& shown, const v1::GetTopologyResponse& topology) {
        if (topology.nodes().empty()) {
          shown.note("there are no nodes");
        } else {
          const JobLabels labels = has_parts(topology) ? job_labels(*client) : JobLabels();
          shown.out(topology_page(topology, output.width(shown), labels));
        }
      });
}

}  // namespace gpu_platform::cli
