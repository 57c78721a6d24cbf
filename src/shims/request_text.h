#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace gpu_platform::shims {

// The body of a call of the daemon: the fields of the message that are set, as JSON.
std::string request_text(const google::protobuf::Message& request);

}  // namespace gpu_platform::shims
