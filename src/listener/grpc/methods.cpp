#include "listener/grpc/methods.h"

#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/convert/message_check.h"
#include "api/convert/services.h"
#include "gpu_platform/v1/options.pb.h"

namespace gpu_platform::listener {

namespace {

namespace pb = google::protobuf;

using Methods = std::map<std::string, GrpcMethod, std::less<>>;

Methods all_methods() {
  Methods found;
  for (const char* version : {"v1", "v1alpha"}) {
    found.emplace(fmt::format("/grpc.reflection.{}.ServerReflection/ServerReflectionInfo", version),
                  GrpcMethod{GrpcMethod::Kind::kReflection, nullptr, {}});
  }
  for (const auto& [name, kind] : {std::pair{"Check", GrpcMethod::Kind::kHealthCheck},
                                   std::pair{"Watch", GrpcMethod::Kind::kHealthWatch}}) {
    found.emplace(fmt::format("/grpc.health.v1.Health/{}", name), GrpcMethod{kind, nullptr, {}});
  }
  for (const pb::ServiceDescriptor* service : api::services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const pb::MethodDescriptor& call = *service->method(i);
      if (!call.options().HasExtension(v1::rest)) continue;
      const v1::RestRoute& route = call.options().GetExtension(v1::rest);
      const auto kind = route.websocket() ? GrpcMethod::Kind::kChannel : GrpcMethod::Kind::kCall;
      found.emplace(fmt::format("/{}/{}", service->full_name(), call.name()),
                    GrpcMethod{kind, &call, route.path()});
    }
  }
  return found;
}

std::unique_ptr<pb::Message> empty(const pb::Descriptor& type) {
  const auto* prototype = pb::MessageFactory::generated_factory()->GetPrototype(&type);
  return std::unique_ptr<pb::Message>(prototype->New());
}

}  // namespace

std::optional<GrpcMethod> find_method(std::string_view path) {
  static const Methods kMethods = all_methods();
  const auto found = kMethods.find(path);
  return found == kMethods.end() ? std::nullopt : std::optional(found->second);
}

base::Result<std::string> request_for_daemon(const pb::MethodDescriptor& call,
                                             std::string_view bytes) {
  const std::unique_ptr<pb::Message> message = empty(*call.input_type());
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return base::invalid("request", fmt::format("request: these bytes are no {}, or a text in "
                                                "them is not UTF-8",
                                                call.input_type()->full_name()));
  }
  TRY(api::check_sayable(*message));
  std::string out;
  api::append_request_json(out, *message);
  return out;
}

base::Result<std::string> answer_for_client(const pb::MethodDescriptor& call,
                                            std::string_view json) {
  const std::unique_ptr<pb::Message> message = empty(*call.output_type());
  TRY(api::read_json(json, *message));
  return message->SerializeAsString();
}

}  // namespace gpu_platform::listener
