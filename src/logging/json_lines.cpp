#include "logging/json_lines.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/chrono.h>
#include <spdlog/details/log_msg.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::logging {

namespace {

using Json = nlohmann::ordered_json;

// The words that a line may have before its pairs: behind more of them, "a=b" is prose.
constexpr std::size_t kMaxWords = 3;

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// Takes a value between quotation marks, with what line.h escaped made plain again.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    const bool is_escaped =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    if (is_escaped) ++i;
    value.push_back(text[i]);
  }
  return std::nullopt;
}

// Takes "key=value" and the space behind it, or nothing.
std::optional<std::pair<std::string, std::string>> take_pair(std::string_view& text) {
  const auto end_of_key = std::ranges::find_if_not(text, is_key_letter);
  const auto length = static_cast<std::size_t>(end_of_key - text.begin());
  if (length == 0 || length == text.size() || text[length] != '=') return std::nullopt;
  std::string_view rest = text.substr(length + 1);
  std::optional<std::string> value;
  if (rest.starts_with('"')) {
    value = take_quoted(rest);
  } else {
    value = std::string(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(value->size());
  }
  if (!value || (!rest.empty() && rest.front() != ' ')) return std::nullopt;
  std::string key(text.substr(0, length));
  text = rest.empty() ? rest : rest.substr(1);
  return std::pair(std::move(key), *std::move(value));
}

// Takes a plain word and the space behind it, or nothing.
std::optional<std::string_view> take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  if (word.empty() || !std::ranges::all_of(word, is_key_letter)) return std::nullopt;
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

void append_word(std::string& message, std::string_view word) {
  if (!message.empty() && !word.empty()) message += ' ';
  message += word;
}

// Fills "message" and "fields" of a line.
void put_line(std::string_view line, Json& entry) {
  std::string_view rest = line;
  std::string message;
  Json fields = Json::object();
  for (std::size_t words = 0; words <= kMaxWords; ++words) {
    while (auto pair = take_pair(rest)) fields[pair->first] = std::move(pair->second);
    if (!fields.empty()) break;
    const auto word = take_word(rest);
    if (!word) break;
    append_word(message, *word);
  }
  if (!fields.empty()) append_word(message, rest);
  if (fields.empty() || message.empty()) message = std::string(line);
  entry["message"] = std::move(message);
  if (!fields.empty()) entry["fields"] = std::move(fields);
}

class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    using std::chrono::floor;
    const auto at = floor<std::chrono::milliseconds>(message.time.time_since_epoch());
    const auto seconds = floor<std::chrono::seconds>(at);
    Json entry;
    entry["time"] =
        fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                    fmt::gmtime(static_cast<std::time_t>(seconds.count())), (at - seconds).count());
    const auto level = spdlog::level::to_string_view(message.level);
    entry["level"] = std::string(level.data(), level.size());
    put_line(std::string_view(message.payload.data(), message.payload.size()), entry);
    const std::string text = entry.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return json_lines(); }
};

}  // namespace

std::unique_ptr<spdlog::formatter> json_lines() {
  return std::make_unique<JsonLines>();
}

}  // namespace gpu_platform::logging
