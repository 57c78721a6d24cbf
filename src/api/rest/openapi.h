#pragma once

#include <span>
#include <string>

#include "api/rest/routes.h"

namespace gpu_platform::api {

// The OpenAPI 3.1 document of the routes, made from the messages' descriptors: paths, parameters,
// bodies, schemas with the limits of their fields, problem documents.
std::string openapi_document(std::span<const Route> routes, const std::string& version);

}  // namespace gpu_platform::api
