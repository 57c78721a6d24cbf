#pragma once

#include <google/protobuf/message.h>

#include "base/result.h"

namespace gpu_platform::api {

// Checks of a message that came as bytes what JSON could not even say: fields that no part of it
// has, values that an enumeration does not have, times outside the years 1970 to 2261, and numbers
// that are not finite. The error is kInvalidArgument and names the field. Limits are for
// check_limits() (message_limits.h).
base::Status check_sayable(const google::protobuf::Message& message);

}  // namespace gpu_platform::api
