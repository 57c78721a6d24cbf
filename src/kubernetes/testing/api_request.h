#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// Requests to an API server and its answers, as values.

namespace gpu_platform::kubernetes {

// What a path of the API names:
// "/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE".
struct ApiPath {
  std::string group;  // empty: the core group, "/api/v1"
  std::string version;
  std::string namespace_name;  // empty: not namespaced, or all namespaces
  std::string resource;        // "pods"
  std::string name;            // empty: the collection
  std::string subresource;     // "status"; empty: the object itself

  std::string group_version() const { return group.empty() ? version : group + "/" + version; }
  // As messages name a resource: "pods", "resourceclaims.resource.k8s.io".
  std::string qualified_resource() const {
    return group.empty() ? resource : resource + "." + group;
  }
  // As messages name an object of it: "Pod", "ResourceClaim.resource.k8s.io".
  std::string qualified_kind(std::string_view kind) const {
    return std::string(kind) + (group.empty() ? "" : "." + group);
  }
};
// Nothing if no object can have this path, as with "/version".
std::optional<ApiPath> parse_api_path(std::string_view path);

struct ApiRequest {
  std::string method;  // "GET"
  std::string path;    // without its query, decoded
  std::map<std::string, std::string> query;
  std::string content_type;
  std::string body;

  // The value of a key of the query; empty if there is none.
  std::string asked(const std::string& key) const;
  bool is_asked(const std::string& key) const;  // "1" or "true"
  bool is_watch() const { return method == "GET" && is_asked("watch"); }
  bool is_write() const { return method != "GET"; }
};
// `target` as it stands in the first line of HTTP.
ApiRequest make_api_request(std::string method, std::string_view target);

struct ApiAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers = {};

  bool is_ok() const { return status >= 200 && status < 300; }
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

ApiAnswer json_answer(int status, const nlohmann::json& body);

// An error as the server words it. `name` and `kind` go into its details.
struct ApiError {
  int code = 500;
  std::string reason = "";  // "Conflict"; empty: the one that belongs to the code
  std::string message = "";
  std::string name = "";
  std::string kind = "";
};
nlohmann::json status_object(const ApiError& error);
ApiAnswer error_answer(const ApiError& error);
ApiAnswer success_answer(int code);

}  // namespace gpu_platform::kubernetes
