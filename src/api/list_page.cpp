#include "api/list_page.h"

#include <limits>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::api {

std::string to_page_token(const PageEnd& end) {
  return fmt::format("{}.{}", end.told, end.key);
}

base::Result<PageEnd> parse_page_token(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto told = base::parse_count(text.substr(0, dot), 1, std::numeric_limits<int>::max());
  if (dot == std::string_view::npos || !told) {
    return base::invalid("page_token", "page_token: must be the next_page of an earlier answer");
  }
  return PageEnd{static_cast<int>(*told), std::string(text.substr(dot + 1))};
}

}  // namespace gpu_platform::api
