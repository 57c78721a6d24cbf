#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "api/convert/field_plan.h"

namespace gpu_platform::api {

// Appends the message as one JSON object by the rules of docs/api.md: every field in declaration
// order but those that are input_only, absent ones as null, maps sorted by key. Total: text that is
// not UTF-8 is repaired, numbers that JSON cannot hold (infinity) become null.
void append_json(std::string& out, const google::protobuf::Message& message);

// The fields of `plan` alone, which is the message's own or a part of it (field_selection.h).
void append_json(std::string& out, const google::protobuf::Message& message,
                 const MessagePlan& plan);

// Appends the message as a client writes a request: the fields that are set, also those that are
// input_only. A value that JSON cannot say becomes null: see message_check.h.
void append_request_json(std::string& out, const google::protobuf::Message& message);

std::string to_json(const google::protobuf::Message& message);

}  // namespace gpu_platform::api
