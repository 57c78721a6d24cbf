#include "kubernetes/section.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/binary.h>

#include "kubernetes/text_file.h"

namespace gpu_platform::kubernetes {
namespace {

using base::Result;

constexpr std::size_t kMaxText = std::size_t{4} << 20;

std::optional<std::string> decoded(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  const std::size_t content = text.find_last_not_of('=') + 1;  // npos + 1 is 0
  if (text.empty() || text.size() % 4 != 0 || text.size() - content > 2 ||
      text.find('=') < content) {
    return std::nullopt;
  }
  const std::vector<unsigned char> bytes = YAML::DecodeBase64(text);
  if (bytes.empty()) return std::nullopt;
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

Result<Section> Section::parse(std::string_view yaml, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    return base::invalid({}, fmt::format("{}: {}", file, why));
  };
  if (yaml.size() > kMaxText) return refuse("is larger than 4 MiB");
  // The YAML library takes a NUL for the end of the text.
  if (yaml.find('\0') != std::string_view::npos) return refuse("has a NUL byte; it is not YAML");
  try {
    YAML::Node node = YAML::Load(std::string(yaml));
    if (!node.IsDefined() || node.IsNull()) {
      return refuse("is empty; a kubeconfig has clusters, users and contexts");
    }
    if (!node.IsMap()) return refuse("is not a kubeconfig: it must be a mapping with clusters");
    return Section(std::move(node), file, "");
  } catch (const YAML::Exception& e) {
    return refuse(fmt::format("line {}: is not YAML: {}", e.mark.line + 1, printable(e.msg)));
  }
}

YAML::Node Section::find(const std::string& key) const {
  // Not by operator[], which compares each key with the name and throws at keys that are no text.
  for (const auto& pair : node_) {
    if (pair.first.IsScalar() && pair.first.Scalar() == key) return pair.second;
  }
  return {};
}

std::string Section::path_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

std::unexpected<base::Error> Section::error(const std::string& key, std::string_view what) const {
  const std::string path = printable(path_of(key));
  return base::invalid(path, fmt::format("{}: {}: {}", file_, path, what));
}

Section Section::renamed(std::string path) const {
  return {node_, file_, std::move(path)};
}

bool Section::has(const std::string& key) const {
  return !find(key).IsNull();
}

Result<std::string> Section::text(const std::string& key) const {
  const YAML::Node node = find(key);
  if (node.IsNull()) return std::string();
  if (!node.IsScalar()) return error(key, "must be a text");
  if (node.Scalar().find('\0') != std::string::npos) return error(key, "has a NUL byte");
  return node.Scalar();
}

Result<bool> Section::flag(const std::string& key) const {
  TRY_ASSIGN(const std::string value, text(key));
  if (value == "true") return true;
  if (value.empty() || value == "false") return false;
  return error(key, "must be true or false");
}

Result<std::vector<std::string>> Section::texts(const std::string& key) const {
  const YAML::Node node = find(key);
  std::vector<std::string> values;
  if (node.IsNull()) return values;
  if (!node.IsSequence()) return error(key, "must be a list of texts");
  for (const auto& item : node) {
    if (!item.IsScalar()) return error(key, "must be a list of texts");
    values.push_back(item.Scalar());
  }
  return values;
}

Result<std::string> Section::base64(const std::string& key) const {
  TRY_ASSIGN(std::string value, text(key));
  if (value.empty()) return value;
  auto bytes = decoded(std::move(value));
  if (!bytes) return error(key, "is not base64");
  return std::move(*bytes);
}

Result<std::vector<Section>> Section::list(const std::string& key) const {
  const YAML::Node node = find(key);
  std::vector<Section> sections;
  if (node.IsNull()) return sections;
  if (!node.IsSequence()) return error(key, "must be a list");
  for (const auto& item : node) {
    const std::string path = fmt::format("{}[{}]", path_of(key), sections.size());
    if (!item.IsMap())
      return error(fmt::format("{}[{}]", key, sections.size()), "must be a mapping");
    sections.push_back(Section(item, file_, path));
  }
  return sections;
}

Result<Section> Section::section(const std::string& key) const {
  const YAML::Node node = find(key);
  if (!node.IsMap()) return error(key, "is missing, or no mapping");
  return Section(node, file_, path_of(key));
}

}  // namespace gpu_platform::kubernetes
