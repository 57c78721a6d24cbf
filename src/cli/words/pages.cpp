#include "cli/words/pages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/text/json_view.h"
#include "cli/text/text.h"
#include "cli/text/yaml.h"

namespace gpu_platform::cli {

Failure no_list() {
  return {Failure::Kind::kBadAnswer, "a list is not a JSON object", {}, {}};
}

Called<std::string> fetch_pages(Client& client, std::string_view path, std::uint64_t largest_page,
                                const std::string& query, std::uint64_t max_entries,
                                std::string token, const TakePage& take) {
  while (true) {
    std::string page = query;
    http::append_query(page, "limit", fmt::format("{}", std::min(max_entries, largest_page)));
    if (!token.empty()) http::append_query(page, "page_token", token);
    const auto body = client.get(fmt::format("{}?{}", path, page));
    if (!body) return std::unexpected(body.error());
    auto taken = take(*body);
    if (!taken) return std::unexpected(std::move(taken).error());
    token = std::move(taken->next);
    max_entries -= std::min(max_entries, taken->entries);
    if (token.empty() || max_entries == 0) return token;
  }
}

namespace {

// How a list is written whose entries come one by one.
class ListWriter {
 public:
  ListWriter(Console& console, const Output& output, std::string_view key)
      : console_(console), output_(output), key_(key) {}

  void entry(const Json& entry) {
    switch (output_.format) {
      case Output::Format::kName:
        console_.out(harmless(text_at(entry, output_.names.name)) + "\n");
        break;
      case Output::Format::kYaml:
        console_.out((is_first_ ? fmt::format("{}:\n", key_) : "") + yaml_entry(entry));
        break;
      default:
        if (output_.in_lines) {
          console_.out(json_text(entry) + "\n");
          break;
        }
        console_.out((is_first_ ? fmt::format("{{\"{}\":[", key_) : ",") + json_text(entry));
    }
    is_first_ = false;
  }

  void end(const std::string& next_page) {
    if (output_.in_lines) return;
    const Json next = next_page.empty() ? Json() : Json(next_page);
    if (output_.format == Output::Format::kYaml) {
      console_.out((is_first_ ? fmt::format("{}: []\n", key_) : "") +
                   yaml_text(Json{{"next_page", next}}));
    } else if (output_.format != Output::Format::kName) {
      console_.out(fmt::format("{}],\"next_page\":{}}}\n",
                               is_first_ ? fmt::format("{{\"{}\":[", key_) : "", json_text(next)));
    }
  }

 private:
  Console& console_;
  const Output& output_;
  std::string_view key_;
  bool is_first_ = true;
};

}  // namespace

Called<void> print_pages(Console& console, Client& client, const Output& output,
                         const PagedList& list, const std::string& query, std::uint64_t max_entries,
                         const std::string& token) {
  ListWriter writer(console, output, list.key);
  const auto next = fetch_pages(client, list.path, list.largest_page, query, max_entries, token,
                                [&](const std::string& body) -> Called<Page> {
                                  const auto document = parse_object(body);
                                  if (!document) return std::unexpected(no_list());
                                  const Json& entries = list_at(*document, list.key);
                                  for (const Json& entry : entries) writer.entry(entry);
                                  return Page{entries.size(), text_at(*document, "next_page")};
                                });
  if (!next) return std::unexpected(next.error());
  writer.end(*next);
  return {};
}

}  // namespace gpu_platform::cli
