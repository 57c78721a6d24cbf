#include "cli/words/input.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/convert/job.h"
#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/words/time_expression.h"

namespace gpu_platform::cli {

std::vector<std::string> words_of_lists(const std::vector<std::string>& lists) {
  std::vector<std::string> words;
  for (const std::string& list : lists) {
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      words.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return words;
}

base::Status put_pairs(google::protobuf::Map<std::string, std::string>& target,
                       const std::vector<std::string>& pairs, std::string_view option) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return base::invalid(std::string(option),
                           fmt::format("'{}' is not of the form KEY=VALUE", pair));
    }
    target[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return {};
}

base::Result<std::string> past_time(std::string_view option, const std::string& text,
                                    base::Instant now) {
  std::string time;
  if (const auto back = base::parse_duration(text)) {
    const base::Instant begin = base::Duration(now.unix_ns()) > *back
                                    ? base::Instant((now.unix_ns() - back->value()))
                                    : base::Instant(1);
    base::append_rfc3339(time, begin);
    return time;
  }
  const auto at = parse_past_time(text, now);
  if (!at) return base::invalid(std::string(option), at.error().message);
  base::append_rfc3339(time, *at);
  return time;
}

base::Result<base::Instant> coming_time(std::string_view option, const std::string& text,
                                        base::Instant now) {
  auto at = parse_future_time(text, now);
  // "18:00:00" is a time of day, although durations have that form, too.
  if (const auto span = base::parse_duration(text); !at && span) at = now + *span;
  if (!at) {
    return base::invalid(std::string(option),
                         fmt::format("'{}' is not a future time: write 2h, 18:00, 2026-01-31, "
                                     "2026-01-31T12:00, or with a zone 2026-01-31T12:00:00Z",
                                     text));
  }
  return *at;
}

base::Status put_future_time(std::string_view option, const std::string& text, base::Instant now,
                             google::protobuf::Timestamp& field) {
  const auto at = parse_future_time(text, now);
  if (!at) return base::invalid(std::string(option), at.error().message);
  api::to_proto(*at, field);
  return {};
}

base::Status check_text(std::string_view option, std::string_view text) {
  if (api::is_valid_utf8(text)) return {};
  return base::invalid(std::string(option), "the text is not valid UTF-8");
}

}  // namespace gpu_platform::cli
