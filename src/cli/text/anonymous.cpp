#include "cli/text/anonymous.h"

#include <cctype>

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kRemoved = "(removed)";

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

bool stands_alone(std::string_view text, std::size_t at, std::size_t size) {
  const bool begins = at == 0 || !is_of_word(text[at - 1]);
  return begins && (at + size == text.size() || !is_of_word(text[at + size]));
}

std::string without(const std::string& text, const std::string& word) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (at < from || !stands_alone(text, at, word.size())) continue;
    out += text.substr(from, at - from);
    out += kRemoved;
    from = at + word.size();
  }
  return out + text.substr(from);
}

}  // namespace

void collect_texts(const Json& document, const std::set<std::string_view>& keys,
                   std::set<std::string>& texts) {
  if (!document.is_structured()) return;
  for (const auto& [key, value] : document.items()) {
    const bool is_asked = document.is_object() && keys.contains(key);
    if (is_asked && value.is_string() && !value.get_ref<const std::string&>().empty()) {
      texts.insert(value.get<std::string>());
    }
    collect_texts(value, keys, texts);
  }
}

void remove_keys(Json& document, const std::set<std::string_view>& keys) {
  if (document.is_object()) {
    for (const std::string_view key : keys) document.erase(std::string(key));
  }
  if (!document.is_structured()) return;
  for (Json& value : document) remove_keys(value, keys);
}

void remove_words(Json& document, const std::set<std::string>& words) {
  if (document.is_string()) {
    std::string text = document.get<std::string>();
    for (const std::string& word : words) text = without(text, word);
    document = std::move(text);
  }
  if (!document.is_structured()) return;
  for (Json& value : document) remove_words(value, words);
}

}  // namespace gpu_platform::cli
