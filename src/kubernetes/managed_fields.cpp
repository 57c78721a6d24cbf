#include "kubernetes/managed_fields.h"

namespace gpu_platform::kubernetes {
namespace {

// A quote within a JSON string has a backslash, so that these bytes are a key and never a value.
constexpr std::string_view kKey = R"("managedFields":[)";

// The place after the array whose '[' is before `at`; npos: it has no end.
std::size_t end_of_array(std::string_view text, std::size_t at) {
  int depth = 1;
  bool is_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_string) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        is_string = false;
      }
    } else if (c == '"') {
      is_string = true;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string without_managed_fields(std::string_view text) {
  std::string rest;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find(kKey, from)) != std::string_view::npos;) {
    const std::size_t end = end_of_array(text, at + kKey.size());
    if (end == std::string_view::npos) break;
    rest.append(text.substr(from, at - from)).append(R"("managedFields":[])");
    from = end;
  }
  return rest.append(text.substr(from));
}

}  // namespace gpu_platform::kubernetes
