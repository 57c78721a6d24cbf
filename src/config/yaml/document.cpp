#include "config/yaml/document.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

namespace gpu_platform::config {

namespace {

std::unexpected<Problem> at(const YAML::Mark& mark, std::string message) {
  const bool placed = mark.line >= 0;
  return std::unexpected(Problem{
      placed ? mark.line + 1 : 0, placed ? mark.column + 1 : 0, {}, std::move(message), {}});
}

// The line in which a document begins, and nothing of what is in it.
class Beginning : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  [[nodiscard]] const YAML::Mark& mark() const { return mark_; }

 private:
  YAML::Mark mark_ = YAML::Mark::null_mark();
};

// Throws as the library does. Not YAML::LoadAll(): a text that begins with a comma is an endless
// row of empty documents to it.
std::expected<YAML::Node, Problem> only_document(const std::string& yaml) {
  std::istringstream stream(yaml);
  YAML::Parser parser(stream);
  Beginning first;
  Beginning second;
  if (!parser.HandleNextDocument(first)) return YAML::Node();
  if (!parser.HandleNextDocument(second)) return YAML::Load(yaml);
  if (second.mark().pos == first.mark().pos) {
    return at(first.mark(), "not valid YAML: a value cannot begin here");
  }
  return at(second.mark(), "a second document begins here; one is allowed");
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
    return only_document(std::string(yaml));
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
