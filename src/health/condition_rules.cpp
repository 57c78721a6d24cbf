#include "health/condition_rules.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "health/evidence_words.h"

namespace gpu_platform::health {

namespace {

std::string lower_case(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

const Rule* find_rule(std::string_view name, const Rules& rules, std::string_view gpu_type,
                      std::string_view node) {
  const std::span<const Rule> rows = rules.rows(gpu_type);
  const bool is_there = std::ranges::find(rows, name, &Rule::name) != rows.end();
  return is_there ? &rules.of(name, gpu_type, node) : nullptr;
}

// The word after the name: "DCGMError" of "AcceleratedHardwareReady: DCGMError: no host process".
std::string_view reason_of(std::string_view text) {
  std::string_view rest = text.substr(std::min(condition_name(text).size(), text.size()));
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  return rest.substr(0, rest.find(':'));
}

// "XID79", "xid-79", "Xid: 79", "xid=79". An SXID is one of an NVSwitch.
std::optional<std::uint32_t> xid_of(std::string_view small) {
  for (std::size_t at = small.find("xid"); at != std::string_view::npos;
       at = small.find("xid", at + 1)) {
    const bool is_of_switch = at > 0 && small[at - 1] == 's';
    std::string_view rest = small.substr(at + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of("-_=: "), rest.size()));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc() && !is_of_switch) return number;
  }
  return std::nullopt;
}

}  // namespace

ConditionMeaning meaning_of_condition(std::string_view text, const Rules& rules,
                                      std::string_view gpu_type, std::string_view node) {
  const std::string name = "condition-" + lower_case(condition_name(text));
  const std::string with_reason = fmt::format("{}-{}", name, lower_case(reason_of(text)));
  if (const Rule* rule = find_rule(with_reason, rules, gpu_type, node)) return {rule, rule->action};
  if (const auto xid = xid_of(lower_case(text))) {
    const Rule& rule = rules.of_xid(*xid, gpu_type, node);
    return {&rule, std::min(rule.action, Action::kDrain)};
  }
  if (const Rule* rule = find_rule(name, rules, gpu_type, node)) return {rule, rule->action};
  const Rule& rule =
      rules.of(is_node_fault(text) ? "node-fault" : "condition-unknown", gpu_type, node);
  return {&rule, rule.action};
}

}  // namespace gpu_platform::health
