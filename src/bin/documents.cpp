// Prints the documents that are made from the program's own tables; ./dev generate writes them to
// docs/:
//   documents states    the state machines, as diagrams and tables
//   documents openapi   the OpenAPI document of the REST interface
//   documents options   the command line's options of a job, as a table
//   documents slurm     the options of Slurm's commands, as a table
//   documents access    who may use which call, as tables
//   documents man DIR   the man pages, into a folder; the installation does this

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "api/call_access.h"
#include "api/convert/option_table.h"
#include "api/rest/openapi.h"
#include "api/rest/routes.h"
#include "bin/verbs.h"
#include "cli/words/man.h"
#include "model/state_diagrams.h"
#include "shims/shims.h"

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
  } else if (name == "slurm") {
    fmt::print("{}", shims::options_page(shims::option_tables()));
  } else if (name == "access") {
    fmt::print("{}", api::access_table());
  } else {
    fmt::print(stderr, "usage: documents states|openapi|options|slurm|access|man DIR\n");
    return 2;
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int write_man_pages(const std::string& folder) {
  std::vector<cli::OtherCommand> others;
  for (const VerbText& verb : kVerbs) others.push_back({verb.name, verb.summary, {}});
  std::vector<cli::ManPage> pages = cli::man_pages(others);
  std::ranges::move(shims::man_pages(), std::back_inserter(pages));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const cli::ManPage& page : pages) {
    const std::string path = fmt::format("{}/{}.1", folder, page.name);
    std::ofstream file(path, std::ios::binary);
    file << page.text;
    if (file.flush()) continue;
    fmt::print(stderr, "{} cannot be written\n", path);
    return 1;
  }
  return 0;
}

}  // namespace

}  // namespace gpu_platform::bin

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "man") {
    return gpu_platform::bin::write_man_pages(argv[2]);
  }
  return gpu_platform::bin::print_document(argc == 2 ? argv[1] : "");
}
