#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_view.h"
#include "cli/topology_text.h"

namespace gpu_platform::cli {

int run_topology(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> node;
  bool json = false;
  Arguments arguments(text);
  arguments.option("--node", node, "NAME", "show only this node")
      .flag("--json", json, "print JSON");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (node.has_value() && node->empty()) return usage_error(console, "--node: is empty", text.name);
  const auto body =
      client->get(node ? "/v1/topology?node=" + percent_encoded(*node) : "/v1/topology");
  if (!body) return report(console, body.error(), json);
  const auto topology = parse_object(*body);
  if (json || !topology) return print_document(console, *body);
  if (list_at(*topology, "nodes").empty()) {
    console.note("there are no nodes");
    return kOk;
  }
  console.out(topology_page(*topology, console.surroundings().width));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
