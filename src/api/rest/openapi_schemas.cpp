#include "api/rest/openapi_schemas.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace gpu_platform::api {

namespace {

// Names that makers of clients would use a second time: they make types of their own with the ends
// …Request and …Response, and have a Configuration and a Status themselves.
constexpr auto kSchemaNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"AcknowledgeAlertRequest", "AlertAcknowledgement"},
    {"ActOnJobsRequest", "BulkAction"},
    {"ActOnJobsResponse", "BulkOutcome"},
    {"AnswerInvitationRequest", "InvitationAnswer"},
    {"CapacityRequest", "CapacityChoice"},
    {"ChangeGpusRequest", "GpuSelection"},
    {"ChangeGpusResponse", "ChangedGpus"},
    {"ChangeJobResponse", "ChangedJob"},
    {"CheckJobRequest", "JobCheck"},
    {"Configuration", "ActiveConfiguration"},
    {"CorrectLedgerRequest", "NewLedgerCorrection"},
    {"CreateReservationRequest", "NewReservation"},
    {"CreateSilenceRequest", "NewSilence"},
    {"CreateTokenRequest", "NewToken"},
    {"GetQueueResponse", "QueuePage"},
    {"GetTopologyResponse", "TopologyPage"},
    {"ListAlertChannelsResponse", "AlertChannelPage"},
    {"ListAlertRulesResponse", "AlertRulePage"},
    {"ListAlertsResponse", "AlertPage"},
    {"ListAuditResponse", "AuditPage"},
    {"ListBudgetsResponse", "BudgetPage"},
    {"ListGpusResponse", "GpuPage"},
    {"ListInstancesResponse", "InstanceList"},
    {"ListJobsResponse", "JobPage"},
    {"ListLedgerResponse", "LedgerPage"},
    {"ListNodesResponse", "NodePage"},
    {"ListPricesResponse", "PriceList"},
    {"ListReadingsResponse", "ReadingPage"},
    {"ListReservationsResponse", "ReservationPage"},
    {"ListSharesResponse", "SharePage"},
    {"ListSilencesResponse", "SilencePage"},
    {"ListTeamsResponse", "TeamPage"},
    {"ListTokensResponse", "TokenPage"},
    {"ModelSizingRequest", "ModelServer"},
    {"OverrideBudgetRequest", "OverrideOfBudget"},
    {"RecordStepResponse", "RecordedStep"},
    {"RequeueJobRequest", "RequeueOptions"},
    {"SetPriceRequest", "NewPrice"},
    {"SetBudgetRequest", "BudgetSettings"},
    {"SetTeamRequest", "TeamSettings"},
    {"SignalJobRequest", "SignalOptions"},
    {"Status", "ClusterStatus"},
    {"TestAlertChannelRequest", "ChannelTest"},
    {"TestAlertChannelResponse", "ChannelTestOutcome"},
    {"UpdateJobRequest", "JobUpdate"},
    {"UpdateReservationRequest", "ReservationUpdate"},
});

template <class Descriptor>
OrderedJson reference_to(const Descriptor& type) {
  return {{"$ref", "#/components/schemas/" + schema_name(type.name())}};
}

std::string_view base_type(JsonKind kind) {
  switch (kind) {
    case JsonKind::kBool:
      return "boolean";
    case JsonKind::kInt32:
    case JsonKind::kInt64:
    case JsonKind::kUint32:
    case JsonKind::kUint64:
      return "integer";
    case JsonKind::kDouble:
      return "number";
    case JsonKind::kString:
    case JsonKind::kBytes:
    case JsonKind::kEnum:
    case JsonKind::kTimestamp:
      return "string";
    case JsonKind::kMessage:
    case JsonKind::kMap:
      return "object";
  }
  return "string";
}

// A whole bound is written without a decimal point.
OrderedJson bound(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? OrderedJson(whole) : OrderedJson(value);
}

void add_limits(const FieldPlan& field, OrderedJson& schema) {
  const FieldLimits& limits = field.limits;
  const bool is_unsigned = field.kind == JsonKind::kUint32 || field.kind == JsonKind::kUint64;
  if (limits.least) {
    schema["minimum"] = bound(*limits.least);
  } else if (is_unsigned) {
    schema["minimum"] = 0;
  }
  if (limits.most) schema["maximum"] = bound(*limits.most);
  if (field.kind != JsonKind::kString) return;
  // JSON Schema counts characters, we count bytes: the bound in the document is never the narrower.
  if (limits.max_bytes != 0) schema["maxLength"] = limits.max_bytes;
  if (limits.not_empty) schema["minLength"] = 1;
  if (!limits.pattern.empty()) schema["pattern"] = limits.pattern;
}

OrderedJson map_schema(const FieldPlan& field) {
  OrderedJson values = value_schema(field.map_value());
  if (field.limits.max_bytes != 0) values["maxLength"] = field.limits.max_bytes;
  OrderedJson schema = {{"type", "object"}, {"additionalProperties", std::move(values)}};
  if (field.limits.max_items != 0) schema["maxProperties"] = field.limits.max_items;
  OrderedJson names = OrderedJson::object();
  if (field.limits.max_key_bytes != 0) names["maxLength"] = field.limits.max_key_bytes;
  if (field.limits.not_empty) names["minLength"] = 1;
  if (!names.empty()) schema["propertyNames"] = std::move(names);
  return schema;
}

bool may_be_null(const FieldPlan& field) {
  return !field.is_repeated && field.kind != JsonKind::kMap &&
         (field.has_presence || field.kind == JsonKind::kEnum);
}

}  // namespace

std::string schema_name(const std::string& name) {
  const auto* const found = std::ranges::find(
      kSchemaNames, std::string_view(name), &std::pair<std::string_view, std::string_view>::first);
  return found == kSchemaNames.end() ? name : std::string(found->second);
}

OrderedJson schema_reference(const google::protobuf::Descriptor& type) {
  return reference_to(type);
}

OrderedJson value_schema(const FieldPlan& field) {
  if (field.kind == JsonKind::kMessage) return reference_to(*field.message->descriptor);
  if (field.kind == JsonKind::kMap) return map_schema(field);
  if (field.kind == JsonKind::kEnum) return reference_to(*field.field->enum_type());
  OrderedJson schema = {{"type", base_type(field.kind)}};
  if (field.kind == JsonKind::kTimestamp) schema["format"] = "date-time";
  if (field.kind == JsonKind::kBytes) schema["contentEncoding"] = "base64";
  add_limits(field, schema);
  return schema;
}

OrderedJson field_schema(const FieldPlan& field, const ProtoComments& comments, bool is_request) {
  OrderedJson schema = value_schema(field);
  if (field.is_repeated) {
    schema = {{"type", "array"}, {"items", std::move(schema)}};
    if (field.limits.max_items != 0) schema["maxItems"] = field.limits.max_items;
  }
  // In a request, null is the same as leaving a field out.
  if (is_request || may_be_null(field)) {
    if (schema.contains("$ref")) {
      schema = {{"oneOf", OrderedJson::array({std::move(schema), {{"type", "null"}}})}};
    } else {
      schema["type"] = OrderedJson::array({schema["type"], "null"});
    }
  }
  const std::string comment = comments.of(*field.field);
  if (!comment.empty()) schema["description"] = comment;
  return schema;
}

}  // namespace gpu_platform::api
