#include <algorithm>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/json_view.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "config/configuration.h"
#include "config/effective.h"
#include "config/yaml/reader.h"
#include "gpu_platform/v1/configuration.pb.h"

namespace gpu_platform::cli {

namespace {

using InForceValue = config::InForce::Value;

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

std::string origin_of(const config::EffectiveValue& value) {
  return value.line == 0 ? "default" : fmt::format("{}:{}", value.file, value.line);
}

std::string values_document(const config::InForce& in_force) {
  Json list = Json::array();
  for (const auto& [value, next] : in_force.values) {
    Json entry;
    entry["key"] = value.key;
    entry["value"] = value.value;
    entry["file"] = value.line == 0 ? Json() : Json(value.file);
    entry["line"] = value.line == 0 ? Json() : Json(value.line);
    entry["takes_effect"] = effect_name(value.effect);
    entry["next_value"] = next == value.value ? Json() : Json(next);
    list.push_back(std::move(entry));
  }
  Json document;
  document["file"] = in_force.file.empty() ? Json() : Json(in_force.file);
  document["values"] = std::move(list);
  return json_text(document) + "\n";
}

std::string shown_value(const InForceValue& value) {
  if (value.now.value.find('\n') != std::string::npos) return "(below)";
  if (value.next == value.now.value) return value.now.value;
  return fmt::format("{} (next start: {})", value.now.value, value.next);
}

// Lists and tables stand below the table of values, as YAML.
std::string values_text(const config::InForce& in_force, std::size_t width) {
  Table table({{.title = "KEY"},
               {.title = "VALUE", .cut_to = 20},
               {.title = "FROM", .cut_to = 20},
               {.title = "APPLIES", .expendable = 1}});
  std::string lists;
  for (const InForceValue& value : in_force.values) {
    const std::string origin = origin_of(value.now);
    table.add({value.now.key, shown_value(value), origin,
               value.now.effect == config::Effect::kAnytime ? "at any time" : "at start"});
    if (value.now.value.find('\n') == std::string::npos) continue;
    lists += fmt::format("\n{}: # {}\n", harmless(value.now.key), harmless(origin));
    std::istringstream lines(value.now.value);
    for (std::string line; std::getline(lines, line);) lists += "  " + harmless(line) + "\n";
  }
  return table.render({.width = width}) + lists;
}

config::InForce in_force_of(const v1::Configuration& answer) {
  config::InForce in_force{answer.file(), {}};
  for (const v1::ConfigurationValue& entry : answer.values()) {
    InForceValue& value = in_force.values.emplace_back();
    value.now = {entry.key(), entry.value(), entry.file(), static_cast<int>(entry.line()),
                 entry.takes_effect() == v1::CONFIGURATION_EFFECT_ANYTIME
                     ? config::Effect::kAnytime
                     : config::Effect::kRestart};
    value.next = entry.has_next_value() ? entry.next_value() : entry.value();
  }
  return in_force;
}

// The values that a file results in; an error is the exit code.
std::expected<config::InForce, int> values_of_file(const std::string& file, Console& console) {
  const config::Checked checked = config::read_configuration(file);
  if (checked) return config::values_in_force(file, *checked, *checked);
  print_problems(checked.error(), {}, file, console);
  return std::unexpected(kUsage);
}

// The effective values of the daemon.
std::expected<config::InForce, int> values_of_daemon(const client::ServerChoice& choice,
                                                     const Output& output, Console& console) {
  auto client = client_for(choice, console);
  if (!client) return std::unexpected(client.error());
  const auto body = client->get("/v1/configuration");
  if (!body) return std::unexpected(report(console, body.error(), output.wants_documents()));
  const auto answer = client::message_of<v1::Configuration>(*body);
  if (answer) return in_force_of(*answer);
  console.error("the daemon's answer cannot be read");
  return std::unexpected(kFailure);
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
  std::vector<config::Problem> problems;
  std::vector<config::Problem> notes;
  if (!checked) {
    problems = checked.error();
  } else {
    notes = checked->notes;
    if (invocation.check_site != nullptr) {
      SiteFindings found = (*invocation.check_site)(*checked);
      problems = std::move(found.problems);
      std::ranges::move(found.notes, std::back_inserter(notes));
    }
  }
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
  client::ServerChoice choice;
  Arguments arguments(text);
  arguments.words("FILE", files, 0, 1, "a configuration file; without it, the daemon is asked")
      .flag("--set", only_set, "only the values that a file sets")
      .output(output, {});
  add_server_options(arguments, choice);
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  if (!choice.server) choice.server = invocation.server;
  auto in_force = files.empty() ? values_of_daemon(choice, output, console)
                                : values_of_file(files.front(), console);
  if (!in_force) return in_force.error();
  if (only_set) {
    std::erase_if(in_force->values, [](const auto& value) { return value.now.line == 0; });
  }
  if (output.is_document()) return print_document(console, output, values_document(*in_force));
  console.out(values_text(*in_force, output.width(console)));
  return console.out_failed() ? kFailure : kOk;
}

int run_config_reference(const CommandText& text, Invocation& invocation) {
  Arguments arguments(text);
  if (const auto done = arguments.parse(invocation.words, invocation.console)) return *done;
  invocation.console.out(config::reference_page());
  return invocation.console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
