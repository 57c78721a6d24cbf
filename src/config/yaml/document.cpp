#include "config/yaml/document.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::config {

namespace {

std::unexpected<Problem> at(const YAML::Mark& mark, std::string message) {
  const bool placed = mark.line >= 0;
  return std::unexpected(Problem{
      placed ? mark.line + 1 : 0, placed ? mark.column + 1 : 0, {}, std::move(message), {}});
}

}  // namespace

base::Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kLargestFile + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || !file.is_open() || (file.fail() && !file.eof())) {
    return base::invalid({}, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  return text;
}

std::expected<YAML::Node, Problem> parse_document(std::string_view yaml) {
  const YAML::Mark nowhere = YAML::Mark::null_mark();
  if (yaml.size() > kLargestFile) return at(nowhere, "the file is larger than 1 MiB");
  if (yaml.find('\0') != std::string_view::npos) {
    return at(nowhere, "the file contains a NUL byte; it is not a YAML file");
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    if (documents.size() > 1) {
      return at(documents[1].Mark(), "a second document begins here; one is allowed");
    }
    return documents.empty() ? YAML::Node() : documents.front();
  } catch (const YAML::Exception& e) {
    return at(e.mark, fmt::format("not valid YAML: {}", e.msg));
  }
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 80)) {
    shown.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  return text.size() > 80 ? shown + "…" : shown;
}

std::string_view kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a section";
  if (node.IsSequence()) return "a list";
  if (node.IsScalar()) return "a value";
  return "nothing";
}

}  // namespace gpu_platform::config
