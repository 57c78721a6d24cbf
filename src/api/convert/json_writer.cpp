#include "api/convert/json_writer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include <google/protobuf/stubs/logging.h>

#include "api/convert/field_plan.h"
#include "api/convert/text_forms.h"
#include "base/base64.h"
#include "base/utc.h"

// The text is made from the message's Protobuf encoding: the generated code that encodes is an
// order faster than a look at each field through reflection, and absent fields cost nothing there.

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

// Returns the base-128 number at the front, which it takes away.
inline std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

inline std::string_view take_front(std::string_view& bytes, std::size_t count) {
  const std::string_view front = bytes.substr(0, count);
  bytes.remove_prefix(front.size());
  return front;
}

// One field as it is encoded. `value` is without the length where there is one.
struct EncodedField {
  std::size_t number = 0;
  bool has_length = false;
  std::string_view value;
};

inline EncodedField take_field(std::string_view& bytes) {
  const std::uint64_t tag = take_varint(bytes);
  EncodedField field{tag >> 3U, (tag & 7U) == 2, {}};
  if (field.has_length) {
    field.value = take_front(bytes, take_varint(bytes));
  } else if ((tag & 7U) == 0) {
    std::string_view rest = bytes;
    take_varint(rest);
    field.value = take_front(bytes, bytes.size() - rest.size());
  } else {
    field.value = take_front(bytes, sizeof(double));
  }
  return field;
}

template <class Number>
void append_number(std::string& out, Number value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, static_cast<std::size_t>(end - text));
}

// The shortest decimal that reads back as the same double.
void append_double(std::string& out, std::string_view bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  const auto value = std::bit_cast<double>(bits);
  std::isfinite(value) ? append_number(out, value) : void(out += "null");
}

