#include "shims/documents/slurm_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/steps/step_variables.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

constexpr std::string_view kPrefix = "data_parser/";
constexpr std::pair<std::string_view, DocumentForm> kDocumentForms[] = {
    {"v0.0.42", DocumentForm::k42},
    {"v0.0.41", DocumentForm::k41},
    {"v0.0.40", DocumentForm::k40},
    {"v0.0.38", DocumentForm::k38}};

std::string_view name_of_form(DocumentForm form) {
  return std::ranges::find(kDocumentForms, form, &std::pair<std::string_view, DocumentForm>::second)
      ->first;
}

// "v0.0.41", "data_parser/v0.0.41+fast", "latest".
std::optional<DocumentForm> form_named(std::string_view text) {
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  const std::size_t plus = std::min(text.find('+'), text.size());
  const std::string_view flags = text.substr(plus);
  if (!flags.empty() && flags != "+fast") return std::nullopt;
  text = text.substr(0, plus);
  if (text == "latest") return DocumentForm::k42;
  for (const auto& [name, form] : kDocumentForms) {
    if (name == text) return form;
  }
  return std::nullopt;
}

int list_forms(CommandCall& call) {
  std::string text = "Possible data_parser plugins:\n";
  for (const auto& [name, form] : kDocumentForms) text += fmt::format("{}{}\n", kPrefix, name);
  call.console().out(text);
  return call.console().out_failed() ? 1 : 0;
}

Json meta_of(CommandCall& call, const DocumentStyle& style) {
  const std::string user = own_user();
  if (style.form == DocumentForm::k38) {
    return {{"plugin", {{"type", "openapi/v0.0.38"}, {"name", "gpu-platform " GP_VERSION}}},
            {"Slurm",
             {{"version", {{"major", 22}, {"micro", 8}, {"minor", 5}}}, {"release", "22.05.8"}}}};
  }
  return {{"plugin",
           {{"type", ""},
            {"name", "gpu-platform " GP_VERSION},
            {"data_parser", fmt::format("{}{}", kPrefix, name_of_form(style.form))},
            {"accounting_storage", "accounting_storage/gpu-platform"}}},
          {"client", {{"source", ""}, {"user", user}, {"group", group_name(user)}}},
          {"command", Json::array({call.name()})},
          {"slurm",
           {{"version", {{"major", "24"}, {"micro", "5"}, {"minor", "11"}}},
            {"release", kSlurmVersion},
            {"cluster", kCluster}}}};
}

std::string json_string(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One value that is neither a list nor an object. Texts stand in quotes, which any text may.
std::string yaml_scalar(const Json& value) {
  if (value.is_string()) {
    const std::string text = json_string(value);
    return text == "\"\"" ? "!!str" : "!!str " + text;
  }
  if (value.is_boolean()) return fmt::format("!!bool {}", value.get<bool>());
  if (value.is_null()) return "!!null null";
  if (value.is_number_float()) return fmt::format("!!float {:f}", value.get<double>());
  return "!!int " + json_string(value);
}

void add_yaml(const Json& value, std::size_t depth, std::string& text);

// Behind "KEY:" or "-".
void add_yaml_value(const Json& value, std::size_t depth, std::string& text) {
  if (!value.is_structured()) {
    text += " " + yaml_scalar(value) + "\n";
  } else if (value.empty()) {
    text += value.is_array() ? " !!seq []\n" : " !!map {}\n";
  } else {
    text += value.is_array() ? " !!seq\n" : " !!map\n";
    add_yaml(value, depth, text);
  }
}

void add_yaml(const Json& value, std::size_t depth, std::string& text) {
  const std::string indent(2 * depth, ' ');
  if (value.is_array()) {
    for (const Json& item : value) {
      text += indent + "-";
      add_yaml_value(item, depth + 1, text);
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    text += fmt::format("{}!!str {}:", indent, key);
    add_yaml_value(item, item.is_object() ? depth + 1 : depth, text);
  }
}

}  // namespace

std::expected<std::optional<DocumentStyle>, int> document_style(CommandCall& call,
                                                                const Settings& settings) {
  const bool is_yaml = settings.has("yaml");
  if (!is_yaml && !settings.has("json")) return std::optional<DocumentStyle>();
  const std::string value = settings.value(is_yaml ? "yaml" : "json");
  if (value == "list") return std::unexpected(list_forms(call));
  const auto form = value.empty() ? std::optional(DocumentForm::k42) : form_named(value);
  if (!form) {
    return std::unexpected(call.fail(fmt::format(
        "unable to find plugin: {}{}; --json=list names those that there are", kPrefix, value)));
  }
  const std::string_view spelling = variable(variables_of(call.around().environment), "SLURM_JSON");
  return DocumentStyle{*form, is_yaml, spelling == "compact"};
}

int print_document(CommandCall& call, const DocumentStyle& style, Json document) {
  document["meta"] = meta_of(call, style);
  document["errors"] = Json::array();
  if (style.form != DocumentForm::k38) document["warnings"] = Json::array();
  const int indent = style.is_compact ? -1 : 2;
  call.console().out(
      style.is_yaml ? yaml_text(document)
                    : document.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n");
  return call.console().out_failed() ? 1 : 0;
}

Json set_number(std::int64_t number) {
  return {{"set", true}, {"infinite", false}, {"number", number}};
}

Json set_number(const std::optional<std::int64_t>& number) {
  return number ? set_number(*number) : unset_number();
}

Json unset_number() {
  return {{"set", false}, {"infinite", false}, {"number", 0}};
}

Json infinite_number() {
  return {{"set", false}, {"infinite", true}, {"number", 0}};
}

std::string yaml_text(const Json& document) {
  std::string text = "%YAML 1.1\n---";
  add_yaml_value(document, 0, text);
  return text + "...\n";
}

}  // namespace gpu_platform::shims
