#include "client/answer.h"

#include <cstdint>
#include <utility>

#include <google/protobuf/unknown_field_set.h>
#include <nlohmann/json.hpp>

#include "api/convert/field_plan.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/utc.h"

namespace gpu_platform::client {

namespace {

namespace pb = google::protobuf;
using api::FieldPlan;
using api::JsonKind;
using api::MessagePlan;
using Tree = nlohmann::json;

void read_object(const Tree& object, pb::Message& message, const MessagePlan& plan);

// One value of a field: sets it, or adds it to the list that the field is.
class Value {
 public:
  Value(pb::Message& message, const FieldPlan& plan)
      : message_(message), reflection_(*message.GetReflection()), plan_(plan) {}

  // Leaves the field as it is if the value does not fit.
  void read(const Tree& value) {
    switch (plan_.kind) {
      case JsonKind::kBool:
        if (value.is_boolean()) put_bool(value.get<bool>());
        return;
      case JsonKind::kInt32:
      case JsonKind::kInt64:
      case JsonKind::kUint32:
      case JsonKind::kUint64:
        if (value.is_number_unsigned()) return put_integer(value.get<std::uint64_t>());
        if (value.is_number_integer()) put_integer(value.get<std::int64_t>());
        return;
      case JsonKind::kDouble:
        if (value.is_number()) put_double(value.get<double>());
        return;
      case JsonKind::kMessage:
        if (value.is_object()) read_object(value, sub_message(), *plan_.message);
        return;
      case JsonKind::kString:
      case JsonKind::kBytes:
      case JsonKind::kEnum:
      case JsonKind::kTimestamp:
        if (value.is_string()) read_text(value.get_ref<const std::string&>());
        return;
      case JsonKind::kMap:
        return;
    }
  }

 private:
  void read_text(const std::string& text) {
    if (plan_.kind == JsonKind::kString) return put_text(text);
    if (plan_.kind == JsonKind::kEnum) return put_name(text);
    if (plan_.kind == JsonKind::kBytes) {
      if (auto bytes = base::parse_base64(text)) put_text(*std::move(bytes));
    } else if (const auto at = base::parse_unix_time(text)) {
      auto& timestamp = static_cast<pb::Timestamp&>(sub_message());
      timestamp.set_seconds(at->seconds);
      timestamp.set_nanos(static_cast<std::int32_t>(at->nanoseconds));
    }
  }

  template <class Integer>
  void put_integer(Integer value) {
    const pb::FieldDescriptor* field = plan_.field;
    const bool add = plan_.is_repeated;
    if (plan_.kind == JsonKind::kInt32 && std::in_range<std::int32_t>(value)) {
      const auto number = static_cast<std::int32_t>(value);
      add ? reflection_.AddInt32(&message_, field, number)
          : reflection_.SetInt32(&message_, field, number);
    } else if (plan_.kind == JsonKind::kInt64 && std::in_range<std::int64_t>(value)) {
      const auto number = static_cast<std::int64_t>(value);
      add ? reflection_.AddInt64(&message_, field, number)
          : reflection_.SetInt64(&message_, field, number);
    } else if (plan_.kind == JsonKind::kUint32 && std::in_range<std::uint32_t>(value)) {
      const auto number = static_cast<std::uint32_t>(value);
      add ? reflection_.AddUInt32(&message_, field, number)
          : reflection_.SetUInt32(&message_, field, number);
    } else if (plan_.kind == JsonKind::kUint64 && std::in_range<std::uint64_t>(value)) {
      const auto number = static_cast<std::uint64_t>(value);
      add ? reflection_.AddUInt64(&message_, field, number)
          : reflection_.SetUInt64(&message_, field, number);
    }
  }

  void put_bool(bool value) {
    plan_.is_repeated ? reflection_.AddBool(&message_, plan_.field, value)
                      : reflection_.SetBool(&message_, plan_.field, value);
  }
  void put_double(double value) {
    plan_.is_repeated ? reflection_.AddDouble(&message_, plan_.field, value)
                      : reflection_.SetDouble(&message_, plan_.field, value);
  }
  void put_text(std::string text) {
    plan_.is_repeated ? reflection_.AddString(&message_, plan_.field, std::move(text))
                      : reflection_.SetString(&message_, plan_.field, std::move(text));
  }

  // A name of a newer daemon stays with the message as an unknown field of the same number.
  void put_name(const std::string& name) {
    const std::optional<int> number = api::enum_number(plan_, name);
    if (!number) {
      reflection_.MutableUnknownFields(&message_)->AddLengthDelimited(plan_.field->number(), name);
    } else if (plan_.is_repeated) {
      reflection_.AddEnumValue(&message_, plan_.field, *number);
    } else {
      reflection_.SetEnumValue(&message_, plan_.field, *number);
    }
  }

  pb::Message& sub_message() {
    return plan_.is_repeated ? *reflection_.AddMessage(&message_, plan_.field)
                             : *reflection_.MutableMessage(&message_, plan_.field);
  }

  pb::Message& message_;
  const pb::Reflection& reflection_;
  const FieldPlan& plan_;
};

void read_map(const Tree& object, pb::Message& message, const FieldPlan& field) {
  for (const auto& [key, value] : object.items()) {
    pb::Message& entry = *message.GetReflection()->AddMessage(&message, field.field);
    entry.GetReflection()->SetString(&entry, field.map_entry->fields[0].field, key);
    Value(entry, field.map_value()).read(value);
  }
}

void read_object(const Tree& object, pb::Message& message, const MessagePlan& plan) {
  for (const FieldPlan& field : plan.fields) {
    const auto value = object.find(field.name);
    if (value == object.end()) continue;
    if (field.kind == JsonKind::kMap) {
      if (value->is_object()) read_map(*value, message, field);
    } else if (!field.is_repeated) {
      Value(message, field).read(*value);
    } else if (value->is_array()) {
      for (const Tree& element : *value) Value(message, field).read(element);
    }
  }
}

}  // namespace

bool read_document(std::string_view text, pb::Message& message) {
  const Tree document = Tree::parse(text, nullptr, false);
  if (!document.is_object()) return false;
  read_object(document, message, api::plan_of(*message.GetDescriptor()));
  return true;
}

std::string name_at(const pb::Message& message, int field) {
  const MessagePlan& plan = api::plan_of(*message.GetDescriptor());
  const std::size_t place = plan.place_of(static_cast<std::size_t>(field));
  CHECK(place != MessagePlan::kNowhere);
  const FieldPlan& found = plan.fields[place];
  CHECK(found.kind == JsonKind::kEnum && !found.is_repeated);
  const pb::Reflection& reflection = *message.GetReflection();
  if (const int number = reflection.GetEnumValue(message, found.field); number != 0) {
    return std::string(api::enum_name(found, number));
  }
  const pb::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const pb::UnknownField& one = unknown.field(i);
    if (one.number() == field && one.type() == pb::UnknownField::TYPE_LENGTH_DELIMITED) {
      return one.length_delimited();
    }
  }
  return {};
}

std::optional<base::Instant> time_of(const pb::Timestamp& field) {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  const bool is_absent = field.seconds() == 0 && field.nanos() == 0;
  const bool fits = field.seconds() >= 0 && field.seconds() < INT64_MAX / kPerSecond;
  if (is_absent || !fits) return std::nullopt;
  return base::Instant(field.seconds() * kPerSecond + field.nanos());
}

}  // namespace gpu_platform::client
