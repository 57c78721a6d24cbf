#pragma once

#include <string_view>

namespace gpu_platform::v1 {

// The serialized google.protobuf.FileDescriptorSet of this package with its comments, which the
// descriptors compiled into the messages do not have.
std::string_view descriptor_set();

}  // namespace gpu_platform::v1
