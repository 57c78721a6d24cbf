#include "api/convert/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <google/protobuf/timestamp.pb.h>

#include "api/convert/field_plan.h"
#include "api/convert/text_forms.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// An answer has every field but those that are input_only; a request those alone that are set.
enum class Form { kAnswer, kRequest };

void append_object(std::string& out, const pb::Message& message, const MessagePlan& plan,
                   Form form);

template <class Number>
void append_number(std::string& out, Number value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, static_cast<std::size_t>(end - text));
}

// The shortest decimal that reads back as the same double.
void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  append_number(out, value);
}

void append_timestamp(std::string& out, const pb::Message& message) {
  const auto& timestamp = static_cast<const pb::Timestamp&>(message);
  out.push_back('"');
  append_rfc3339(out, base::Instant(timestamp.seconds() * 1'000'000'000 + timestamp.nanos()));
  out.push_back('"');
}

void append_enum(std::string& out, const FieldPlan& plan, int number) {
  const std::string_view name = enum_name(plan, number);
  if (name.empty()) {
    out += "null";
    return;
  }
  out.push_back('"');
  out += name;
  out.push_back('"');
}

// One value that is not a list or a map.
void append_single(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                   const FieldPlan& plan, Form form) {
  const pb::FieldDescriptor* field = plan.field;
  std::string scratch;
  switch (plan.kind) {
    case JsonKind::kBool:
      out += reflection.GetBool(message, field) ? "true" : "false";
      return;
    case JsonKind::kInt32:
      append_number(out, reflection.GetInt32(message, field));
      return;
    case JsonKind::kInt64:
      append_number(out, reflection.GetInt64(message, field));
      return;
    case JsonKind::kUint32:
      append_number(out, reflection.GetUInt32(message, field));
      return;
    case JsonKind::kUint64:
      append_number(out, reflection.GetUInt64(message, field));
      return;
    case JsonKind::kDouble:
      append_double(out, reflection.GetDouble(message, field));
      return;
    case JsonKind::kString:
      append_json_string(out, reflection.GetStringReference(message, field, &scratch));
      return;
    case JsonKind::kBytes:
      out.push_back('"');
      append_base64(out, reflection.GetStringReference(message, field, &scratch));
      out.push_back('"');
      return;
    case JsonKind::kEnum:
      append_enum(out, plan, reflection.GetEnumValue(message, field));
      return;
    case JsonKind::kTimestamp:
      append_timestamp(out, reflection.GetMessage(message, field));
      return;
    case JsonKind::kMessage:
      append_object(out, reflection.GetMessage(message, field), *plan.message, form);
      return;
    case JsonKind::kMap:
      return;
  }
}

void append_element(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                    const FieldPlan& plan, int index, Form form) {
  const pb::FieldDescriptor* field = plan.field;
  std::string scratch;
  switch (plan.kind) {
    case JsonKind::kBool:
      out += reflection.GetRepeatedBool(message, field, index) ? "true" : "false";
      return;
    case JsonKind::kInt32:
      append_number(out, reflection.GetRepeatedInt32(message, field, index));
      return;
    case JsonKind::kInt64:
      append_number(out, reflection.GetRepeatedInt64(message, field, index));
      return;
    case JsonKind::kUint32:
      append_number(out, reflection.GetRepeatedUInt32(message, field, index));
      return;
    case JsonKind::kUint64:
      append_number(out, reflection.GetRepeatedUInt64(message, field, index));
      return;
    case JsonKind::kDouble:
      append_double(out, reflection.GetRepeatedDouble(message, field, index));
      return;
    case JsonKind::kString:
      append_json_string(out,
                         reflection.GetRepeatedStringReference(message, field, index, &scratch));
      return;
    case JsonKind::kBytes:
      out.push_back('"');
      append_base64(out, reflection.GetRepeatedStringReference(message, field, index, &scratch));
      out.push_back('"');
      return;
    case JsonKind::kEnum:
      append_enum(out, plan, reflection.GetRepeatedEnumValue(message, field, index));
      return;
    case JsonKind::kTimestamp:
      append_timestamp(out, reflection.GetRepeatedMessage(message, field, index));
      return;
    case JsonKind::kMessage:
      append_object(out, reflection.GetRepeatedMessage(message, field, index), *plan.message, form);
      return;
    case JsonKind::kMap:
      return;
  }
}

void append_list(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                 const FieldPlan& plan, Form form) {
  out.push_back('[');
  const int size = reflection.FieldSize(message, plan.field);
  for (int i = 0; i < size; ++i) {
    if (i > 0) out.push_back(',');
    append_element(out, message, reflection, plan, i, form);
  }
  out.push_back(']');
}

void append_map(std::string& out, const pb::Message& message, const pb::Reflection& reflection,
                const FieldPlan& plan, Form form) {
  const int size = reflection.FieldSize(message, plan.field);
  std::vector<std::pair<std::string, const pb::Message*>> entries;
  entries.reserve(static_cast<std::size_t>(size));
  const FieldPlan& key = plan.map_entry->fields[0];
  for (int i = 0; i < size; ++i) {
    const pb::Message& entry = reflection.GetRepeatedMessage(message, plan.field, i);
    entries.emplace_back(entry.GetReflection()->GetString(entry, key.field), &entry);
  }
  std::ranges::sort(entries);
  out.push_back('{');
  bool is_first = true;
  for (const auto& [name, entry] : entries) {
    if (!is_first) out.push_back(',');
    is_first = false;
    append_json_string(out, name);
    out.push_back(':');
    append_single(out, *entry, *entry->GetReflection(), plan.map_value(), form);
  }
  out.push_back('}');
}

bool is_given(const pb::Message& message, const pb::Reflection& reflection, const FieldPlan& plan) {
  return plan.field->is_repeated() ? reflection.FieldSize(message, plan.field) > 0
                                   : reflection.HasField(message, plan.field);
}

void append_object(std::string& out, const pb::Message& message, const MessagePlan& plan,
                   Form form) {
  const pb::Reflection& reflection = *message.GetReflection();
  out.push_back('{');
  bool is_first = true;
  for (const FieldPlan& field : plan.fields) {
    if (form == Form::kAnswer ? field.is_input_only : !is_given(message, reflection, field)) {
      continue;
    }
    if (!is_first) out.push_back(',');
    is_first = false;
    out += field.json_key;
    if (field.kind == JsonKind::kMap) {
      append_map(out, message, reflection, field, form);
    } else if (field.is_repeated) {
      append_list(out, message, reflection, field, form);
    } else if (field.has_presence && !reflection.HasField(message, field.field)) {
      out += "null";
    } else {
      append_single(out, message, reflection, field, form);
    }
  }
  out.push_back('}');
}

}  // namespace

void append_json(std::string& out, const pb::Message& message) {
  append_object(out, message, plan_of(*message.GetDescriptor()), Form::kAnswer);
}

void append_json(std::string& out, const pb::Message& message, const MessagePlan& plan) {
  append_object(out, message, plan, Form::kAnswer);
}

void append_request_json(std::string& out, const pb::Message& message) {
  append_object(out, message, plan_of(*message.GetDescriptor()), Form::kRequest);
}

std::string to_json(const pb::Message& message) {
  std::string out;
  append_json(out, message);
  return out;
}

}  // namespace gpu_platform::api
