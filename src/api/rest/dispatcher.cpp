#include "api/rest/dispatcher.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/calls.h"
#include "api/rest/audited_call.h"
#include "api/rest/openapi.h"
#include "base/check.h"
#include "base/letters.h"

namespace gpu_platform::api {

namespace {

constexpr std::string_view kPackage = "gpu_platform.v1.";
constexpr std::string_view kOpenApiPath = "/v1/openapi.json";
constexpr std::string_view kMetricsPath = "/metrics";

bool is_fields(const std::pair<std::string, std::string>& parameter) {
  return parameter.first == "fields";
}

// Takes "fields" out of the query.
base::Result<Fields> take_fields(const Route& route, Target& target) {
  const auto found = std::ranges::find_if(target.query, is_fields);
  if (std::ranges::count_if(target.query, is_fields) > 1) {
    return base::invalid("fields", "fields: given twice; separate the paths by commas");
  }
  TRY_ASSIGN(FieldSelection selection,
             FieldSelection::parse(found->second, *route.call->output_type()));
  target.query.erase(found);
  return std::make_shared<const FieldSelection>(std::move(selection));
}

bool is_json(std::string_view content_type) {
  const std::size_t end = content_type.find_first_of("; \t");
  return base::to_lower(content_type.substr(0, end)) == "application/json";
}

// The pages outside of the services.
std::optional<std::string_view> page_of(const Target& target) {
  std::string path;
  for (const std::string& segment : target.segments) path += "/" + segment;
  for (const std::string_view page : {kOpenApiPath, kMetricsPath}) {
    if (path == page) return page;
  }
  return std::nullopt;
}

Reply plain_problem(int status, base::ErrorCode code, std::string message,
                    const HttpRequest& request) {
  return problem_reply(status, base::Error{code, std::move(message), {}}, request.id);
}

// The answer to a method that the path has not; for OPTIONS that is the answer.
Reply methods_reply(const std::string& allowed, const HttpRequest& request) {
  Reply reply;
  reply.status = 204;
  if (request.method != "OPTIONS") {
    reply = plain_problem(405, base::ErrorCode::kInvalidArgument,
                          fmt::format("this path takes {}", allowed), request);
  }
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

}  // namespace

Dispatcher::Dispatcher(const Calls& calls, EventHub& hub, std::size_t page_bytes,
                       RefusalBook* refusals)
    : context_{calls, hub, page_bytes, refusals} {
  for (CallRow& row : call_table()) {
    std::string name = fmt::format("{}{}", kPackage, row.name);
    entries_.emplace(std::move(name), Entry{std::move(row), {}});
  }
  // A route without a row would be a promise of the contract that no code keeps; one without its
  // row of rights would be open to all.
  for (const Route& route : table_.routes()) {
    const auto entry = entries_.find(route.call->full_name());
    CHECK(entry != entries_.end());
    entry->second.access = access_of(*route.call);
  }
  openapi_ = openapi_document(table_.routes(), calls.of<SiteCalls>().version().version());
}

void Dispatcher::handle(const HttpRequest& request, Exchange& exchange,
                        FileWatcher& watcher) const {
  if (const auto page = page_of(request.target)) return handle_page(*page, request, exchange);
  const RoutingTable::Match match = table_.find(request.method, request.target);
  if (match.route == nullptr && match.allowed.empty()) {
    return exchange.reply(
        plain_problem(404, base::ErrorCode::kNotFound,
                      fmt::format("there is no such path; {} lists them", kOpenApiPath), request));
  }
  if (match.route == nullptr) return exchange.reply(methods_reply(match.allowed, request));
  const Entry& entry = entries_.find(match.route->call->full_name())->second;
  exchange.is_call(entry.row.name);
  const RoutedCall call{context_, request, *match.route, exchange, watcher, entry.row.action};
  const base::Status admitted =
      admit(entry.access, *context_.calls.reader().rules(), exchange.peer().caller);
  if (!admitted) return refuse_unadmitted(call, admitted.error());
  const bool needs_json = match.route->has_body || request.body != nullptr;
  if (needs_json && !is_json(request.content_type)) {
    return exchange.reply(plain_problem(415, base::ErrorCode::kInvalidArgument,
                                        "the body must be JSON: Content-Type: application/json",
                                        request));
  }
  handle_call(call, entry.row);
}

void Dispatcher::handle_page(std::string_view page, const HttpRequest& request,
                             Exchange& exchange) const {
  if (request.method != "GET") {
    return exchange.reply(methods_reply("GET, HEAD, OPTIONS", request));
  }
  exchange.is_call(page);
  exchange.reply(page == kMetricsPath ? metrics(exchange.peer().caller) : open_api());
}

void Dispatcher::refuse_unadmitted(const RoutedCall& call, base::Error error) const {
  std::optional<model::AuditedCall> audited;
  if (call.action) {
    audited = begin_audit(call.exchange, *call.action);
    add_target_of(call.route, call.request, *audited);
  }
  refuse(context_, call.exchange, call.request.id, std::move(audited), std::move(error));
}

void Dispatcher::handle_call(const RoutedCall& call, const CallRow& row) const {
  if (!call.route.takes_fields || std::ranges::none_of(call.request.target.query, is_fields)) {
    return row.handle(call);
  }
  HttpRequest request = call.request;
  auto fields = take_fields(call.route, request.target);
  if (!fields) return answer_error(call, std::move(fields).error());
  row.handle({context_, request, call.route, call.exchange, call.watcher, call.action,
              *std::move(fields)});
}

Reply Dispatcher::open_api() const {
  Reply reply;
  reply.body = openapi_;
  return reply;
}

Reply Dispatcher::metrics(const model::Caller& caller) const {
  Reply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = context_.calls.of<StatisticsCalls>().metrics(caller);
  return reply;
}

}  // namespace gpu_platform::api
