#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cli/text/json_view.h"

// Documents for readers outside the site: without the names and commands of its users.

namespace gpu_platform::cli {

// Collects the texts under these keys anywhere in the document, as for the names of users.
void collect_texts(const Json& document, const std::set<std::string_view>& keys,
                   std::set<std::string>& texts);

// Removes these keys anywhere in the document.
void remove_keys(Json& document, const std::set<std::string_view>& keys);

// Replaces the words in each text of the document by "(removed)", where they stand alone.
void remove_words(Json& document, const std::set<std::string>& words);

}  // namespace gpu_platform::cli
