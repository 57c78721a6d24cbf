#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "base/result.h"

// The calls of gRPC and their messages, on their way to the daemon and back. The daemon takes each
// call by its name, with the request as JSON, and answers as over REST.

namespace gpu_platform::listener {

struct GrpcMethod {
  enum class Kind {
    kCall,         // of the daemon
    kReflection,   // answered here
    kHealthCheck,  // answered here, without a credential
    kHealthWatch,  // the same, and again at each change
    kChannel,      // a WebSocket of REST
  };
  Kind kind = Kind::kCall;
  const google::protobuf::MethodDescriptor* call = nullptr;
  std::string web_path;  // kChannel: "/v1/jobs/{id}/exec"

  bool is_health() const { return kind == Kind::kHealthCheck || kind == Kind::kHealthWatch; }
};

// Returns what stands behind a path, as "/gpu_platform.v1.JobService/GetJob"; nothing if there is
// no such call.
std::optional<GrpcMethod> find_method(std::string_view path);

// Returns the JSON of a request's bytes. The error names a field that JSON could not say.
base::Result<std::string> request_for_daemon(const google::protobuf::MethodDescriptor& call,
                                             std::string_view bytes);

// Returns the bytes of an answer's JSON.
base::Result<std::string> answer_for_client(const google::protobuf::MethodDescriptor& call,
                                            std::string_view json);

// Answers one question of server reflection (grpc/reflection/v1/reflection.proto); an error where
// it is none.
base::Result<std::string> reflect(std::string_view question);

}  // namespace gpu_platform::listener
