#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/client_names.h"
#include "cli/json_view.h"
#include "cli/output.h"

// Lists that the daemon gives in pages.

namespace gpu_platform::cli {

struct PagedList {
  std::string_view path;       // "/v1/jobs"
  std::string_view key;        // of the list in a page
  std::uint64_t largest_page;  // the most that the daemon gives in one
};

// Fetches page by page, up to a number of entries, and gives each page's list to `take`. Returns
// where the next page would begin, empty at the end.
Called<std::string> fetch_pages(Client& client, const PagedList& list, const std::string& query,
                                std::uint64_t max_entries, std::string token,
                                const std::function<void(const Json&)>& take);

// Prints {"KEY":[…],"next_page":…}, as JSON or YAML, or the names alone, as the pages come: a long
// history never stands in memory at once. In lines, the entries alone.
Called<void> print_pages(Console& console, Client& client, const Output& output,
                         const PagedList& list, const std::string& query, std::uint64_t max_entries,
                         const std::string& token);

}  // namespace gpu_platform::cli
