#include "api/convert/message_check.h"

#include <cmath>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include "api/convert/field_plan.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

constexpr std::int64_t kEndOfYears = 9'214'646'400;  // 2262-01-01T00:00:00Z
constexpr std::int32_t kMaxNanos = 999'999'999;

base::Status refuse_field(const std::string& path, std::string_view rule) {
  return base::invalid(path, fmt::format("{}: {}", path, rule));
}

base::Status check_fields(const pb::Message& message, const MessagePlan& plan,
                          const std::string& path);

// One value: that of a field, or an element of a list (index at least 0).
base::Status check_value(const pb::Message& message, const FieldPlan& plan, int index,
                         const std::string& path) {
  const pb::Reflection& reflection = *message.GetReflection();
  const bool is_element = index >= 0;
  const pb::FieldDescriptor* field = plan.field;
  switch (plan.kind) {
    case JsonKind::kEnum: {
      const int number = is_element ? reflection.GetRepeatedEnumValue(message, field, index)
                                    : reflection.GetEnumValue(message, field);
      if (number == 0 && !is_element) return {};
      if (!enum_name(plan, number).empty()) return {};
      return refuse_field(path, fmt::format("{} is not one of {}", number, allowed_names(plan)));
    }
    case JsonKind::kDouble: {
      const double number = is_element ? reflection.GetRepeatedDouble(message, field, index)
                                       : reflection.GetDouble(message, field);
      return std::isfinite(number) ? base::Status() : refuse_field(path, "must be a number");
    }
    case JsonKind::kTimestamp: {
      const pb::Message& value = is_element ? reflection.GetRepeatedMessage(message, field, index)
                                            : reflection.GetMessage(message, field);
      const auto& at = static_cast<const pb::Timestamp&>(value);
      const bool is_sound = at.seconds() >= 0 && at.seconds() < kEndOfYears && at.nanos() >= 0 &&
                            at.nanos() <= kMaxNanos;
      return is_sound ? base::Status() : refuse_field(path, "must be a time from 1970 to 2261");
    }
    case JsonKind::kMessage: {
      const pb::Message& value = is_element ? reflection.GetRepeatedMessage(message, field, index)
                                            : reflection.GetMessage(message, field);
      return check_fields(value, *plan.message, path + ".");
    }
    default:
      return {};
  }
}

base::Status check_fields(const pb::Message& message, const MessagePlan& plan,
                          const std::string& path) {
  const pb::Reflection& reflection = *message.GetReflection();
  const pb::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    const std::string place = path.empty() ? "request" : path.substr(0, path.size() - 1);
    return refuse_field(
        place, fmt::format("there is no field of the number {}", unknown.field(0).number()));
  }
  for (const FieldPlan& field : plan.fields) {
    const std::string name = path + field.name;
    if (field.kind == JsonKind::kMap) {
      for (int i = 0; i < reflection.FieldSize(message, field.field); ++i) {
        const pb::Message& entry = reflection.GetRepeatedMessage(message, field.field, i);
        TRY(check_value(entry, field.map_value(), -1, name));
      }
    } else if (field.is_repeated) {
      for (int i = 0; i < reflection.FieldSize(message, field.field); ++i) {
        TRY(check_value(message, field, i, fmt::format("{}[{}]", name, i)));
      }
    } else if (reflection.HasField(message, field.field)) {
      TRY(check_value(message, field, -1, name));
    }
  }
  return {};
}

}  // namespace

base::Status check_sayable(const pb::Message& message) {
  return check_fields(message, plan_of(*message.GetDescriptor()), {});
}

}  // namespace gpu_platform::api
