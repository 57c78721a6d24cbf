#include "node/driver_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "node/site_hooks.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view rule_of(DriverVerb verb) {
  switch (verb) {
    case DriverVerb::kReset:
      return "reset";
    case DriverVerb::kQuickCheck:
    case DriverVerb::kDeepCheck:
      return "check";
    case DriverVerb::kPower:
      break;
  }
  return "power";
}

bool is_rule(std::string_view what) {
  constexpr std::string_view kRules[] = {"reset", "check", "power"};
  return std::ranges::find(kRules, what) != std::end(kRules);
}

// Cuts the next word off the front of a line.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line.substr(0, line.find('#'));
}

}  // namespace

std::string refusal_of(std::string_view rules, DriverVerb verb) {
  bool is_allowed = false;
  for (std::size_t number = 1; !rules.empty(); ++number) {
    std::string_view line = next_line(rules);
    const std::string_view order = take_word(line);
    const std::string_view what = take_word(line);
    if (order.empty()) continue;
    if (order != "allow" || !is_rule(what) || !take_word(line).empty()) {
      return "line " + std::to_string(number) +
             " is no rule: write \"allow reset\", \"allow check\" or \"allow power\"";
    }
    is_allowed = is_allowed || what == rule_of(verb);
  }
  if (is_allowed) return {};
  return "they do not allow it: add the line \"allow " + std::string(rule_of(verb)) + "\"";
}

std::string refusal_of_file(const std::string& path, DriverVerb verb) {
  errno = 0;
  if (os::read_small_file(AT_FDCWD, path.c_str()).empty() && errno == ENOENT) {
    return "this site has no rules for it: root writes \"allow " + std::string(rule_of(verb)) +
           "\" into " + path;
  }
  if (std::string why = error_in_rules(path); !why.empty()) return why;
  errno = 0;
  const std::string rules = os::read_small_file(AT_FDCWD, path.c_str());
  if (rules.empty() && errno != 0) return path + ": " + strerror(errno);
  const std::string why = refusal_of(rules, verb);
  return why.empty() ? why : "the rules in " + path + ": " + why;
}

}  // namespace gpu_platform::node
