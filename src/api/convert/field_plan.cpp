#include "api/convert/field_plan.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/letters.h"
#include "gpu_platform/v1/options.pb.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// "JobState" -> "JOB_STATE_"
std::string enum_prefix(const pb::EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(base::to_upper(c));
  }
  return prefix + "_";
}

std::vector<EnumName> enum_names(const pb::EnumDescriptor& type) {
  const std::string prefix = enum_prefix(type);
  std::vector<EnumName> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const pb::EnumValueDescriptor& value = *type.value(i);
    CHECK(value.name().starts_with(prefix));
    if (value.number() == 0) continue;
    names.push_back({value.number(), value.name().substr(prefix.size())});
  }
  return names;
}

// Numbers have the plain encodings alone, which json_writer.cpp reads.
JsonKind kind_of(const pb::FieldDescriptor& field) {
  if (field.is_map()) return JsonKind::kMap;
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_BOOL:
      return JsonKind::kBool;
    case pb::FieldDescriptor::TYPE_INT32:
      return JsonKind::kInt32;
    case pb::FieldDescriptor::TYPE_INT64:
      return JsonKind::kInt64;
    case pb::FieldDescriptor::TYPE_UINT32:
      return JsonKind::kUint32;
    case pb::FieldDescriptor::TYPE_UINT64:
      return JsonKind::kUint64;
    case pb::FieldDescriptor::TYPE_DOUBLE:
      return JsonKind::kDouble;
    case pb::FieldDescriptor::TYPE_ENUM:
      return JsonKind::kEnum;
    case pb::FieldDescriptor::TYPE_STRING:
      return JsonKind::kString;
    case pb::FieldDescriptor::TYPE_BYTES:
      return JsonKind::kBytes;
    case pb::FieldDescriptor::TYPE_MESSAGE:
      return field.message_type()->full_name() == "google.protobuf.Timestamp" ? JsonKind::kTimestamp
                                                                              : JsonKind::kMessage;
    default:
      break;
  }
  CHECK(false && "a field type that docs/api.md has no rule for");
  std::unreachable();
}

// What stands for a field without a value.
std::string_view absent_value(const FieldPlan& field) {
  if (field.is_repeated) return "[]";
  if (field.kind == JsonKind::kMap) return "{}";
  if (field.has_presence || field.kind == JsonKind::kEnum) return "null";
  if (field.kind == JsonKind::kBool) return "false";
  return field.kind == JsonKind::kString || field.kind == JsonKind::kBytes ? R"("")" : "0";
}

class Plans {
 public:
  const MessagePlan& of(const pb::Descriptor& descriptor) {
    const std::lock_guard lock(mutex_);
    return locked_of(descriptor);
  }

 private:
  const MessagePlan& locked_of(const pb::Descriptor& descriptor) {
    std::unique_ptr<MessagePlan>& slot = plans_[&descriptor];
    if (slot != nullptr) return *slot;
    slot = std::make_unique<MessagePlan>();
    MessagePlan& plan = *slot;
    plan.descriptor = &descriptor;
    for (int i = 0; i < descriptor.field_count(); ++i) {
      plan.add(field_plan(*descriptor.field(i)));
    }
    return plan;
  }

  FieldPlan field_plan(const pb::FieldDescriptor& field) {
    FieldPlan plan;
    plan.field = &field;
    plan.name = field.name();
    plan.kind = kind_of(field);
    plan.is_repeated = field.is_repeated() && !field.is_map();
    plan.has_presence = field.has_presence();
    plan.is_secret = field.options().GetExtension(v1::secret);
    plan.is_input_only = field.options().GetExtension(v1::input_only);
    plan.is_limited = field.options().HasExtension(v1::limits);
    if (plan.is_limited) {
      const v1::Limits& limits = field.options().GetExtension(v1::limits);
      if (limits.has_least()) plan.limits.least = limits.least();
      if (limits.has_most()) plan.limits.most = limits.most();
      plan.limits.max_bytes = limits.max_bytes();
      plan.limits.max_items = limits.max_items();
      plan.limits.max_key_bytes = limits.max_key_bytes();
      plan.limits.not_empty = limits.not_empty();
      plan.limits.pattern = limits.pattern();
    }
    if (plan.kind == JsonKind::kEnum) plan.enum_names = enum_names(*field.enum_type());
    if (plan.kind == JsonKind::kMessage) plan.message = &locked_of(*field.message_type());
    if (plan.kind == JsonKind::kMap) plan.map_entry = &locked_of(*field.message_type());
    return plan;
  }

  std::mutex mutex_;
  std::map<const pb::Descriptor*, std::unique_ptr<MessagePlan>> plans_;
};

}  // namespace

const FieldPlan& FieldPlan::map_value() const {
  return map_entry->fields[1];
}

FieldPlan& MessagePlan::add(FieldPlan field) {
  const auto number = static_cast<std::size_t>(field.field->number());
  if (places_.size() <= number) places_.resize(number + 1, kNowhere);
  places_[number] = fields.size();
  if (!field.is_input_only) {
    empty_text_.back() = ',';
    if (empty_text_.size() == 2) empty_text_.pop_back();
    empty_text_ += fmt::format("\"{}\":", field.name);
    field.value_begin = empty_text_.size();
    empty_text_ += absent_value(field);
    field.value_end = empty_text_.size();
    empty_text_.push_back('}');
  }
  return fields.emplace_back(std::move(field));
}

const FieldPlan* MessagePlan::find(std::string_view name) const {
  for (const FieldPlan& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

const MessagePlan& plan_of(const pb::Descriptor& descriptor) {
  static Plans plans;
  return plans.of(descriptor);
}

std::string_view enum_name(const FieldPlan& field, int number) {
  for (const EnumName& entry : field.enum_names) {
    if (entry.number == number) return entry.name;
  }
  return {};
}

std::optional<int> enum_number(const FieldPlan& field, std::string_view name) {
  const std::string upper = base::to_upper(name);
  for (const EnumName& entry : field.enum_names) {
    if (entry.name == upper) return entry.number;
  }
  return std::nullopt;
}

std::string allowed_names(const FieldPlan& field) {
  std::vector<std::string_view> names;
  names.reserve(field.enum_names.size());
  for (const EnumName& entry : field.enum_names) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace gpu_platform::api
