#include "cli/text/output.h"

#include "cli/client_names.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"
#include "cli/text/yaml.h"

namespace gpu_platform::cli {

namespace {

// "gpu/uuid": the uuid of the object's gpu.
std::string name_in(const Json& object, std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return text_at(object, path);
  return name_in(object_at(object, path.substr(0, slash)), path.substr(slash + 1));
}

std::string names_in(const Json& document, const NamesPlace& place) {
  if (place.list.empty()) return harmless(name_in(document, place.name)) + "\n";
  std::string lines;
  for (const Json& entry : list_at(document, place.list)) {
    lines += harmless(name_in(entry, place.name)) + "\n";
  }
  return lines;
}

std::string text_of(const Output& output, const std::string& document) {
  const auto parsed =
      output.format == Output::Format::kJson ? std::nullopt : parse_object(document);
  if (parsed && output.format == Output::Format::kYaml) return yaml_text(*parsed);
  if (parsed && output.format == Output::Format::kName) return names_in(*parsed, output.names);
  return document.ends_with('\n') ? document : document + "\n";
}

}  // namespace

int print_document(Console& console, const Output& output, const std::string& document) {
  console.out(text_of(output, document));
  return console.out_failed() ? kFailure : kOk;
}

int print_next_document(Console& console, const Output& output, const std::string& document) {
  if (output.format == Output::Format::kYaml) console.out("---\n");
  return print_document(console, output, document);
}

}  // namespace gpu_platform::cli
