#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace gpu_platform::api {

// Appends the message as one JSON object by the rules of docs/api.md: every field in declaration
// order but those that are input_only, absent ones as null, maps sorted by key. Total: text that is
// not UTF-8 is repaired, numbers that JSON cannot hold (infinity) become null.
void append_json(std::string& out, const google::protobuf::Message& message);

std::string to_json(const google::protobuf::Message& message);

}  // namespace gpu_platform::api
