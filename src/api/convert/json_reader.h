#pragma once

#include <string_view>

#include <google/protobuf/message.h>

#include "base/result.h"

namespace gpu_platform::api {

// Reads one JSON object into an empty message, strictly by the rules of docs/api.md. Errors are
// kInvalidArgument and name the exact field ("labels.team", "command[2]"): unknown fields, wrong
// types, numbers out of range, unknown enum names, duplicate keys, NUL, invalid UTF-8. A value of
// null is the same as leaving the field out. Malformed JSON names the byte and, where one is being
// read, the field.
base::Status read_json(std::string_view text, google::protobuf::Message& message);

// Sets (or, for a list, adds to) one field from plain text, as it stands in a path or a query
// string.
base::Status read_text(std::string_view field, std::string_view text,
                       google::protobuf::Message& message);

}  // namespace gpu_platform::api
