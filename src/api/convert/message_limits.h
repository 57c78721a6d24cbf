#pragma once

#include <google/protobuf/message.h>

#include "base/result.h"

namespace gpu_platform::api {

// Checks the limits that the fields' options state, and that no text contains a NUL. Complete for
// every message of a request, for every interface. The error is kInvalidArgument and
// names the field.
base::Status check_limits(const google::protobuf::Message& message);

}  // namespace gpu_platform::api
