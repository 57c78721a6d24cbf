#include "api/rest/audited_call.h"

#include <cstddef>
#include <memory>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "api/convert/job.h"

namespace gpu_platform::api {

namespace {

constexpr std::size_t kMaxNameBytes = 255;

// Returns the text of the field; empty if the message has no such field.
std::string text_of(const google::protobuf::Message& message, const char* name) {
  using Field = google::protobuf::FieldDescriptor;
  const Field* const field = message.GetDescriptor()->FindFieldByName(name);
  const bool is_text =
      field != nullptr && !field->is_repeated() && field->cpp_type() == Field::CPPTYPE_STRING;
  return is_text ? message.GetReflection()->GetString(message, field) : std::string();
}

}  // namespace

model::AuditedCall begin_audit(Exchange& exchange, model::AuditAction action) {
  model::AuditedCall call;
  call.by = model::origin_of(exchange.peer().caller);
  call.action = action;
  return call;
}

void add_job(std::string_view id, model::AuditedCall& call) {
  const auto job = to_job_ref(id);
  if (!job) return;
  call.jobs = {job->job};
  call.job_count = 1;
}

void add_target(std::string_view target, model::AuditedCall& call) {
  call.target = model::one_line(target, kMaxNameBytes);
}

void add_request_id(std::string_view id, model::AuditedCall& call) {
  call.request_id = model::one_line(id, kMaxNameBytes);
}

void add_target_of(const Route& route, const HttpRequest& request, model::AuditedCall& call) {
  const auto* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(route.call->input_type());
  const std::unique_ptr<google::protobuf::Message> message(prototype->New());
  if (!read_request(route, request.target, request.body, *message)) return;
  // Alerts and silences have ids, too.
  const bool is_of_alerts = call.action == model::AuditAction::kAcknowledge ||
                            call.action == model::AuditAction::kEndSilence;
  is_of_alerts ? add_target(text_of(*message, "id"), call) : add_job(text_of(*message, "id"), call);
  for (const char* name : {"node", "gpu", "gpu_id", "name"}) {
    if (call.target.empty()) add_target(text_of(*message, name), call);
  }
}

}  // namespace gpu_platform::api
