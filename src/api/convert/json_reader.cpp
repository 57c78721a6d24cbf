#include "api/convert/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/timestamp.pb.h>
#include <nlohmann/json.hpp>

#include "api/convert/field_plan.h"
#include "api/convert/text_forms.h"
#include "base/base64.h"
#include "base/suggest.h"
#include "base/utc.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// The target of one value: a field of a message, or one more element of a list.
struct Slot {
  pb::Message* message = nullptr;
  const FieldPlan* field = nullptr;
};

constexpr std::string_view kSpecPrefix = "spec.";

// The rule that a value breaks. The caller that knows the path adds it.
using FieldError = std::optional<std::string>;

const pb::Reflection& reflection_of(const Slot& slot) {
  return *slot.message->GetReflection();
}

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

std::string must_be(const FieldPlan& field) {
  return fmt::format("must be {}", type_name(field));
}

std::string number_text(double value) {
  return std::abs(value) < 1e15 && value == std::floor(value)
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

// "must be a whole number from 0 to 100": with the field's own bounds, else those of its type.
template <class Integer>
std::string whole_number_rule(const FieldPlan& field) {
  const auto bound = [](const std::optional<double>& limit, Integer of_type) {
    return limit ? number_text(*limit) : fmt::format("{}", of_type);
  };
  return fmt::format("must be a whole number{} from {} to {}", unit_of(field),
                     bound(field.limits.least, std::numeric_limits<Integer>::min()),
                     bound(field.limits.most, std::numeric_limits<Integer>::max()));
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

FieldError put_bool(const Slot& slot, bool value) {
  if (slot.field->kind != JsonKind::kBool) return must_be(*slot.field);
  if (slot.field->is_repeated) {
    reflection_of(slot).AddBool(slot.message, slot.field->field, value);
  } else {
    reflection_of(slot).SetBool(slot.message, slot.field->field, value);
  }
  return std::nullopt;
}

FieldError put_double(const Slot& slot, double value) {
  if (!std::isfinite(value)) return number_rule(*slot.field);
  if (slot.field->is_repeated) {
    reflection_of(slot).AddDouble(slot.message, slot.field->field, value);
  } else {
    reflection_of(slot).SetDouble(slot.message, slot.field->field, value);
  }
  return std::nullopt;
}

// Integer is int64 or uint64, as the text of the number had a sign or not.
template <class Integer>
FieldError put_integer(const Slot& slot, Integer value) {
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

FieldError put_enum(const Slot& slot, std::string_view name) {
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

void put_plain(const Slot& slot, std::string value) {
  if (slot.field->is_repeated) {
    reflection_of(slot).AddString(slot.message, slot.field->field, std::move(value));
  } else {
    reflection_of(slot).SetString(slot.message, slot.field->field, std::move(value));
  }
}

FieldError put_timestamp(const Slot& slot, std::string_view text) {
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

// `text` may be moved from.
FieldError put_string(const Slot& slot, std::string& text) {
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

// Receives nlohmann's events and fills the message as they come: no tree in between, so that
// duplicate keys are seen and a request costs one pass.
class MessageFiller {
 public:
  explicit MessageFiller(pb::Message& root) : root_(root) { frames_.reserve(8); }

  base::Error take_error() { return std::move(*error_); }

  // ---- what nlohmann::json::sax_parse calls ----
  bool null() {
    if (frames_.empty()) return reject("the body must be a JSON object");
    if (frames_.back().kind != Frame::kObject) return reject("must not be null");
    frames_.back().field = nullptr;
    return true;
  }
  bool boolean(bool value) {
    return put([&](const Slot& slot) { return put_bool(slot, value); });
  }
  bool number_integer(std::int64_t value) {
    return put([&](const Slot& slot) { return put_integer(slot, value); });
  }
  bool number_unsigned(std::uint64_t value) {
    return put([&](const Slot& slot) { return put_integer(slot, value); });
  }
  bool number_float(double value, const std::string&) {
    return put([&](const Slot& slot) -> FieldError {
      if (slot.field->kind == JsonKind::kDouble) return put_double(slot, value);
      return is_number(slot.field->kind) ? number_rule(*slot.field) : must_be(*slot.field);
    });
  }
  bool string(std::string& value) {
    return put([&](const Slot& slot) { return put_string(slot, value); });
  }
  bool binary(nlohmann::json::binary_t&) { return reject("the body must be JSON text"); }

  bool start_object(std::size_t) {
    if (frames_.empty()) {
      if (is_complete_) return reject("the body must be one JSON object");
      frames_.push_back(
          {.kind = Frame::kObject, .message = &root_, .plan = &plan_of(*root_.GetDescriptor())});
      return true;
    }
    const Slot slot = next_slot();
    if (slot.field->kind == JsonKind::kMap && frames_.back().kind != Frame::kMap) {
      frames_.push_back({.kind = Frame::kMap, .message = slot.message, .field = slot.field});
      return true;
    }
    if (slot.field->kind != JsonKind::kMessage || expects_list()) return reject(expectation(slot));
    const pb::Reflection& reflection = reflection_of(slot);
    pb::Message* message = slot.field->is_repeated
                               ? reflection.AddMessage(slot.message, slot.field->field)
                               : reflection.MutableMessage(slot.message, slot.field->field);
    frames_.push_back({.kind = Frame::kObject, .message = message, .plan = slot.field->message});
    return true;
  }

  bool key(std::string& name) {
    Frame& frame = frames_.back();
    if (frame.kind == Frame::kMap) return map_key(frame, name);
    frame.field = nullptr;
    const FieldPlan* field = frame.plan->find(name);
    if (field == nullptr) return reject_unknown(name);
    frame.field = field;
    const auto bit = static_cast<std::size_t>(field - frame.plan->fields.data());
    if (frame.seen.size() <= bit) frame.seen.resize(frame.plan->fields.size());
    if (frame.seen[bit]) return reject("is given twice");
    frame.seen[bit] = true;
    return true;
  }

  bool end_object() {
    Frame& frame = frames_.back();
    if (frame.kind == Frame::kMap) {
      std::ranges::sort(frame.map_keys);
      const auto twice = std::ranges::adjacent_find(frame.map_keys);
      if (twice != frame.map_keys.end()) {
        frame.map_key = *twice;
        return reject("is given twice");
      }
    }
    pop();
    return true;
  }

  bool start_array(std::size_t) {
    if (frames_.empty()) return reject("the body must be a JSON object");
    const Slot slot = next_slot();
    if (!slot.field->is_repeated || frames_.back().kind == Frame::kList) {
      return reject(expectation(slot));
    }
    frames_.push_back({.kind = Frame::kList, .message = slot.message, .field = slot.field});
    return true;
  }
  bool end_array() {
    pop();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& exception) {
    // The library's text begins with "[json.exception.parse_error.101] parse error at line 1,
    // column 9: " and may quote the last token, which may be a secret: only its own words after
    // "syntax error" stay.
    const std::string_view what = exception.what();
    std::string rule = "malformed JSON";
    if (what.find("ill-formed UTF-8") != std::string_view::npos) {
      rule = "contains bytes that are not UTF-8";
    } else if (what.find("U+0000") != std::string_view::npos) {
      rule = "contains a NUL";
    } else if (what.find("surrogate") != std::string_view::npos) {
      rule = "contains half of a surrogate pair";
    }
    return reject(fmt::format("{} (at byte {})", rule, position));
  }

 private:
  struct Frame {
    enum Kind { kObject, kList, kMap };
    Kind kind = kObject;
    pb::Message* message = nullptr;
    const MessagePlan* plan = nullptr;  // kObject
    const FieldPlan* field = nullptr;   // kObject: being read; kList, kMap: the field itself
    std::size_t index = 0;              // kList: of the element being read
    std::string map_key;                // kMap
    std::vector<std::string> map_keys;  // kMap
    std::vector<bool> seen;             // kObject, by position in the plan
  };

  static bool is_number(JsonKind kind) {
    return kind == JsonKind::kInt32 || kind == JsonKind::kInt64 || kind == JsonKind::kUint32 ||
           kind == JsonKind::kUint64 || kind == JsonKind::kDouble;
  }

  // The place of the value that comes now.
  Slot next_slot() {
    const Frame& frame = frames_.back();
    return {frame.message, frame.field};
  }
  // In an object, a field that is a list takes nothing else.
  bool expects_list() const {
    const Frame& frame = frames_.back();
    return frame.kind == Frame::kObject && frame.field->is_repeated;
  }
  std::string expectation(const Slot& slot) const {
    if (expects_list()) return "must be a list";
    if (frames_.back().kind == Frame::kMap) return must_be(slot.field->map_value());
    return must_be(*slot.field);
  }

  template <class Put>
  bool put(Put&& put_value) {
    if (frames_.empty()) return reject("the body must be a JSON object");
    Slot slot = next_slot();
    if (expects_list()) return reject("must be a list");
    Frame& frame = frames_.back();
    if (frame.kind == Frame::kMap) {
      pb::Message* entry = reflection_of(slot).AddMessage(slot.message, slot.field->field);
      const MessagePlan& plan = *slot.field->map_entry;
      entry->GetReflection()->SetString(entry, plan.fields[0].field, frame.map_key);
      slot = {entry, &plan.fields[1]};
    }
    const FieldError field_error = put_value(slot);
    if (field_error) return reject(*field_error);
    if (frame.kind == Frame::kList) ++frame.index;
    if (frame.kind == Frame::kObject) frame.field = nullptr;
    return true;
  }

  bool map_key(Frame& frame, std::string& name) {
    frame.map_key = name;
    frame.map_keys.push_back(std::move(name));
    return true;
  }

  bool reject_unknown(const std::string& name) {
    std::vector<std::string_view> names;
    for (const FieldPlan& field : frames_.back().plan->fields) names.push_back(field.name);
    const std::string place = path();
    // The name is the client's: quoted in the path only as far as it can be read.
    const std::string shown = name.size() > 64 ? name.substr(0, 64) + "…" : name;
    error_ =
        base::Error{base::ErrorCode::kInvalidArgument,
                    fmt::format("unknown field '{}'{}", shown, base::did_you_mean(name, names)),
                    place.empty() ? shown : place + "." + shown};
    return false;
  }

  bool reject(std::string_view rule) {
    if (error_) return false;
    std::string field = path();
    std::string message = field.empty() ? std::string(rule) : fmt::format("{}: {}", field, rule);
    error_ = base::Error{base::ErrorCode::kInvalidArgument, std::move(message), std::move(field)};
    return false;
  }

  std::string path() const {
    std::string out;
    for (const Frame& frame : frames_) {
      if (frame.kind == Frame::kObject && frame.field != nullptr) {
        if (!out.empty()) out.push_back('.');
        out += frame.field->name;
      } else if (frame.kind == Frame::kList) {
        fmt::format_to(std::back_inserter(out), "[{}]", frame.index);
      } else if (frame.kind == Frame::kMap && !frame.map_keys.empty()) {
        fmt::format_to(std::back_inserter(out), ".{}", frame.map_key.substr(0, 64));
      }
    }
    // A job's fields have the same names wherever its specification stands.
    if (out.starts_with(kSpecPrefix)) out.erase(0, kSpecPrefix.size());
    return out;
  }

  void pop() {
    frames_.pop_back();
    if (frames_.empty()) {
      is_complete_ = true;
    } else if (frames_.back().kind == Frame::kList) {
      ++frames_.back().index;
    } else {
      frames_.back().field = nullptr;
    }
  }

  pb::Message& root_;
  std::vector<Frame> frames_;
  bool is_complete_ = false;
  std::optional<base::Error> error_;
};

// ---- limits ----

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

base::Status read_json(std::string_view text, pb::Message& message) {
  MessageFiller filler(message);
  const char* begin = text.data();
  if (nlohmann::json::sax_parse(begin, begin + text.size(), &filler)) return {};
  return std::unexpected(filler.take_error());
}

base::Status read_text(std::string_view field, std::string_view text, pb::Message& message) {
  const FieldPlan* plan = plan_of(*message.GetDescriptor()).find(field);
  if (plan == nullptr || plan->kind == JsonKind::kMap || plan->kind == JsonKind::kMessage) {
    return base::invalid(std::string(field), fmt::format("unknown parameter '{}'", field));
  }
  const auto wrong = [&](std::string_view rule) {
    return base::invalid(plan->name, fmt::format("{}: {}", plan->name, rule));
  };
  if (!is_valid_utf8(text)) return wrong("contains bytes that are not UTF-8");
  const Slot slot{&message, plan};
  const auto parsed = [&](auto value) -> FieldError {
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    if (code != std::errc() || stop != end || text.empty()) return number_rule(*plan);
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      return put_double(slot, value);
    } else {
      return put_integer(slot, value);
    }
  };
  FieldError field_error;
  switch (plan->kind) {
    case JsonKind::kBool:
      if (text != "true" && text != "false") return wrong(must_be(*plan));
      field_error = put_bool(slot, text == "true");
      break;
    case JsonKind::kInt32:
    case JsonKind::kInt64:
      field_error = parsed(std::int64_t{0});
      break;
    case JsonKind::kUint32:
    case JsonKind::kUint64:
      field_error = parsed(std::uint64_t{0});
      break;
    case JsonKind::kDouble:
      field_error = parsed(0.0);
      break;
    default: {
      std::string value(text);
      field_error = put_string(slot, value);
    }
  }
  return field_error ? wrong(*field_error) : base::Status();
}

base::Status check_limits(const pb::Message& message) {
  return LimitChecker().check(message, plan_of(*message.GetDescriptor()), {});
}

}  // namespace gpu_platform::api