void append_timestamp(std::string& out, std::string_view bytes) {
  std::int64_t parts[2] = {0, 0};  // seconds, nanoseconds
  while (!bytes.empty()) {
    EncodedField field = take_field(bytes);
    parts[field.number - 1] = static_cast<std::int64_t>(take_varint(field.value));
  }
  out.push_back('"');
  base::append_rfc3339(out, base::Instant(parts[0] * 1'000'000'000 + parts[1]));
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

// An answer has every field but those that are input_only; a request those alone that are set.
enum class Form { kAnswer, kRequest };

class JsonWriter {
 public:
  JsonWriter(std::string& out, Form form) : out_(out), form_(form) {
    constexpr std::size_t kFieldsOfAJob = 128;  // with those of its objects
    found_.reserve(kFieldsOfAJob);
  }

  void append_object(std::string_view bytes, const MessagePlan& plan) {
    const std::size_t first = find_fields(bytes, plan);
    form_ == Form::kAnswer ? append_all(first, plan) : append_found(first, plan);
    found_.resize(first);
  }

 private:
  // The text of an object without values is copied up to each value.
  void append_all(std::size_t first, const MessagePlan& plan) {
    const std::string_view empty = plan.empty_text();
    std::size_t copied = 0;
    for (std::size_t i = 0; i < plan.fields.size(); ++i) {
      const FieldPlan& field = plan.fields[i];
      const std::string_view found = found_[first + i];
      if (found.empty() || field.is_input_only) continue;
      out_.append(empty.substr(copied, field.value_begin - copied));
      append_field(found, field);
      copied = field.value_end;
    }
    out_.append(empty.substr(copied));
  }

  void append_found(std::size_t first, const MessagePlan& plan) {
    char separator = '{';
    for (std::size_t i = 0; i < plan.fields.size(); ++i) {
      const std::string_view found = found_[first + i];
      if (found.empty()) continue;
      out_.push_back(std::exchange(separator, ','));
      append_json_string(out_, plan.fields[i].name);
      out_.push_back(':');
      append_field(found, plan.fields[i]);
    }
    if (separator == '{') out_.push_back('{');
    out_.push_back('}');
  }

  // Puts what the bytes have of each field of the plan on top of found_, and returns where. The
  // elements of a list follow each other there.
  std::size_t find_fields(std::string_view bytes, const MessagePlan& plan) {
    const std::size_t first = found_.size();
    found_.resize(first + plan.fields.size());
    while (!bytes.empty()) {
      const char* const begin = bytes.data();
      const std::size_t place = plan.place_of(take_field(bytes).number);
      if (place == MessagePlan::kNowhere) continue;
      std::string_view& found = found_[first + place];
      found = {found.empty() ? begin : found.data(), bytes.data()};
    }
    return first;
  }

  void append_field(std::string_view found, const FieldPlan& field) {
    if (field.kind == JsonKind::kMap) {
      append_map(found, field);
    } else if (field.is_repeated) {
      append_list(found, field);
    } else {
      append_value(take_field(found).value, field);
    }
  }

  // One value that is not a list or a map.
  void append_value(std::string_view bytes, const FieldPlan& field) {
    switch (field.kind) {
      case JsonKind::kBool:
        out_ += take_varint(bytes) != 0 ? "true" : "false";
        return;
      case JsonKind::kInt32:
        return append_number(out_, static_cast<std::int32_t>(take_varint(bytes)));
      case JsonKind::kInt64:
        return append_number(out_, static_cast<std::int64_t>(take_varint(bytes)));
      case JsonKind::kUint32:
      case JsonKind::kUint64:
        return append_number(out_, take_varint(bytes));
      case JsonKind::kDouble:
        return append_double(out_, bytes);
      case JsonKind::kString:
        return append_json_string(out_, bytes);
      case JsonKind::kBytes:
        out_.push_back('"');
        base::append_base64(out_, bytes);
        out_.push_back('"');
        return;
      case JsonKind::kEnum:
        return append_enum(out_, field, static_cast<int>(take_varint(bytes)));
      case JsonKind::kTimestamp:
        return append_timestamp(out_, bytes);
      case JsonKind::kMessage:
        return append_object(bytes, *field.message);
      case JsonKind::kMap:
        return;
    }
  }

  void append_list(std::string_view found, const FieldPlan& field) {
    char separator = '[';
    while (!found.empty()) {
      EncodedField element = take_field(found);
      // Numbers are packed: the elements stand in one field, without tags.
      const bool is_packed = element.has_length && is_number(field.kind);
      do {
        out_.push_back(std::exchange(separator, ','));
        append_value(is_packed ? take_number(element.value, field.kind) : element.value, field);
      } while (is_packed && !element.value.empty());
    }
    if (separator == '[') out_.push_back('[');
    out_.push_back(']');
  }

  static bool is_number(JsonKind kind) {
    return kind <= JsonKind::kDouble || kind == JsonKind::kEnum;
  }

  static std::string_view take_number(std::string_view& packed, JsonKind kind) {
    if (kind == JsonKind::kDouble) return take_front(packed, sizeof(double));
    std::string_view rest = packed;
    take_varint(rest);
    return take_front(packed, packed.size() - rest.size());
  }

  void append_map(std::string_view found, const FieldPlan& field) {
    std::vector<std::pair<std::string_view, std::string_view>> entries;
    while (!found.empty()) {
      auto& [key, value] = entries.emplace_back();
      for (std::string_view entry = take_field(found).value; !entry.empty();) {
        const EncodedField part = take_field(entry);
        (part.number == 1 ? key : value) = part.value;
      }
    }
    std::ranges::sort(entries);
    char separator = '{';
    for (const auto& [key, value] : entries) {
      out_.push_back(std::exchange(separator, ','));
      append_json_string(out_, key);
      out_.push_back(':');
      append_value(value, field.map_value());
    }
    if (separator == '{') out_.push_back('{');
    out_.push_back('}');
  }

  std::string& out_;
  const Form form_;
  std::vector<std::string_view> found_;  // a stack: the fields of an object above those around it
};

void append_as(std::string& out, const pb::Message& message, const MessagePlan& plan, Form form) {
  // Text that is not UTF-8 is repaired here, so Protobuf need not tell of it.
  const pb::LogSilencer silencer;
  JsonWriter(out, form).append_object(message.SerializePartialAsString(), plan);
}

}  // namespace

void append_json(std::string& out, const pb::Message& message) {
  append_json(out, message, plan_of(*message.GetDescriptor()));
}

void append_json(std::string& out, const pb::Message& message, const MessagePlan& plan) {
  append_as(out, message, plan, Form::kAnswer);
}

void append_request_json(std::string& out, const pb::Message& message) {
  append_as(out, message, plan_of(*message.GetDescriptor()), Form::kRequest);
}

std::string to_json(const pb::Message& message) {
  std::string out;
  append_json(out, message);
  return out;
}

}  // namespace gpu_platform::api
