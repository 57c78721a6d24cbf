#pragma once

#include <vector>

#include <google/protobuf/descriptor.h>

namespace gpu_platform::api {

// Returns the services of proto/gpu_platform/v1, in the order in which the documents have them.
std::vector<const google::protobuf::ServiceDescriptor*> services();

}  // namespace gpu_platform::api
