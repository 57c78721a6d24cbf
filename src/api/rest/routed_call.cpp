#include "api/rest/routed_call.h"

#include <utility>

#include "api/refusal_book.h"
#include "api/rest/audited_call.h"

namespace gpu_platform::api {

bool read_message(const RoutedCall& call, google::protobuf::Message& out) {
  const HttpRequest& request = call.request;
  const base::Status status = read_request(call.route, request.target, request.body, out);
  if (status) return true;
  std::optional<model::AuditedCall> audited;
  if (call.action) audited = begin_audit(call.exchange, *call.action);
  refuse(call.context, call.exchange, request.id, std::move(audited), status.error());
  return false;
}

void answer_error(const RoutedCall& call, base::Error error) {
  call.exchange.reply(problem_reply(std::move(error), call.request.id));
}

bool begin_stream(Exchange& exchange, const std::string& request_id) {
  const base::Status begun = exchange.begin_stream();
  if (!begun) exchange.reply(problem_reply(begun.error(), request_id));
  return begun.has_value();
}

void refuse(const HandlerContext& context, Exchange& exchange, const std::string& request_id,
            std::optional<model::AuditedCall> audited, base::Error error) {
  if (context.refusals == nullptr || !audited) {
    return exchange.reply(problem_reply(std::move(error), request_id));
  }
  audited->refusal = model::refusal_of(error);
  const auto answer = [weak = exchange.weak_from_this(), error, request_id] {
    if (const auto open = weak.lock()) open->reply(problem_reply(error, request_id));
  };
  const bool is_written = context.refusals->note(
      *std::move(audited), [resume = exchange.resume(), answer] { resume(answer); });
  if (!is_written) answer();
}

LateAnswer::LateAnswer(const RoutedCall& call, std::optional<model::AuditedCall> of)
    : context(call.context),
      route(call.route),
      exchange(call.exchange.weak_from_this()),
      request_id(call.request.id),
      audited(std::move(of)) {}

void LateAnswer::refuse(Exchange& opened, base::Error error) const {
  api::refuse(context, opened, request_id, audited, std::move(error));
}

}  // namespace gpu_platform::api
