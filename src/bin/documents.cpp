// Prints the documents that are made from the program's own tables; ./dev generate writes them to
// docs/:
//   documents states    the state machines, as diagrams and tables
//   documents openapi   the OpenAPI document of the REST interface
//   documents options   the command line's options of a job, as a table

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "api/convert/option_table.h"
#include "api/rest/openapi.h"
#include "api/rest/routes.h"
#include "model/state_diagrams.h"

namespace gpu_platform::bin {

namespace {

int print_document(std::string_view name) {
  if (name == "states") {
    fmt::print("{}", model::state_diagrams());
  } else if (name == "openapi") {
    const api::RoutingTable table;
    fmt::print("{}\n", api::openapi_document(table.routes(), GP_VERSION));
  } else if (name == "options") {
    fmt::print("{}", api::option_table());
  } else {
    fmt::print(stderr, "usage: documents states|openapi|options\n");
    return 2;
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

}  // namespace gpu_platform::bin

int main(int argc, char** argv) {
  return gpu_platform::bin::print_document(argc == 2 ? argv[1] : "");
}
