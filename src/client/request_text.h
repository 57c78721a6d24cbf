#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace gpu_platform::client {

// Returns the body of a call of the daemon: the fields of the message that are set, as JSON.
// answer.h is the other direction.
std::string request_text(const google::protobuf::Message& request);

}  // namespace gpu_platform::client
