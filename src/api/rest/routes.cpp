#include "api/rest/routes.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/convert/field_plan.h"
#include "api/convert/json_reader.h"
#include "api/convert/message_limits.h"
#include "api/convert/services.h"
#include "api/convert/text_forms.h"
#include "base/check.h"
#include "base/percent.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

constexpr std::string_view kNamePrefix = "gpu_platform.v1.";

base::Result<std::string> decoded(std::string_view text, base::Plus plus) {
  auto out = base::percent_decoded(text, plus);
  if (!out) {
    return base::fail(base::ErrorCode::kInvalidArgument, "the URL has a broken percent escape");
  }
  if (!is_valid_utf8(*out)) {
    return base::fail(base::ErrorCode::kInvalidArgument, "the URL has bytes that are not UTF-8");
  }
  return *std::move(out);
}

template <class Take>
base::Status split(std::string_view text, char separator, Take&& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    TRY(take(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

bool is_variable(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::string_view variable_name(std::string_view segment) {
  return segment.substr(1, segment.size() - 2);
}

bool path_matches(const Route& route, const Target& target) {
  return std::ranges::equal(route.segments, target.segments,
                            [](const std::string& pattern, const std::string& segment) {
                              return is_variable(pattern) || pattern == segment;
                            });
}

bool has_variables(const Route& route) {
  return route.path.find('{') != std::string::npos;
}

bool is_selected(const Route& route, const Target& target) {
  return std::ranges::any_of(target.query, [&](const auto& parameter) {
    return parameter.first == route.selector_name && parameter.second == route.selector_value;
  });
}

// Output is bytes rather than fields, and the queue is written as it is read.
bool is_made_as_a_whole(const pb::MethodDescriptor& call) {
  const pb::Descriptor* const answer = call.output_type();
  return !call.server_streaming() && answer != v1::OutputChunk::descriptor() &&
         answer != v1::GetQueueResponse::descriptor();
}

void add_routes(const pb::ServiceDescriptor& service, std::vector<Route>& out) {
  for (int i = 0; i < service.method_count(); ++i) {
    const pb::MethodDescriptor& call = *service.method(i);
    if (!call.options().HasExtension(v1::rest)) continue;
    const v1::RestRoute& option = call.options().GetExtension(v1::rest);
    Route route;
    route.call = &call;
    route.method = option.method();
    route.path = option.path();
    const auto target = parse_target(option.path());
    CHECK(target.has_value());
    route.segments = target->segments;
    route.has_body = !option.body().empty();
    if (option.body() != "*") route.body_field = option.body();
    const std::size_t equals = option.selector().find('=');
    if (equals != std::string::npos) {
      route.selector_name = option.selector().substr(0, equals);
      route.selector_value = option.selector().substr(equals + 1);
    }
    if (option.success_status() != 0) route.success_status = option.success_status();
    route.is_websocket = option.websocket();
    route.takes_fields = route.method == "GET" && is_made_as_a_whole(call) && !route.is_websocket;
    out.push_back(std::move(route));
  }
}

// The call by its name: the body is the whole request.
Route named(const Route& route) {
  Route out;
  out.call = route.call;
  out.method = "POST";
  out.segments = {route.call->service()->full_name(), route.call->name()};
  out.path = fmt::format("/{}/{}", out.segments[0], out.segments[1]);
  out.has_body = true;
  out.success_status = route.success_status;
  out.takes_fields = route.takes_fields;
  return out;
}

// The methods of a path, with those that each path has, in one order.
std::string allowed_with(const std::vector<std::string_view>& methods) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(methods, name) != methods.end();
  };
  std::string allowed;
  for (const std::string_view name : {"GET", "POST", "DELETE"}) {
    if (has(name)) allowed += fmt::format("{}, ", name == "GET" ? "GET, HEAD" : name);
  }
  return allowed + "OPTIONS";
}

// Returns the message that the request's body describes.
pb::Message& body_of(const Route& route, pb::Message& request) {
  if (route.body_field.empty()) return request;
  const pb::FieldDescriptor* field = request.GetDescriptor()->FindFieldByName(route.body_field);
  CHECK(field != nullptr);
  return *request.GetReflection()->MutableMessage(&request, field);
}

base::Status read_query(const Route& route, const Target& target, pb::Message& out) {
  for (auto it = target.query.begin(); it != target.query.end(); ++it) {
    const std::string& name = it->first;
    const auto is_same = [&](const auto& other) { return other.first == name; };
    const FieldPlan* field = plan_of(*out.GetDescriptor()).find(name);
    const bool may_repeat = field != nullptr && field->is_repeated;
    if (!may_repeat && std::any_of(target.query.begin(), it, is_same)) {
      return base::invalid(name, fmt::format("{}: is given twice", name));
    }
    const bool is_in_path = std::ranges::any_of(route.segments, [&](const std::string& segment) {
      return is_variable(segment) && variable_name(segment) == name;
    });
    if (is_in_path) return base::invalid(name, fmt::format("{}: is given by the path", name));
    TRY(read_text(name, it->second, out));
  }
  return {};
}

}  // namespace

base::Result<Target> parse_target(std::string_view target) {
  Target out;
  const std::size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  if (path.empty() || path.front() != '/') {
    return base::fail(base::ErrorCode::kInvalidArgument, "the URL's path must begin with /");
  }
  TRY(split(path.substr(1), '/', [&](std::string_view part) -> base::Status {
    TRY_ASSIGN(auto segment, decoded(part, base::Plus::kIsItself));
    out.segments.push_back(std::move(segment));
    return {};
  }));
  if (question == std::string_view::npos) return out;
  TRY(split(target.substr(question + 1), '&', [&](std::string_view part) -> base::Status {
    if (part.empty()) return {};
    const std::size_t equals = part.find('=');
    TRY_ASSIGN(auto name, decoded(part.substr(0, equals), base::Plus::kIsSpace));
    const std::string_view text = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    TRY_ASSIGN(auto value, decoded(text, base::Plus::kIsSpace));
    out.query.emplace_back(std::move(name), std::move(value));
    return {};
  }));
  return out;
}

RoutingTable::RoutingTable() {
  for (const pb::ServiceDescriptor* service : services()) add_routes(*service, routes_);
  // Those that a query parameter selects are tried before those that it does not.
  std::ranges::stable_sort(routes_, [](const Route& a, const Route& b) {
    return !a.selector_name.empty() && b.selector_name.empty();
  });
  for (const Route& route : routes_) {
    if (!route.is_websocket) by_name_.push_back(named(route));
  }
}

RoutingTable::Match RoutingTable::find_named(std::string_view method, const Target& target) const {
  const auto found = std::ranges::find(by_name_, target.segments, &Route::segments);
  if (found == by_name_.end()) return {};
  return method == found->method ? Match{&*found, {}} : Match{nullptr, allowed_with({"POST"})};
}

RoutingTable::Match RoutingTable::find(std::string_view method, const Target& target) const {
  if (!target.segments.empty() && target.segments.front().starts_with(kNamePrefix)) {
    return find_named(method, target);
  }
  Match match;
  std::vector<std::string_view> allowed;
  // "/v1/jobs/bulk" is no job of that name.
  const bool is_written_out = std::ranges::any_of(routes_, [&](const Route& route) {
    return !has_variables(route) && path_matches(route, target);
  });
  for (const Route& route : routes_) {
    if (!path_matches(route, target) || (is_written_out && has_variables(route))) continue;
    if (route.method == method) {
      if (!route.selector_name.empty() && !is_selected(route, target)) continue;
      match.route = &route;
      return match;
    }
    if (std::ranges::find(allowed, route.method) == allowed.end()) allowed.push_back(route.method);
  }
  if (!allowed.empty()) match.allowed = allowed_with(allowed);
  return match;
}

base::Status read_request(const Route& route, const Target& target, const std::string* body,
                          pb::Message& out) {
  if (route.has_body) {
    if (!target.query.empty()) {
      const std::string& name = target.query.front().first;
      return base::invalid(name,
                           fmt::format("unknown parameter '{}': this call takes a body", name));
    }
    pb::Message& message = body_of(route, out);
    TRY(read_json(body == nullptr ? std::string_view() : std::string_view(*body), message));
    TRY(check_limits(message));
  } else {
    if (body != nullptr) {
      // Nothing can be given in it, so that no client believes that it was heard.
      v1::GetVersionRequest nothing;
      TRY(read_json(*body, nothing));
    }
    TRY(read_query(route, target, out));
  }
  for (std::size_t i = 0; i < route.segments.size(); ++i) {
    if (!is_variable(route.segments[i])) continue;
    TRY(read_text(variable_name(route.segments[i]), target.segments[i], out));
  }
  return check_limits(out);
}

}  // namespace gpu_platform::api
