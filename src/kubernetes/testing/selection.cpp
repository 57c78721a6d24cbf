#include "kubernetes/testing/selection.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "kubernetes/testing/json_access.h"

namespace gpu_platform::kubernetes {

namespace {

struct Field {
  std::string_view name;
  const char* pointer;
};
constexpr std::array kFields = {
    Field{"metadata.name", "/metadata/name"}, Field{"metadata.namespace", "/metadata/namespace"},
    Field{"spec.nodeName", "/spec/nodeName"}, Field{"spec.driver", "/spec/driver"},
    Field{"status.phase", "/status/phase"}};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

// Parts between commas that are not in parentheses.
std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms;
  std::string term;
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      terms.push_back(trimmed(term));
      term.clear();
    } else {
      term += c;
    }
  }
  if (!trimmed(term).empty()) terms.push_back(trimmed(term));
  return terms;
}

// "key in (a,b)" and "key notin (a,b)"; nothing for another form.
std::optional<Requirement> parse_set(const std::string& term) {
  const std::size_t open = term.find('(');
  if (open == std::string::npos || term.back() != ')') return std::nullopt;
  const std::string head = trimmed(term.substr(0, open));
  const std::size_t space = head.find(' ');
  if (space == std::string::npos) return std::nullopt;
  Requirement set;
  set.key = head.substr(0, space);
  const std::string word = trimmed(head.substr(space));
  if (word != "in" && word != "notin") return std::nullopt;
  set.is_negated = word == "notin";
  for (const std::string& value : split_terms(term.substr(open + 1, term.size() - open - 2))) {
    set.values.insert(value);
  }
  return set;
}

// "key=value", "key==value" and "key!=value"; nothing for another form.
std::optional<Requirement> parse_equality(const std::string& term) {
  const std::size_t equals = term.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  Requirement equality;
  equality.is_negated = term[equals - 1] == '!';
  equality.key = trimmed(term.substr(0, equals - (equality.is_negated ? 1 : 0)));
  const bool is_double = equals + 1 < term.size() && term[equals + 1] == '=';
  equality.values.insert(trimmed(term.substr(equals + (is_double ? 2 : 1))));
  return equality;
}

base::Result<Requirement> parse_label(const std::string& term) {
  if (auto set = parse_set(term)) return *std::move(set);
  if (auto equality = parse_equality(term)) return *std::move(equality);
  const bool is_negated = term.starts_with('!');
  const std::string key = term.substr(is_negated ? 1 : 0);
  if (key.empty() || key.find_first_of(" ()") != std::string::npos) {
    return base::invalid("labelSelector", fmt::format("unable to parse requirement: {}", term));
  }
  return Requirement{.key = key, .values = {}, .is_negated = is_negated};
}

bool is_met(const Requirement& requirement, const nlohmann::json& value) {
  if (!value.is_string()) return requirement.is_negated;
  if (requirement.values.empty()) return !requirement.is_negated;
  return requirement.values.contains(value.get<std::string>()) != requirement.is_negated;
}

const char* pointer_of(std::string_view field) {
  for (const Field& known : kFields) {
    if (known.name == field) return known.pointer;
  }
  return nullptr;
}

}  // namespace

bool Selection::matches(const nlohmann::json& object) const {
  const nlohmann::json& own = value_at(object, "/metadata/labels");
  for (const Requirement& label : labels) {
    const auto found = own.is_object() ? own.find(label.key) : own.end();
    if (!is_met(label, found == own.end() ? nlohmann::json() : *found)) return false;
  }
  for (const Requirement& field : fields) {
    // A field that is not set counts as an empty text.
    if (!is_met(field, text_at(object, pointer_of(field.key)))) return false;
  }
  return true;
}

base::Result<Selection> parse_selection(std::string_view label_selector,
                                        std::string_view field_selector) {
  Selection selection;
  for (const std::string& term : split_terms(label_selector)) {
    TRY_ASSIGN(Requirement label, parse_label(term));
    selection.labels.push_back(std::move(label));
  }
  for (const std::string& term : split_terms(field_selector)) {
    auto field = parse_equality(term);
    if (!field) {
      return base::invalid("fieldSelector", fmt::format("invalid selector: '{}'", term));
    }
    if (pointer_of(field->key) == nullptr) {
      return base::invalid("fieldSelector",
                           fmt::format("field label not supported: {}", field->key));
    }
    selection.fields.push_back(*std::move(field));
  }
  return selection;
}

}  // namespace gpu_platform::kubernetes
