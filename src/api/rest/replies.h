#pragma once

#include <memory>
#include <string>
#include <utility>

#include <google/protobuf/message.h>

#include "api/convert/field_selection.h"
#include "api/rest/exchange.h"
#include "api/rest/routes.h"
#include "base/result.h"

// Answers of the usual forms.

namespace gpu_platform::api {

// Returns the answer for an error.
Reply problem_reply(base::Error error, const std::string& request_id);
Reply problem_reply(int status, base::Error error, const std::string& request_id);

// The fields of the answer that the client wants; null: all.
using Fields = std::shared_ptr<const FieldSelection>;

Reply json_reply(int status, const google::protobuf::Message& message,
                 const Fields& fields = nullptr);

template <class Message>
Reply json_reply(const Route& route, const base::Result<Message>& result,
                 const std::string& request_id, const Fields& fields = nullptr) {
  if (!result) return problem_reply(result.error(), request_id);
  return json_reply(route.success_status, *result, fields);
}

// Server-sent events.
Reply event_stream(std::unique_ptr<BodySource> source);

}  // namespace gpu_platform::api
