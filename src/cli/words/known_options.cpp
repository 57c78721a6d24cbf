#include "cli/words/known_options.h"

#include <algorithm>

#include "cli/client_names.h"

namespace gpu_platform::cli {

std::vector<std::string> parts_between(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

const KnownOption* KnownOptions::find(std::string_view name) const {
  const auto it = std::ranges::find_if(all, [&](const KnownOption& option) {
    return std::ranges::find(option.names, name) != option.names.end();
  });
  return it == all.end() ? nullptr : &*it;
}

KnownOptions options_of(const Command& command, const ProcessEnvironment& process_environment) {
  const std::vector<std::string> words = {std::string(kListOptions)};
  std::string lines;
  Console console(process_environment, lines);
  Invocation invocation{words, {}, console};
  KnownOptions options;
  if (command.run(command.text, invocation) != kOk) return options;
  for (const std::string& line : parts_between(lines, '\n')) {
    const std::vector<std::string> parts = parts_between(line, '\t');
    if (parts.size() != 3) continue;
    if (parts[0] == "=") {
      options.words = parts[1];
      options.words_help = parts[2];
    } else {
      options.all.push_back({parts_between(parts[0], ','), parts[1], parts[2]});
    }
  }
  return options;
}

}  // namespace gpu_platform::cli
