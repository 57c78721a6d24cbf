#include "config/yaml/tree.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "config/yaml/document.h"

namespace gpu_platform::config {

namespace {

constexpr int kMaxLevels = 32;
constexpr std::size_t kMaxValues = 100'000;

bool is_null_word(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

class TreeReader {
 public:
  // The next documents begin behind so many lines.
  void set_lines_before(int lines) { lines_before_ = lines; }

  std::expected<YamlTree, Problem> read(const YAML::Node& node, int level) {
    if (level > kMaxLevels) return problem(node.Mark(), "too many levels");
    if (++values_ > kMaxValues) return problem(node.Mark(), "too many values");
    YamlTree tree;
    tree.line = lines_before_ + node.Mark().line + 1;
    if (node.IsScalar()) {
      tree.text = node.Scalar();
      const bool is_quoted = node.Tag() == "!";
      tree.kind = is_quoted                 ? YamlTree::Kind::kQuoted
                  : is_null_word(tree.text) ? YamlTree::Kind::kNull
                                            : YamlTree::Kind::kPlain;
      return tree;
    }
    if (node.IsSequence()) {
      tree.kind = YamlTree::Kind::kList;
      for (const YAML::Node& item : node) {
        auto read_item = read(item, level + 1);
        if (!read_item) return read_item;
        tree.list.push_back(*std::move(read_item));
      }
    }
    if (!node.IsMap()) return tree;
    tree.kind = YamlTree::Kind::kMap;
    for (const auto& entry : node) {
      const YAML::Node key = entry.first;
      if (!key.IsScalar()) return problem(key.Mark(), "a key must be a text");
      const bool is_there = std::ranges::any_of(
          tree.entries, [&](const auto& earlier) { return earlier.key == key.Scalar(); });
      if (is_there) {
        return problem(key.Mark(), fmt::format("'{}' is set twice", printable(key.Scalar())));
      }
      auto value = read(entry.second, level + 1);
      if (!value) return value;
      value->key = key.Scalar();
      tree.entries.push_back(*std::move(value));
    }
    return tree;
  }

 private:
  std::unexpected<Problem> problem(const YAML::Mark& mark, std::string message) const {
    return std::unexpected(
        Problem{lines_before_ + mark.line + 1, mark.column + 1, {}, std::move(message), {}});
  }

  std::size_t values_ = 0;
  int lines_before_ = 0;
};

struct Part {
  std::string text;
  int lines_before = 0;
};

// Cuts at the lines that begin with "---": wherever one stands, a document begins there.
std::vector<Part> documents_in(std::string_view yaml) {
  constexpr std::string_view kMarker = "---";
  std::vector<Part> parts(1);
  for (int lines = 0; !yaml.empty(); ++lines) {
    const std::size_t end = std::min(yaml.find('\n'), yaml.size() - 1) + 1;
    const std::string_view line = yaml.substr(0, end);
    yaml.remove_prefix(end);
    const bool is_marker =
        line.starts_with(kMarker) &&
        (line.size() == kMarker.size() ||
         std::string_view(" \t\r\n").find(line[kMarker.size()]) != std::string_view::npos);
    if (!is_marker) {
      parts.back().text += line;
      continue;
    }
    // A value may stand behind the marker.
    parts.push_back({"   " + std::string(line.substr(kMarker.size())), lines});
  }
  return parts;
}

}  // namespace

std::expected<std::vector<YamlTree>, Problem> read_trees(std::string_view yaml) {
  if (yaml.size() > kLargestFile) {
    return std::unexpected(Problem{0, 0, {}, "it is larger than 1 MiB", {}});
  }
  std::vector<YamlTree> trees;
  TreeReader reader;
  for (const Part& part : documents_in(yaml)) {
    const auto node = parse_document(part.text);
    if (!node) {
      Problem problem = node.error();
      if (problem.line > 0) problem.line += part.lines_before;
      return std::unexpected(std::move(problem));
    }
    if (node->IsNull() || !node->IsDefined()) continue;
    reader.set_lines_before(part.lines_before);
    try {
      auto tree = reader.read(*node, 0);
      if (!tree) return std::unexpected(tree.error());
      trees.push_back(*std::move(tree));
    } catch (const YAML::Exception& e) {
      return std::unexpected(Problem{part.lines_before + e.mark.line + 1, 0, {}, e.msg, {}});
    }
  }
  return trees;
}

}  // namespace gpu_platform::config
