#include "api/convert/json_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/convert/field_plan.h"
#include "api/convert/field_value.h"
#include "api/convert/text_forms.h"
#include "base/suggest.h"

namespace gpu_platform::api {

namespace {

namespace pb = google::protobuf;

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
    return put([&](const FieldSlot& slot) { return put_bool(slot, value); });
  }
  bool number_integer(std::int64_t value) {
    return put([&](const FieldSlot& slot) { return put_integer(slot, value); });
  }
  bool number_unsigned(std::uint64_t value) {
    return put([&](const FieldSlot& slot) { return put_integer(slot, value); });
  }
  bool number_float(double value, const std::string&) {
    return put([&](const FieldSlot& slot) -> FieldError {
      if (slot.field->kind == JsonKind::kDouble) return put_double(slot, value);
      return is_number(slot.field->kind) ? number_rule(*slot.field) : must_be(*slot.field);
    });
  }
  bool string(std::string& value) {
    return put([&](const FieldSlot& slot) { return put_string(slot, value); });
  }
  bool binary(nlohmann::json::binary_t&) { return reject("the body must be JSON text"); }

  bool start_object(std::size_t) {
    if (frames_.empty()) {
      if (is_complete_) return reject("the body must be one JSON object");
      frames_.push_back(
          {.kind = Frame::kObject, .message = &root_, .plan = &plan_of(*root_.GetDescriptor())});
      return true;
    }
    const FieldSlot slot = next_slot();
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
    const FieldSlot slot = next_slot();
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
  FieldSlot next_slot() {
    const Frame& frame = frames_.back();
    return {frame.message, frame.field};
  }
  // In an object, a field that is a list takes nothing else.
  bool expects_list() const {
    const Frame& frame = frames_.back();
    return frame.kind == Frame::kObject && frame.field->is_repeated;
  }
  std::string expectation(const FieldSlot& slot) const {
    if (expects_list()) return "must be a list";
    if (frames_.back().kind == Frame::kMap) return must_be(slot.field->map_value());
    return must_be(*slot.field);
  }

  template <class Put>
  bool put(Put&& put_value) {
    if (frames_.empty()) return reject("the body must be a JSON object");
    FieldSlot slot = next_slot();
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
  const FieldSlot slot{&message, plan};
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

}  // namespace gpu_platform::api
