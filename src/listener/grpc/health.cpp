#include "listener/grpc/health.h"

#include <algorithm>

#include <google/protobuf/descriptor.h>

#include "api/convert/services.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"

namespace gpu_platform::listener {

namespace {

namespace pb = google::protobuf;
namespace health_protocol = grpc::health::v1;

bool has_service(const pb::Descriptor& message, std::string_view name) {
  return message.file()->service(0)->full_name() == name;
}

}  // namespace

base::Result<std::string> service_asked_for(std::string_view request) {
  health_protocol::HealthCheckRequest message;
  if (message.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
    return message.service();
  }
  return base::invalid("request", "request: these bytes are no HealthCheckRequest");
}

bool is_service(std::string_view name) {
  const auto is_named = [&](const pb::ServiceDescriptor* service) {
    return service->full_name() == name;
  };
  return name.empty() || std::ranges::any_of(api::services(), is_named) ||
         has_service(*health_protocol::HealthCheckRequest::descriptor(), name) ||
         has_service(*grpc::reflection::v1::ServerReflectionRequest::descriptor(), name);
}

std::string health_message(Health health) {
  health_protocol::HealthCheckResponse message;
  switch (health) {
    case Health::kServing:
      message.set_status(health_protocol::HealthCheckResponse::SERVING);
      break;
    case Health::kNotServing:
      message.set_status(health_protocol::HealthCheckResponse::NOT_SERVING);
      break;
    case Health::kServiceUnknown:
      message.set_status(health_protocol::HealthCheckResponse::SERVICE_UNKNOWN);
      break;
  }
  return message.SerializeAsString();
}

}  // namespace gpu_platform::listener
