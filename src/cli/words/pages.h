#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/client_names.h"
#include "cli/text/output.h"

// Lists that the daemon gives in pages.

namespace gpu_platform::cli {

// A page that is no JSON object.
Failure no_list();

struct PagedList {
  std::string_view path;       // "/v1/jobs"
  std::string_view key;        // of the list in a page
  std::uint64_t largest_page;  // the most that the daemon gives in one
};

// What a page has: its number of entries, and where the next one begins; empty on the last page.
struct Page {
  std::uint64_t entries = 0;
  std::string next;
};
using TakePage = std::function<Called<Page>(const std::string& body)>;

// Fetches page by page, up to a number of entries, and gives each page to `take`. Returns where the
// next page would begin, empty at the end.
Called<std::string> fetch_pages(Client& client, std::string_view path, std::uint64_t largest_page,
                                const std::string& query, std::uint64_t max_entries,
                                std::string token, const TakePage& take);

// The same for pages that are messages: take(message) returns its number of entries.
template <class Message, class TakeMessage>
Called<std::string> fetch_messages(Client& client, const PagedList& list, const std::string& query,
                                   std::uint64_t max_entries, const std::string& token,
                                   TakeMessage&& take) {
  return fetch_pages(client, list.path, list.largest_page, query, max_entries, token,
                     [&](const std::string& body) -> Called<Page> {
                       const auto message = client::message_of<Message>(body);
                       if (!message) return std::unexpected(no_list());
                       const int entries = take(*message);
                       return Page{static_cast<std::uint64_t>(entries), message->next_page()};
                     });
}

// Prints {"KEY":[…],"next_page":…}, as JSON or YAML, or the names alone, as the pages come: a long
// history never stands in memory at once. In lines, the entries alone.
Called<void> print_pages(Console& console, Client& client, const Output& output,
                         const PagedList& list, const std::string& query, std::uint64_t max_entries,
                         const std::string& token);

}  // namespace gpu_platform::cli
