#include <fmt/format.h>

#include "config/configuration.h"
#include "config/schema.h"

namespace gpu_platform::config {

namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

Printed by `gpu-platform config reference` from the table that also checks the file; a test keeps this page
equal to it.

`gpu-platform serve --config FILE` reads one YAML file; every key has a default, so an empty file is a valid one.
`gpu-platform config check FILE` reports everything that is wrong with a file (`FILE:LINE:COLUMN: what, and what
is allowed`) and exits with 2, or prints `FILE: ok` and exits with 0. Unknown keys, keys that stand twice and
values out of range are refused.

Durations are written `90s`, `15m`, `2h`, `1d` or `HH:MM:SS`; a bare number is minutes, except in a key whose name
ends in its unit (`_seconds`, `_hours`). Sizes are written `16G` (2^30 bytes), `16GB` (10^9 bytes); a bare number is
MiB. Numbers and words stand without quotes.

"Takes effect" says whether a changed value is taken up while the daemon runs, when it gets SIGHUP and reads the file
again (`at any time`), or is read once (`at start`).
)";

std::string_view section_of(const Key& key) {
  return key.path.substr(0, key.path.find('.'));
}

std::string row(const Key& key) {
  const std::string_view effect = key.effect == Effect::kAnytime ? "at any time" : "at start";
  const std::string_view rest = key.path.substr(section_of(key).size() + 1);
  return fmt::format("| `{}` | `{}` | {} | {} | {} |\n", rest, value_text(key, Configuration{}),
                     allowed_text(key), effect, key.doc);
}

std::string example() {
  std::string text = "\n## All keys with their defaults\n\n```yaml\n";
  std::string_view section;
  std::string group;
  for (const Key& key : schema()) {
    if (section_of(key) != section) {
      section = section_of(key);
      group.clear();
      text += fmt::format("{}:\n", section);
    }
    std::string_view rest = key.path.substr(section.size() + 1);
    std::string indent = "  ";
    if (const std::size_t dot = rest.find('.'); dot != std::string_view::npos) {
      if (group != rest.substr(0, dot)) text += fmt::format("  {}:\n", rest.substr(0, dot));
      group = rest.substr(0, dot);
      rest = rest.substr(dot + 1);
      indent = "    ";
    }
    const std::string value = value_text(key, Configuration{});
    const std::string_view comment = value == "not set" ? "# " : "";
    text += fmt::format("{}{}{}: {}\n", indent, comment, rest, value);
  }
  return text + "```\n";
}

std::string lists_and_tables() {
  std::string text =
      "\n## Lists and tables\n\nThey take effect at any time, and have nothing in them where they "
      "are absent.\n";
  for (const Structure& each : structures()) {
    text += fmt::format("\n### {}\n\n{}: {}\n", each.path, each.form, each.doc);
    if (!each.example.empty()) text += fmt::format("\n```yaml\n{}```\n", each.example);
  }
  return text;
}

}  // namespace

std::string reference_page() {
  std::string page(kIntroduction);
  for (const Section& section : sections()) {
    page += fmt::format("\n## {}\n\n{}\n\n", section.name, section.doc);
    page += "| key | default | allowed | takes effect | |\n| --- | --- | --- | --- | --- |\n";
    for (const Key& key : schema()) {
      if (section_of(key) == section.name) page += row(key);
    }
  }
  return page + example() + lists_and_tables();
}

}  // namespace gpu_platform::config
