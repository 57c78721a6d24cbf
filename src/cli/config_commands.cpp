#include <sstream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_view.h"
#include "cli/table.h"
#include "cli/text.h"
#include "config/configuration.h"
#include "config/effective.h"
#include "config/yaml/reader.h"

namespace gpu_platform::cli {

namespace {

Json list_of(const std::vector<config::Problem>& problems) {
  Json list = Json::array();
  for (const config::Problem& problem : problems) {
    Json entry;
    entry["line"] = problem.line == 0 ? Json() : Json(problem.line);
    entry["column"] = problem.line == 0 ? Json() : Json(problem.column);
    entry["key"] = problem.key.empty() ? Json() : Json(problem.key);
    entry["message"] = problem.message;
    list.push_back(std::move(entry));
  }
  return list;
}

std::string document_of(const std::string& file, const std::vector<config::Problem>& problems,
                        const std::vector<config::Problem>& notes) {
  Json document;
  document["file"] = file;
  document["valid"] = problems.empty();
  document["problems"] = list_of(problems);
  document["notes"] = list_of(notes);
  return json_text(document) + "\n";
}

void print_problems(const std::vector<config::Problem>& problems,
                    const std::vector<config::Problem>& notes, const std::string& file,
                    Console& console) {
  for (const auto& problem : problems) {
    console.err(harmless(config::describe(problem, file)) + "\n");
  }
  for (const auto& note : notes) {
    console.err(harmless("note: " + config::describe(note, file)) + "\n");
  }
}

std::string_view effect_name(config::Effect effect) {
  return effect == config::Effect::kAnytime ? "ANYTIME" : "START";
}

std::string origin_of(const config::EffectiveValue& value, const std::string& file) {
  if (value.line == 0) return "default";
  return fmt::format("{}:{}", value.file.empty() ? file : value.file, value.line);
}

std::string values_document(const std::vector<config::EffectiveValue>& values,
                            const std::string& file) {
  Json list = Json::array();
  for (const config::EffectiveValue& value : values) {
    Json entry;
    entry["key"] = value.key;
    entry["value"] = value.value;
    entry["file"] = value.line == 0 ? Json() : Json(value.file.empty() ? file : value.file);
    entry["line"] = value.line == 0 ? Json() : Json(value.line);
    entry["takes_effect"] = effect_name(value.effect);
    list.push_back(std::move(entry));
  }
  Json document;
  document["file"] = file;
  document["values"] = std::move(list);
  return json_text(document) + "\n";
}

// Lists and tables stand below the table of values, as YAML.
std::string values_text(const std::vector<config::EffectiveValue>& values, const std::string& file,
                        std::size_t width) {
  Table table({{.title = "KEY"},
               {.title = "VALUE", .cut_to = 20},
               {.title = "FROM", .cut_to = 20},
               {.title = "APPLIES", .expendable = 1}});
  std::string lists;
  for (const config::EffectiveValue& value : values) {
    const std::string origin = origin_of(value, file);
    const bool is_list = value.value.find('\n') != std::string::npos;
    table.add({value.key, is_list ? "(below)" : value.value, origin,
               value.effect == config::Effect::kAnytime ? "at any time" : "at start"});
    if (!is_list) continue;
    lists += fmt::format("\n{}: # {}\n", value.key, harmless(origin));
    std::istringstream lines(value.value);
    for (std::string line; std::getline(lines, line);) lists += "  " + harmless(line) + "\n";
  }
  return table.render(width) + lists;
}

}  // namespace

int run_config_check(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> files;
  Output output;
  Arguments arguments(text);
  arguments.words("FILE", files, 1, 1, "the configuration file").output(output, {});
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  const std::string& file = files.front();
  const config::Checked checked = config::read_configuration(file);
  const std::vector<config::Problem> problems =
      checked ? std::vector<config::Problem>{} : checked.error();
  const std::vector<config::Problem> notes =
      checked ? checked->notes : std::vector<config::Problem>{};
  if (output.is_document()) {
    print_document(console, output, document_of(file, problems, notes));
  } else if (problems.empty()) {
    console.out(harmless(file) + ": ok\n");
  }
  if (!output.is_document()) print_problems(problems, notes, file, console);
  if (console.out_failed()) return kFailure;
  return problems.empty() ? kOk : kUsage;
}

int run_config_show(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> files;
  Output output;
  bool only_set = false;
  Arguments arguments(text);
  arguments.words("FILE", files, 1, 1, "the configuration file")
      .flag("--set", only_set, "only the values that a file sets")
      .output(output, {});
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  const std::string& file = files.front();
  const config::Checked checked = config::read_configuration(file);
  if (!checked) {
    print_problems(checked.error(), {}, file, console);
    return kUsage;
  }
  std::vector<config::EffectiveValue> values = config::effective_values(*checked);
  if (only_set) std::erase_if(values, [](const auto& value) { return value.line == 0; });
  if (output.is_document()) return print_document(console, output, values_document(values, file));
  console.out(values_text(values, file, output.width(console)));
  return console.out_failed() ? kFailure : kOk;
}

int run_config_reference(const CommandText& text, Invocation& invocation) {
  Arguments arguments(text);
  if (const auto done = arguments.parse(invocation.words, invocation.console)) return *done;
  invocation.console.out(config::reference_page());
  return invocation.console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
