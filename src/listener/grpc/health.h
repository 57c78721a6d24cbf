#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

// gRPC's health checks (grpc/health/v1/health.proto). The listener answers them itself: it is there
// as long as its daemon is, and so every service is in the state of the whole.

namespace gpu_platform::listener {

enum class Health {
  kServing,
  kNotServing,      // the server is about to end
  kServiceUnknown,  // there is no service of that name
};

// Returns the service that a request names; empty: the server as a whole. An error where the bytes
// are no request.
base::Result<std::string> service_asked_for(std::string_view request);

// Whether there is a service of that full name; the server as a whole is one.
bool is_service(std::string_view name);

// Returns the bytes of the answer.
std::string health_message(Health health);

}  // namespace gpu_platform::listener
