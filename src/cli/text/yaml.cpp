#include "cli/text/yaml.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/letters.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kLongestPlain = 200;
// YAML has a limit for a key that stands in one line with its value: 1024 characters.
constexpr std::size_t kLongestKey = 1000;

// Words that some parser reads as a truth value, a number or nothing at all.
constexpr std::array<std::string_view, 14> kReservedWords = {
    "true", "false", "yes", "no",  "on",   "off",       "y",
    "n",    "null",  "nan", "inf", "none", "undefined", "infinity"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether the text means itself without quotes. Only what is certain: it begins with a letter and
// has nothing that means something in YAML or looks like a date, a number or a word of it.
bool is_plain(std::string_view text) {
  const auto is_safe = [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  };
  if (text.empty() || text.size() > kLongestPlain || !is_letter(text.front())) return false;
  if (!std::ranges::all_of(text, is_safe)) return false;
  return std::ranges::find(kReservedWords, base::to_lower(text)) == kReservedWords.end();
}

// A character that YAML does not take as it is, although JSON does: DEL, the C1 controls, Unicode's
// own line ends, the byte order mark and what is no character. 0: it may stay.
unsigned forbidden_at(std::string_view text, std::size_t& bytes) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  bytes = 1;
  if (byte(0) == 0x7f) return 0x7f;
  bytes = 2;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return byte(1);
  bytes = 3;
  const unsigned third = byte(2);
  if (byte(0) == 0xe2 && byte(1) == 0x80 && (third == 0xa8 || third == 0xa9)) {
    return 0x2028 + (third - 0xa8);
  }
  if (byte(0) == 0xef && byte(1) == 0xbb && third == 0xbf) return 0xfeff;
  if (byte(0) == 0xef && byte(1) == 0xbf && third >= 0xbe) return 0xffc0 + (third & 0x3f);
  return 0;
}

// JSON's strings are YAML's double-quoted ones, but for those characters.
std::string in_quotes(const Json& text) {
  const std::string json = json_text(text);
  std::string out;
  for (std::size_t at = 0; at < json.size();) {
    std::size_t bytes = 1;
    const unsigned character = forbidden_at(std::string_view(json).substr(at), bytes);
    if (character == 0) {
      out.push_back(json[at++]);
    } else {
      out += fmt::format("\\u{:04x}", character);
      at += bytes;
    }
  }
  return out;
}

std::string scalar(const Json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    return is_plain(text) ? text : in_quotes(value);
  }
  std::string text = json_text(value);
  // Older parsers take "1e+30" for a word.
  const std::size_t exponent = text.find('e');
  const bool has_no_point = value.is_number_float() && exponent != std::string::npos &&
                            text.find('.') == std::string::npos;
  if (has_no_point) text.insert(exponent, ".0");
  return text;
}

std::string key_of(const std::string& key) {
  return scalar(Json(key));
}

// `deeper`: how much deeper than its key a list stands.
void append(std::string& out, const Json& value, std::size_t depth, std::size_t deeper = 0);

void append_object(std::string& out, const Json& object, std::size_t depth, bool is_first_inline) {
  for (const auto& [key, value] : object.items()) {
    if (!is_first_inline) out.append(2 * depth, ' ');
    is_first_inline = false;
    const std::string name = key_of(key);
    if (name.size() <= kLongestKey) {
      out += name + ":";
      append(out, value, depth);
    } else {
      out += "? " + name + "\n";
      out.append(2 * depth, ' ');
      out += ':';
      append(out, value, depth, 1);
    }
  }
}

void append_list(std::string& out, const Json& list, std::size_t depth) {
  for (const Json& value : list) {
    out.append(2 * depth, ' ');
    out += '-';
    if (value.is_object() && !value.empty()) {
      out += ' ';
      append_object(out, value, depth + 1, true);
    } else if (value.is_array() && !value.empty()) {
      out += '\n';
      append_list(out, value, depth + 1);
    } else {
      append(out, value, depth);
    }
  }
}

// What stands behind "key:" or "-", up to the line's end.
void append(std::string& out, const Json& value, std::size_t depth, std::size_t deeper) {
  if (value.is_object() && !value.empty()) {
    out += '\n';
    append_object(out, value, depth + 1, false);
  } else if (value.is_array() && !value.empty()) {
    out += '\n';
    append_list(out, value, depth + deeper);
  } else {
    out += ' ';
    out += scalar(value);
    out += '\n';
  }
}

}  // namespace

std::string yaml_text(const Json& value) {
  std::string out;
  if (value.is_object() && !value.empty()) {
    append_object(out, value, 0, false);
  } else if (value.is_array() && !value.empty()) {
    append_list(out, value, 0);
  } else {
    out = scalar(value) + "\n";
  }
  return out;
}

std::string yaml_entry(const Json& value) {
  std::string out;
  append_list(out, Json::array({value}), 0);
  return out;
}

}  // namespace gpu_platform::cli
