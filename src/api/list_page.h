#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/repeated_ptr_field.h>

#include "base/result.h"

namespace gpu_platform::api {

// The end of a page of a list: how many entries were told up to there, and the key of the last.
struct PageEnd {
  int told = 0;
  std::string key;
};

// The text that a client gives back, and what it says. Refuses a text that is none of ours.
std::string to_page_token(const PageEnd& end);
base::Result<PageEnd> parse_page_token(std::string_view text);

// Cuts a list that was made as a whole to the page that the request asks for, and sets the answer's
// next_page if more follows. `key_of` returns what stays of an entry while the list changes. If the
// last entry of the page before is gone, the page begins at its place, so that no entry is left
// out.
template <class Request, class Answer, class Entry, class KeyOf>
base::Status cut_to_page(const Request& request, google::protobuf::RepeatedPtrField<Entry>& entries,
                         Answer& answer, KeyOf&& key_of) {
  int begin = 0;
  if (request.has_page_token()) {
    TRY_ASSIGN(const PageEnd before, parse_page_token(request.page_token()));
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return key_of(entry) == before.key;
    });
    begin = found != entries.end() ? static_cast<int>(found - entries.begin()) + 1
                                   : std::min(before.told - 1, entries.size());
  }
  const int left = entries.size() - begin;
  if (request.has_limit() && std::cmp_less(request.limit(), left)) {
    const int end = begin + static_cast<int>(request.limit());
    answer.set_next_page(to_page_token({end, key_of(entries.Get(end - 1))}));
    entries.DeleteSubrange(end, entries.size() - end);
  }
  entries.DeleteSubrange(0, begin);
  return {};
}

}  // namespace gpu_platform::api
