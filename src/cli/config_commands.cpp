#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_view.h"
#include "cli/text.h"
#include "config/configuration.h"
#include "config/yaml/reader.h"

namespace gpu_platform::cli {

namespace {

std::string problems_document(const std::string& file,
                              const std::vector<config::Problem>& problems) {
  Json document;
  document["file"] = file;
  document["valid"] = problems.empty();
  document["problems"] = Json::array();
  for (const config::Problem& problem : problems) {
    Json entry;
    entry["line"] = problem.line == 0 ? Json() : Json(problem.line);
    entry["column"] = problem.line == 0 ? Json() : Json(problem.column);
    entry["key"] = problem.key.empty() ? Json() : Json(problem.key);
    entry["message"] = problem.message;
    document["problems"].push_back(std::move(entry));
  }
  return json_text(document) + "\n";
}

}  // namespace

int run_config_check(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> files;
  bool json = false;
  Arguments arguments(text);
  arguments.words("FILE", files, 1, 1, "the configuration file").flag("--json", json, "print JSON");
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  const std::string& file = files.front();
  const config::Checked checked = config::read_configuration(file);
  const std::vector<config::Problem> problems =
      checked ? std::vector<config::Problem>{} : checked.error();
  if (json) {
    console.out(problems_document(file, problems));
  } else if (problems.empty()) {
    console.out(harmless(file) + ": ok\n");
  }
  if (!json) {
    for (const auto& problem : problems)
      console.err(harmless(config::describe(problem, file)) + "\n");
  }
  if (console.out_failed()) return kFailure;
  return problems.empty() ? kOk : kUsage;
}

int run_config_reference(const CommandText& text, Invocation& invocation) {
  Arguments arguments(text);
  if (const auto done = arguments.parse(invocation.words, invocation.console)) return *done;
  invocation.console.out(config::reference_page());
  return invocation.console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
