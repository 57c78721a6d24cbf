#include "kubernetes/unread_members.h"

#include <algorithm>

namespace gpu_platform::kubernetes {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

// Returns the place of the quote that ends the string whose first byte is at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin; (at = text.find('"', at)) != kNowhere; ++at) {
    std::size_t first = at;
    while (first > begin && text[first - 1] == '\\') --first;
    if ((at - first) % 2 == 0) return at;
  }
  return kNowhere;
}

// Returns the place after the array or object whose opening bracket is before `at`.
std::size_t end_of_value(std::string_view text, std::size_t at, char closing) {
  int depth = 1;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at + 1);
      if (at == kNowhere) return kNowhere;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      return c == closing ? at + 1 : kNowhere;
    }
  }
  return kNowhere;
}

// What ends the array or object that begins at `at`, where that is the value of a key which ends
// there; 0: there is none.
char closing_at(std::string_view text, std::size_t at) {
  if (text.size() < at + 2 || text[at] != ':') return 0;
  const char opening = text[at + 1];
  return opening == '[' ? ']' : opening == '{' ? '}' : '\0';
}

}  // namespace

std::string without_members(std::string_view text, std::span<const std::string_view> names) {
  std::string rest;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find('"', at)) != kNowhere;) {
    const std::size_t begin = at + 1;
    const std::size_t end = end_of_string(text, begin);
    if (end == kNowhere) break;
    at = end + 1;
    const char closing = closing_at(text, at);
    if (closing == 0) continue;
    if (std::ranges::find(names, text.substr(begin, end - begin)) == names.end()) continue;
    const std::size_t after = end_of_value(text, at + 2, closing);
    if (after == kNowhere) break;
    rest.append(text.substr(from, at + 2 - from)).push_back(closing);
    at = from = after;
  }
  return rest.append(text.substr(from));
}

}  // namespace gpu_platform::kubernetes
