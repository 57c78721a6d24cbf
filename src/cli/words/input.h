#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/map.h>
#include <google/protobuf/timestamp.pb.h>

#include "base/result.h"
#include "base/units.h"

// What the values of options mean. Errors name the option.

namespace gpu_platform::cli {

// "--state a,b --state c" as a, b, c.
std::vector<std::string> words_of_lists(const std::vector<std::string>& lists);

// Puts "KEY=VALUE" pairs into a map.
base::Status put_pairs(google::protobuf::Map<std::string, std::string>& target,
                       const std::vector<std::string>& pairs, std::string_view option);

// Puts a time in the future (cli/words/time_expression.h) into a field of a request. Errors name
// the option.
base::Status put_future_time(std::string_view option, const std::string& text, base::Instant now,
                             google::protobuf::Timestamp& field);

// A future time: a time (cli/words/time_expression.h), or a duration from now ("2h"). Errors name
// the option.
base::Result<base::Instant> coming_time(std::string_view option, const std::string& text,
                                        base::Instant now);

// A time that is past, as RFC 3339: "2h" and "7d" count back from now, anything else is a time
// (cli/words/time_expression.h). Errors name the option.
base::Result<std::string> past_time(std::string_view option, const std::string& text,
                                    base::Instant now);

// What cannot be written as JSON is found here, where the option can be named.
base::Status check_text(std::string_view option, std::string_view text);

}  // namespace gpu_platform::cli
