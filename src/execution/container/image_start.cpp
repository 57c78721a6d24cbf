#include "execution/container/image_start.h"

#include <string.h>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "model/container.h"

namespace gpu_platform::execution {

namespace {

// Absolute, without what leads back or means nothing, as engines read it.
std::string plain_path(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  std::string path;
  for (const std::string_view part : parts) path += fmt::format("/{}", part);
  return path.empty() ? "/" : path;
}

std::string_view bare_id(std::string_view id) {
  constexpr std::string_view kBegin = "sha256:";
  if (id.starts_with(kBegin)) id.remove_prefix(kBegin.size());
  return id;
}

}  // namespace

std::string workdir_of_image(const nlohmann::json& config) {
  return plain_path(text_field(config, "WorkingDir"));
}

std::vector<std::string> entrypoint_of_image(const nlohmann::json& config) {
  std::vector<std::string> words;
  for (const nlohmann::json& word : field(config, "Entrypoint")) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

std::string error_in_volumes(const nlohmann::json& config) {
  const nlohmann::json volumes = field(config, "Volumes");
  if (!volumes.is_object()) return {};
  for (const auto& [path, nothing] : volumes.items()) {
    const std::string why = model::error_in_place(plain_path(path));
    if (!why.empty()) return fmt::format("'{}' {}", path, why);
  }
  return {};
}

bool is_same_image(std::string_view one, std::string_view other) {
  return !bare_id(one).empty() && bare_id(one) == bare_id(other);
}

std::string describe_outcome(const StartOutcome& outcome, std::string_view workdir,
                             const std::vector<std::string>& words) {
  const std::string why = strerror(outcome.error);
  if (outcome.step == StartOutcome::Step::kWorkdir) {
    return fmt::format("enter the directory '{}': {}", workdir, why);
  }
  return fmt::format("execute '{}': {}", words.empty() ? "" : words.front(), why);
}

}  // namespace gpu_platform::execution
