#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "base/result.h"

namespace gpu_platform::api {

// A request's target, decoded.
struct Target {
  std::vector<std::string> segments;  // of the path: "v1", "jobs", "42"
  std::vector<std::pair<std::string, std::string>> query;
};
// Refuses broken percent escapes and what is not UTF-8.
base::Result<Target> parse_target(std::string_view target);

// One call's REST route, from the options in proto/.
struct Route {
  const google::protobuf::MethodDescriptor* call = nullptr;
  std::string method;                 // "GET"
  std::vector<std::string> segments;  // "{id}" stands for any
  std::string path;                   // as written
  bool has_body = false;
  std::string body_field;     // that the body is the JSON object of; empty: of the request itself
  std::string selector_name;  // of the query parameter that selects it, empty: none
  std::string selector_value;
  int success_status = 200;
  bool is_websocket = false;
  // A client may name the fields of the answer that it wants (the parameter "fields").
  bool takes_fields = false;
};

// The routes of all services of proto/gpu_platform/v1. Every call but the WebSockets also has a
// path by its name, POST /gpu_platform.v1.JobService/GetJob, with the whole request as its body:
// what comes over gRPC is handed on so. Immutable.
class RoutingTable {
 public:
  RoutingTable();

  std::span<const Route> routes() const { return routes_; }

  struct Match {
    const Route* route = nullptr;  // null: none
    // The methods of the path if `route` is null and there is such a path: "GET, HEAD, OPTIONS".
    std::string allowed;
  };
  // No route is found for OPTIONS, which has the methods alone. HEAD is looked for as GET.
  Match find(std::string_view method, const Target& target) const;

 private:
  Match find_named(std::string_view method, const Target& target) const;

  std::vector<Route> routes_;
  std::vector<Route> by_name_;
};

// Fills the empty request message of `route` from path, query and body, and checks its limits.
// `body` is null where there is none.
base::Status read_request(const Route& route, const Target& target, const std::string* body,
                          google::protobuf::Message& out);

}  // namespace gpu_platform::api
