#include "api/rest/openapi.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/convert/field_plan.h"
#include "api/convert/field_selection.h"
#include "api/rest/openapi_schemas.h"
#include "api/rest/proto_comments.h"
#include "base/letters.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// ---- answers

struct NamedProblem {
  int status;
  const char* name;
  const char* description;
};
constexpr auto kProblems = std::to_array<NamedProblem>({
    {400, "BadRequest", "A value is malformed or out of range; `field` names it."},
    {401, "Unauthorized", "There is no credential, or it is not valid."},
    {403, "Forbidden", "The caller may not do this."},
    {404, "NotFound", "There is no such thing, or the caller may not see it."},
    {409, "Conflict", "Policy or the present state does not allow it."},
    {413, "ContentTooLarge", "The body is too large."},
    {415, "UnsupportedMediaType", "The body is not application/json."},
    {426, "UpgradeRequired", "The route is a WebSocket, and the request does not ask for one."},
    {429, "TooManyRequests", "A limit is reached; `detail` names it."},
    {503, "ServiceUnavailable", "The daemon is stopping or not ready: try again."},
});
constexpr const char* kOtherProblem = "OtherProblem";

OrderedJson problem_response(const char* description) {
  return {
      {"description", description},
      {"content",
       {{"application/problem+json", {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
}

OrderedJson problem_responses() {
  OrderedJson out = OrderedJson::object();
  for (const NamedProblem& problem : kProblems) {
    out[problem.name] = problem_response(problem.description);
  }
  out[kOtherProblem] = problem_response("What went wrong.");
  return out;
}

OrderedJson response_reference(const char* name) {
  return {{"$ref", std::string("#/components/responses/") + name}};
}

void add_problems(const std::set<int>& statuses, OrderedJson& responses) {
  for (const NamedProblem& problem : kProblems) {
    if (!statuses.contains(problem.status)) continue;
    responses[std::to_string(problem.status)] = response_reference(problem.name);
  }
  responses["default"] = response_reference(kOtherProblem);
}

// Adds the statuses that a comment names: "Refused while jobs hold it [409]".
void add_named_statuses(const std::string& comment, std::set<int>& out) {
  for (const NamedProblem& problem : kProblems) {
    if (comment.find(fmt::format("[{}]", problem.status)) != std::string::npos) {
      out.insert(problem.status);
    }
  }
}

// The first sentence of a call's comment, without the statuses in brackets.
std::string summary_of(const std::string& comment) {
  std::string_view text = comment;
  for (const std::string_view end : {"\n", ". ", "; ", " ["}) {
    text = text.substr(0, text.find(end));
  }
  if (text.ends_with('.') || text.ends_with(':')) text.remove_suffix(1);
  return std::string(text);
}

class DocumentWriter {
 public:
  OrderedJson write(std::span<const Route> routes, const std::string& version) {
    for (const Route& route : routes) {
      if (route.selector_name.empty()) continue;
      selector_of_[route.path + route.method] =
          fmt::format("{}={}", route.selector_name, route.selector_value);
    }
    for (const Route& route : routes) {
      if (route.has_body) note_request(body_type(route));
    }
    OrderedJson paths = OrderedJson::object();
    for (const Route& route : routes) add_route(route, paths);
    add_pages(paths);
    schemas_["Problem"] = problem_schema();
    const OrderedJson token = {{"type", "http"}, {"scheme", "bearer"}};
    OrderedJson server = {
        {"url", "/"},
        {"description",
         "The daemon that this document comes from, on its Unix socket or over TLS."}};
    return {{"openapi", "3.1.0"},
            {"info", info(version)},
            {"servers", OrderedJson::array({std::move(server)})},
            {"security",
             OrderedJson::array({{{"token", OrderedJson::array()}}, OrderedJson::object()})},
            {"tags", tags(routes)},
            {"paths", std::move(paths)},
            {"components",
             {{"securitySchemes", {{"token", token}}},
              {"responses", problem_responses()},
              {"schemas", std::move(schemas_)}}}};
  }

 private:
  static OrderedJson info(const std::string& version) {
    return {
        {"title", "gpu-platform"},
        {"version", version},
        {"description",
         "Jobs and GPUs of a gpu-platform daemon. Served on its Unix socket, which identifies the "
         "caller by peer credentials, and over TLS to other machines, which show a token.\n\n"
         "Each path with GET also answers HEAD, with the same head and no body, and each path "
         "answers OPTIONS with its methods in the field Allow."},
        {"contact", {{"name", "The administrators of this site"}}},
        {"license", {{"name", "No license is stated"}, {"identifier", "LicenseRef-not-stated"}}}};
  }

  OrderedJson tags(std::span<const Route> routes) const {
    OrderedJson out = OrderedJson::array();
    std::set<std::string> told;
    for (const Route& route : routes) {
      const pb::ServiceDescriptor& service = *route.call->service();
      if (!told.insert(service.name()).second) continue;
      out.push_back({{"name", service.name()}, {"description", comments_.of(service)}});
    }
    out.push_back({{"name", kPages}, {"description", "Pages outside of the services."}});
    return out;
  }

  static const pb::Descriptor& body_type(const Route& route) {
    const pb::Descriptor& input = *route.call->input_type();
    if (route.body_field.empty()) return input;
    return *input.FindFieldByName(route.body_field)->message_type();
  }

  // Notes a message and all that it holds as part of a request.
  void note_request(const pb::Descriptor& type) {
    if (!in_requests_.insert(type.full_name()).second) return;
    for (const FieldPlan& field : plan_of(type).fields) {
      if (field.message != nullptr) note_request(*field.message->descriptor);
      if (field.kind == JsonKind::kMap && field.map_value().message != nullptr) {
        note_request(*field.map_value().message->descriptor);
      }
    }
  }

  // The pages outside of the services.
  static void add_pages(OrderedJson& paths) {
    const auto page = [](const char* name, const char* what, const char* media,
                         OrderedJson schema) {
      OrderedJson success = {{"description", "Success."},
                             {"content", {{media, {{"schema", std::move(schema)}}}}}};
      OrderedJson operation = {{"operationId", name},
                               {"tags", OrderedJson::array({kPages})},
                               {"summary", summary_of(what)},
                               {"description", what},
                               {"responses", {{"200", std::move(success)}}}};
      add_problems({401, 403, 429, 503}, operation["responses"]);
      return OrderedJson{{"get", std::move(operation)}};
    };
    paths["/metrics"] = page("GetMetrics", "Returns the metrics in Prometheus' text format.",
                             "text/plain", {{"type", "string"}});
    paths["/v1/openapi.json"] = page("GetOpenApiDocument", "Returns this document.",
                                     "application/json", {{"type", "object"}});
  }

  static OrderedJson problem_schema() {
    const OrderedJson text = {{"type", "string"}};
    return {{"type", "object"},
            {"description", "RFC 9457."},
            {"properties",
             {{"type", text},
              {"title", text},
              {"status", {{"type", "integer"}}},
              {"detail", text},
              {"code", text},
              {"field", {{"type", OrderedJson::array({"string", "null"})}}},
              {"request_id", text}}}};
  }

  void add_schema(const pb::EnumDescriptor& type, const FieldPlan& field) {
    if (!known_.insert(type.full_name()).second) return;
    OrderedJson schema = {{"type", "string"}, {"enum", OrderedJson::array()}};
    for (const EnumName& entry : field.enum_names) schema["enum"].push_back(entry.name);
    const std::string comment = comments_.of(type);
    if (!comment.empty()) schema["description"] = comment;
    schemas_[schema_name(type.name())] = std::move(schema);
  }

  // The types that a field holds.
  void add_schemas_of(const FieldPlan& field) {
    if (field.message != nullptr) add_schema(*field.message->descriptor);
    if (field.kind == JsonKind::kEnum) add_schema(*field.field->enum_type(), field);
    if (field.kind == JsonKind::kMap) add_schemas_of(field.map_value());
  }

  void add_schema(const pb::Descriptor& type) {
    if (!known_.insert(type.full_name()).second) return;
    OrderedJson properties = OrderedJson::object();
    OrderedJson required = OrderedJson::array();
    // Requests may leave out what they do not say; answers have every key. If a message is in
    // both, the document promises less of the answer than the daemon keeps.
    const bool is_request = in_requests_.contains(type.full_name());
    for (const FieldPlan& field : plan_of(type).fields) {
      properties[field.name] = field_schema(field, comments_, is_request);
      if (field.is_input_only) properties[field.name]["writeOnly"] = true;
      required.push_back(field.name);
      add_schemas_of(field);
    }
    OrderedJson schema = {{"type", "object"}, {"properties", std::move(properties)}};
    if (!is_request && !required.empty()) schema["required"] = std::move(required);
    if (is_request) schema["additionalProperties"] = false;
    const std::string comment = comments_.of(type);
    if (!comment.empty()) schema["description"] = comment;
    schemas_[schema_name(type.name())] = std::move(schema);
  }

  OrderedJson parameters(const Route& route) {
    OrderedJson out = OrderedJson::array();
    for (const FieldPlan& field : plan_of(*route.call->input_type()).fields) {
      const bool in_path = route.path.find("{" + field.name + "}") != std::string::npos;
      if (!in_path && route.has_body) continue;
      add_schemas_of(field);
      OrderedJson parameter = {{"name", field.name},
                               {"in", in_path ? "path" : "query"},
                               {"required", in_path || field.name == route.selector_name}};
      const std::string comment = comments_.of(*field.field);
      if (!comment.empty()) parameter["description"] = comment;
      parameter["schema"] = field.is_repeated
                                ? OrderedJson{{"type", "array"}, {"items", value_schema(field)}}
                                : value_schema(field);
      out.push_back(std::move(parameter));
    }
    if (route.takes_fields) {
      out.push_back({{"name", "fields"},
                     {"in", "query"},
                     {"required", false},
                     {"description",
                      "The fields of the answer that are wanted, by their paths: "
                      "\"id,state,spec.name\". Without it: all."},
                     {"schema", {{"type", "string"}, {"maxLength", FieldSelection::kMaxBytes}}}});
    }
    return out;
  }

  // One event, as readers of server-sent events give it: `data` is a text, which holds the message.
  static OrderedJson event_schema(const pb::Descriptor& message) {
    const OrderedJson text = {{"type", "string"}};
    const OrderedJson data = {{"type", "string"},
                              {"contentMediaType", "application/json"},
                              {"contentSchema", schema_reference(message)}};
    return {{"type", "object"},
            {"properties", {{"id", text}, {"event", text}, {"data", data}}},
            {"required", OrderedJson::array({"event", "data"})}};
  }

  static bool may_repeat(const Route& route) {
    return route.success_status == 201 && route.has_body &&
           body_type(route).FindFieldByName("request_id") != nullptr;
  }

  // The refusals that a client may meet, beside what each daemon may answer to each request.
  std::set<int> problems_of(const Route& route) const {
    std::set<int> statuses = {400, 401, 403, 429, 503};
    if (route.path.find('{') != std::string::npos) statuses.insert(404);
    if (route.method != "GET" || route.is_websocket) statuses.insert(409);
    if (route.has_body) statuses.insert({413, 415});
    if (route.is_websocket) statuses.insert(426);
    add_named_statuses(comments_.of(*route.call), statuses);
    for (const FieldPlan& field : plan_of(*route.call->input_type()).fields) {
      add_named_statuses(comments_.of(*field.field), statuses);
    }
    return statuses;
  }

  void add_route(const Route& route, OrderedJson& paths) {
    const pb::Descriptor& answer = *route.call->output_type();
    if (!route.is_websocket) add_schema(answer);
    const std::string comment = comments_.of(*route.call);
    OrderedJson operation = {{"operationId", route.call->name()},
                             {"tags", OrderedJson::array({route.call->service()->name()})},
                             {"summary", summary_of(comment)},
                             {"description", comment},
                             {"parameters", parameters(route)}};
    if (route.has_body) {
      const pb::Descriptor& body = body_type(route);
      add_schema(body);
      operation["requestBody"] = {
          {"required", true},
          {"content", {{"application/json", {{"schema", schema_reference(body)}}}}}};
    }
    const bool is_stream = route.call->server_streaming();
    const char* media = is_stream ? "text/event-stream" : "application/json";
    OrderedJson schema = is_stream ? event_schema(answer) : schema_reference(answer);
    OrderedJson success = {{"description", "Success."},
                           {"content", {{media, {{"schema", std::move(schema)}}}}}};
    if (route.is_websocket) {
      success = {{"description", "A WebSocket; each of its binary messages is the frame of a " +
                                     answer.name() + "."}};
    }
    OrderedJson& responses = operation["responses"];
    if (may_repeat(route)) {
      responses["200"] = success;
      responses["200"]["description"] = "A repeat of the same request_id: what it made before.";
    }
    responses[route.is_websocket ? "101" : std::to_string(route.success_status)] =
        std::move(success);
    if (route.takes_fields) {
      responses["304"] = {{"description", "The answer has still the ETag of If-None-Match."}};
    }
    // A proxy that speaks HTTP/2 to its clients (RFC 8441) answers so.
    if (route.is_websocket) {
      responses["200"] = {{"description", "The WebSocket, through a proxy with HTTP/2."}};
    }
    add_problems(problems_of(route), responses);
    OrderedJson& entry = paths[route.path][base::to_lower(route.method)];
    if (entry.is_null()) {
      entry = std::move(operation);
      return;
    }
    // Two calls on one route: the document can state it only once, so the plain one takes in the
    // other's media type.
    OrderedJson& first = entry;
    OrderedJson& second = operation;
    const std::string status = std::to_string(route.success_status);
    for (auto& [type, content] : first["responses"][status]["content"].items()) {
      second["responses"][status]["content"][type] = content;
    }
    second["description"] = second["description"].get<std::string>() + "\n\nWith " +
                            selector_of_.at(route.path + route.method) + ": " +
                            first["description"].get<std::string>();
    entry = std::move(operation);
  }

  static constexpr const char* kPages = "Pages";

  ProtoComments comments_;
  OrderedJson schemas_ = OrderedJson::object();
  std::set<std::string> known_;
  std::set<std::string> in_requests_;
  std::map<std::string, std::string> selector_of_;
};

}  // namespace

std::string openapi_document(std::span<const Route> routes, const std::string& version) {
  return DocumentWriter().write(routes, version).dump(1);
}

}  // namespace gpu_platform::api
