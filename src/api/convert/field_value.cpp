#include "api/convert/field_value.h"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/timestamp.pb.h>

#include "api/convert/text_forms.h"
#include "base/base64.h"
#include "base/utc.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

std::string_view type_name(const FieldPlan& field) {
  switch (field.kind) {
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kInt32:
    case JsonKind::kInt64:
    case JsonKind::kUint32:
    case JsonKind::kUint64:
      return "a whole number";
    case JsonKind::kDouble:
      return "a number";
    case JsonKind::kString:
    case JsonKind::kEnum:
      return "a string";
    case JsonKind::kBytes:
      return "a base64 string";
    case JsonKind::kTimestamp:
      return "a time as in \"2026-07-01T12:00:00Z\"";
    case JsonKind::kMessage:
    case JsonKind::kMap:
      return "an object";
  }
  return "a value";
}

// " of seconds", by the end of the field's name.
std::string_view unit_of(const FieldPlan& field) {
  if (field.name.ends_with("_seconds")) return " of seconds";
  return field.name.ends_with("_bytes") ? " of bytes" : "";
}

std::string number_text(double value) {
  return std::abs(value) < 1e15 && value == std::floor(value)
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

template <class Integer>
std::string whole_number_rule(const FieldPlan& field) {
  const auto bound = [](const std::optional<double>& limit, Integer of_type) {
    return limit ? number_text(*limit) : fmt::format("{}", of_type);
  };
  return fmt::format("must be a whole number{} from {} to {}", unit_of(field),
                     bound(field.limits.least, std::numeric_limits<Integer>::min()),
                     bound(field.limits.most, std::numeric_limits<Integer>::max()));
}

// Integer is int64 or uint64, as the text of the number had a sign or not.
template <class Integer>
FieldError put_whole(const FieldSlot& slot, Integer value) {
  const pb::Reflection& reflection = reflection_of(slot);
  const pb::FieldDescriptor* field = slot.field->field;
  const bool add = slot.field->is_repeated;
  pb::Message* message = slot.message;
  switch (slot.field->kind) {
    case JsonKind::kInt32:
      if (!std::in_range<std::int32_t>(value)) return number_rule(*slot.field);
      add ? reflection.AddInt32(message, field, static_cast<std::int32_t>(value))
          : reflection.SetInt32(message, field, static_cast<std::int32_t>(value));
      return std::nullopt;
    case JsonKind::kInt64:
      if (!std::in_range<std::int64_t>(value)) return number_rule(*slot.field);
      add ? reflection.AddInt64(message, field, static_cast<std::int64_t>(value))
          : reflection.SetInt64(message, field, static_cast<std::int64_t>(value));
      return std::nullopt;
    case JsonKind::kUint32:
      if (!std::in_range<std::uint32_t>(value)) return number_rule(*slot.field);
      add ? reflection.AddUInt32(message, field, static_cast<std::uint32_t>(value))
          : reflection.SetUInt32(message, field, static_cast<std::uint32_t>(value));
      return std::nullopt;
    case JsonKind::kUint64:
      if (!std::in_range<std::uint64_t>(value)) return number_rule(*slot.field);
      add ? reflection.AddUInt64(message, field, static_cast<std::uint64_t>(value))
          : reflection.SetUInt64(message, field, static_cast<std::uint64_t>(value));
      return std::nullopt;
    case JsonKind::kDouble:
      return put_double(slot, static_cast<double>(value));
    default:
      return must_be(*slot.field);
  }
}

FieldError put_enum(const FieldSlot& slot, std::string_view name) {
  const std::optional<int> number = enum_number(*slot.field, name);
  if (!number) {
    return slot.field->is_secret || name.size() > 64
               ? fmt::format("must be one of {}", allowed_names(*slot.field))
               : fmt::format("'{}' is not one of {}", name, allowed_names(*slot.field));
  }
  if (slot.field->is_repeated) {
    reflection_of(slot).AddEnumValue(slot.message, slot.field->field, *number);
  } else {
    reflection_of(slot).SetEnumValue(slot.message, slot.field->field, *number);
  }
  return std::nullopt;
}

void put_plain(const FieldSlot& slot, std::string value) {
  if (slot.field->is_repeated) {
    reflection_of(slot).AddString(slot.message, slot.field->field, std::move(value));
  } else {
    reflection_of(slot).SetString(slot.message, slot.field->field, std::move(value));
  }
}

FieldError put_timestamp(const FieldSlot& slot, std::string_view text) {
  const std::optional<base::Instant> at = base::parse_rfc3339(text);
  if (!at) return must_be(*slot.field);
  const pb::Reflection& reflection = reflection_of(slot);
  pb::Message* target = slot.field->is_repeated
                            ? reflection.AddMessage(slot.message, slot.field->field)
                            : reflection.MutableMessage(slot.message, slot.field->field);
  auto& timestamp = static_cast<pb::Timestamp&>(*target);
  timestamp.set_seconds(at->unix_ns() / 1'000'000'000);
  timestamp.set_nanos(static_cast<std::int32_t>(at->unix_ns() % 1'000'000'000));
  return std::nullopt;
}

}  // namespace

const pb::Reflection& reflection_of(const FieldSlot& slot) {
  return *slot.message->GetReflection();
}

std::string must_be(const FieldPlan& field) {
  return fmt::format("must be {}", type_name(field));
}

std::string number_rule(const FieldPlan& field) {
  switch (field.kind) {
    case JsonKind::kInt32:
      return whole_number_rule<std::int32_t>(field);
    case JsonKind::kInt64:
      return whole_number_rule<std::int64_t>(field);
    case JsonKind::kUint32:
      return whole_number_rule<std::uint32_t>(field);
    case JsonKind::kUint64:
      return whole_number_rule<std::uint64_t>(field);
    default:
      break;
  }
  const FieldLimits& limits = field.limits;
  if (limits.least && limits.most) {
    return fmt::format("must be a number{} from {} to {}", unit_of(field),
                       number_text(*limits.least), number_text(*limits.most));
  }
  return fmt::format("must be a number{}", unit_of(field));
}

FieldError put_bool(const FieldSlot& slot, bool value) {
  if (slot.field->kind != JsonKind::kBool) return must_be(*slot.field);
  if (slot.field->is_repeated) {
    reflection_of(slot).AddBool(slot.message, slot.field->field, value);
  } else {
    reflection_of(slot).SetBool(slot.message, slot.field->field, value);
  }
  return std::nullopt;
}

FieldError put_double(const FieldSlot& slot, double value) {
  if (!std::isfinite(value)) return number_rule(*slot.field);
  if (slot.field->is_repeated) {
    reflection_of(slot).AddDouble(slot.message, slot.field->field, value);
  } else {
    reflection_of(slot).SetDouble(slot.message, slot.field->field, value);
  }
  return std::nullopt;
}

FieldError put_integer(const FieldSlot& slot, std::int64_t value) {
  return put_whole(slot, value);
}

FieldError put_integer(const FieldSlot& slot, std::uint64_t value) {
  return put_whole(slot, value);
}

FieldError put_string(const FieldSlot& slot, std::string& text) {
  switch (slot.field->kind) {
    case JsonKind::kString:
      put_plain(slot, std::move(text));
      return std::nullopt;
    case JsonKind::kEnum:
      return put_enum(slot, text);
    case JsonKind::kTimestamp:
      return put_timestamp(slot, text);
    case JsonKind::kBytes: {
      std::optional<std::string> bytes = base::parse_base64(text);
      if (!bytes) return must_be(*slot.field);
      put_plain(slot, std::move(*bytes));
      return std::nullopt;
    }
    default:
      return must_be(*slot.field);
  }
}

}  // namespace gpu_platform::api
