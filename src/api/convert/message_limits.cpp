#include "api/convert/message_limits.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/convert/field_plan.h"
#include "api/convert/field_value.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

class LimitChecker {
 public:
  base::Status check(const pb::Message& message, const MessagePlan& plan,
                     const std::string& prefix) {
    for (const FieldPlan& field : plan.fields) {
      if (field.kind == JsonKind::kMap) {
        TRY(check_map(message, field, prefix));
      } else if (field.is_repeated) {
        TRY(check_list(message, field, prefix));
      } else if (!field.has_presence || message.GetReflection()->HasField(message, field.field)) {
        TRY(check_single(message, field, prefix));
      }
    }
    return {};
  }

 private:
  static base::Status wrong(std::string path, std::string_view rule) {
    std::string message = fmt::format("{}: {}", path, rule);
    return base::invalid(std::move(path), std::move(message));
  }

  static base::Status check_text(std::string_view text, const FieldPlan& field, const auto& path) {
    if (text.find('\0') != std::string_view::npos) return wrong(path(), "contains a NUL");
    const std::uint32_t most = field.limits.max_bytes;
    if (most != 0 && text.size() > most) {
      return wrong(path(), fmt::format("is {} bytes long; the limit is {}", text.size(), most));
    }
    return {};
  }

  static base::Status check_number(double value, const FieldPlan& field, const auto& path) {
    if ((field.limits.least && value < *field.limits.least) ||
        (field.limits.most && value > *field.limits.most)) {
      return wrong(path(), number_rule(field));
    }
    return {};
  }

  base::Status check_single(const pb::Message& message, const FieldPlan& field,
                            const std::string& prefix) {
    const pb::Reflection& reflection = *message.GetReflection();
    const auto path = [&] { return prefix + field.name; };
    std::string scratch;
    switch (field.kind) {
      case JsonKind::kString: {
        const std::string& text = reflection.GetStringReference(message, field.field, &scratch);
        TRY(check_text(text, field, path));
        if (field.limits.not_empty && text.empty()) return wrong(path(), "must not be empty");
        return {};
      }
      case JsonKind::kInt32:
        return check_number(reflection.GetInt32(message, field.field), field, path);
      case JsonKind::kInt64:
        return check_number(static_cast<double>(reflection.GetInt64(message, field.field)), field,
                            path);
      case JsonKind::kUint32:
        return check_number(reflection.GetUInt32(message, field.field), field, path);
      case JsonKind::kUint64:
        return check_number(static_cast<double>(reflection.GetUInt64(message, field.field)), field,
                            path);
      case JsonKind::kDouble:
        return check_number(reflection.GetDouble(message, field.field), field, path);
      case JsonKind::kMessage:
        return check(reflection.GetMessage(message, field.field), *field.message,
                     path() + "." == kSpecPrefix ? std::string() : path() + ".");
      default:
        return {};
    }
  }

  base::Status check_list(const pb::Message& message, const FieldPlan& field,
                          const std::string& prefix) {
    const pb::Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, field.field);
    TRY(check_count(size, field, prefix));
    for (int i = 0; i < size; ++i) {
      const auto path = [&] { return fmt::format("{}{}[{}]", prefix, field.name, i); };
      std::string scratch;
      if (field.kind == JsonKind::kString) {
        const std::string& text =
            reflection.GetRepeatedStringReference(message, field.field, i, &scratch);
        TRY(check_text(text, field, path));
        if (field.limits.not_empty && text.empty()) return wrong(path(), "must not be empty");
      } else if (field.kind == JsonKind::kMessage) {
        TRY(check(reflection.GetRepeatedMessage(message, field.field, i), *field.message,
                  path() + "."));
      }
    }
    return {};
  }

  static base::Status check_count(int size, const FieldPlan& field, const std::string& prefix) {
    const std::uint32_t most = field.limits.max_items;
    if (most != 0 && std::cmp_greater(size, most)) {
      return wrong(prefix + field.name, fmt::format("has {} entries; the limit is {}", size, most));
    }
    return {};
  }

  static base::Status check_map(const pb::Message& message, const FieldPlan& field,
                                const std::string& prefix) {
    const pb::Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, field.field);
    TRY(check_count(size, field, prefix));
    const pb::FieldDescriptor* key_field = field.map_entry->fields[0].field;
    const FieldPlan& value_plan = field.map_value();
    for (int i = 0; i < size; ++i) {
      const pb::Message& entry = reflection.GetRepeatedMessage(message, field.field, i);
      std::string key_scratch;
      const std::string& key =
          entry.GetReflection()->GetStringReference(entry, key_field, &key_scratch);
      const auto path = [&] {
        return fmt::format("{}{}.{}", prefix, field.name, key.substr(0, 64));
      };
      if (key.find('\0') != std::string::npos) {
        return wrong(prefix + field.name, "a name contains a NUL");
      }
      if (field.limits.not_empty && key.empty()) {
        return wrong(prefix + field.name, "has an empty name");
      }
      const std::uint32_t most = field.limits.max_key_bytes;
      if (most != 0 && key.size() > most) {
        return wrong(path(),
                     fmt::format("the name is {} bytes long; the limit is {}", key.size(), most));
      }
      if (value_plan.kind != JsonKind::kString) continue;
      std::string scratch;
      TRY(check_text(entry.GetReflection()->GetStringReference(entry, value_plan.field, &scratch),
                     field, path));
    }
    return {};
  }
};

}  // namespace

base::Status check_limits(const pb::Message& message) {
  return LimitChecker().check(message, plan_of(*message.GetDescriptor()), {});
}

}  // namespace gpu_platform::api
