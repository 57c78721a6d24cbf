#include "cli/pages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/exit_code.h"

namespace gpu_platform::cli {

Called<std::string> fetch_pages(Client& client, const PagedList& list, const std::string& query,
                                std::uint64_t max_entries, std::string token,
                                const std::function<void(const Json&)>& take) {
  while (true) {
    std::string page = query;
    append_query(page, "limit", fmt::format("{}", std::min(max_entries, list.largest_page)));
    if (!token.empty()) append_query(page, "page_token", token);
    const auto body = client.get(fmt::format("{}?{}", list.path, page));
    if (!body) return std::unexpected(body.error());
    const auto document = parse_object(*body);
    if (!document) {
      return std::unexpected(
          Failure{Failure::Kind::kBadAnswer, "a list is no JSON object", {}, {}});
    }
    const Json& entries = list_at(*document, list.key);
    take(entries);
    token = text_at(*document, "next_page");
    max_entries -= std::min<std::uint64_t>(max_entries, entries.size());
    if (token.empty() || max_entries == 0) return token;
  }
}

int print_pages(Console& console, Client& client, const PagedList& list, const std::string& query,
                std::uint64_t max_entries, const std::string& token) {
  const std::string begin = fmt::format("{{\"{}\":[", list.key);
  bool is_first = true;
  const auto next = fetch_pages(client, list, query, max_entries, token, [&](const Json& entries) {
    for (const Json& entry : entries) {
      console.out((is_first ? begin : ",") + json_text(entry));
      is_first = false;
    }
  });
  if (!next) return report(console, next.error(), true);
  console.out(fmt::format("{}],\"next_page\":{}}}\n", is_first ? begin : "",
                          next->empty() ? "null" : json_text(Json(*next))));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
