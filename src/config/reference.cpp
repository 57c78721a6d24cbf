#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "config/configuration.h"
#include "config/other_names.h"
#include "config/schema.h"

namespace gpu_platform::config {

namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

This page is printed by `gpu-platform config reference` from the table that also checks the file. A test keeps it
equal to that table.

`gpu-platform serve --config FILE` reads one YAML file. Every key has a default, so an empty file is valid.
`include: [teams.yaml, limits.yaml]` at the top adds the keys of further files. Their paths are absolute or relative to
the folder of this file. A key may be set in only one of the files, and an included file cannot include others.

`gpu-platform config check FILE` reports all problems of a file (`FILE:LINE:COLUMN: what, and what is allowed`) and
exits with 2, or prints `FILE: ok` and exits with 0. Unknown keys, duplicate keys and values out of range are refused.
`gpu-platform config show FILE` prints every value with the file and line that set it, or `default`. Without `FILE` it
prints the values that the daemon uses, and those that its next start will use.

A duration is written as `90s`, `15m`, `2h`, `1d` or `HH:MM:SS`. A bare number means minutes, except in a key whose
name ends in its unit (`_seconds`, `_hours`). A size is written as `16G` (2^30 bytes) or `16GB` (10^9 bytes). A bare
number means MiB. Numbers, durations and sizes are written without quotes. Words may be in upper or lower case, with
`-` instead of `_`.

"Takes effect" says when a changed value is used: `at any time` means when the daemon gets SIGHUP and reads the file again,
`at start` only when the daemon starts. The daemon's log has a line for each value that a reload changed, and one for
each value that takes effect at the next start.
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

// "a.b.c": the sections "a" and "a.b", and the key's own name "c".
std::vector<std::string_view> sections_of(const Key& key) {
  std::vector<std::string_view> sections;
  for (std::size_t dot = 0; (dot = key.path.find('.', dot)) != std::string_view::npos; ++dot) {
    sections.push_back(key.path.substr(0, dot));
  }
  return sections;
}

std::string_view last_name(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

std::string example() {
  std::string text = "\n## All keys with their defaults\n\n```yaml\n";
  std::vector<std::string_view> open;
  for (const Key& key : schema()) {
    const std::vector<std::string_view> sections = sections_of(key);
    for (std::size_t depth = 0; depth < sections.size(); ++depth) {
      if (depth < open.size() && open[depth] == sections[depth]) continue;
      text += fmt::format("{}{}:\n", std::string(2 * depth, ' '), last_name(sections[depth]));
    }
    open = sections;
    const std::string value = value_text(key, Configuration{});
    const std::string_view comment = value == "not set" ? "# " : "";
    text += fmt::format("{}{}{}: {}\n", std::string(2 * sections.size(), ' '), comment,
                        last_name(key.path), value);
  }
  return text + "```\n";
}

std::string lists_and_tables() {
  std::string text =
      "\n## Lists and tables\n\nThese take effect at any time. An absent list or table is empty.\n";
  for (const Structure& each : structures()) {
    text += fmt::format("\n### {}\n\n{}: {}\n", each.path, each.form, each.doc);
    if (!each.example.empty()) text += fmt::format("\n```yaml\n{}```\n", each.example);
  }
  return text;
}

// "`a` is `b`".
std::string keys_of_others() {
  std::string text =
      "\n## Keys of other programs\n\nA file may also have these keys.\n\n"
      "| key | meaning |\n| --- | --- |\n";
  for (const OtherName& other : kOtherNames) {
    text += fmt::format("| `{}` | another name of `{}` |\n", other.path, other.key);
  }
  for (const PassiveKey& key : kPassiveKeys) {
    if (key.others.empty()) {
      text += fmt::format("| `{}` | accepted with a note: {} |\n", key.path, key.note);
    } else {
      text += fmt::format("| `{}` | `{}`, as the program does. Other values are refused: {} |\n",
                          key.path, key.done.substr(0, key.done.find(' ')), key.others);
    }
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
  return page + example() + lists_and_tables() + keys_of_others();
}

}  // namespace gpu_platform::config
