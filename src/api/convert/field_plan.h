#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

// The facts about a message type that the JSON reader and writer need, computed once from its
// descriptor: reflection (options, enum names, presence) is too slow to use for every value.

namespace gpu_platform::api {

// The form of a value in JSON.
enum class JsonKind : std::uint8_t {
  kBool,
  kInt32,
  kInt64,
  kUint32,
  kUint64,
  kDouble,
  kString,
  kBytes,      // base64
  kEnum,       // upper-case name without the type's prefix
  kTimestamp,  // RFC 3339
  kMessage,
  kMap,  // string keys; see map_value
};

struct MessagePlan;

struct FieldLimits {
  std::optional<double> least;
  std::optional<double> most;
  std::uint32_t max_bytes = 0;  // 0: no bound, here and below
  std::uint32_t max_items = 0;
  std::uint32_t max_key_bytes = 0;
  bool not_empty = false;
  std::string pattern;  // for the document; empty: none
};

struct EnumName {
  int number = 0;
  std::string name;  // "QUEUED"
};

struct FieldPlan {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string name;
  JsonKind kind = JsonKind::kString;
  bool is_repeated = false;  // a list; never true of maps
  bool has_presence = false;
  bool is_secret = false;
  bool is_input_only = false;
  bool is_limited = false;
  std::size_t value_begin = 0;  // of its value in the plan's empty_text(), and its end
  std::size_t value_end = 0;
  FieldLimits limits;
  std::vector<EnumName> enum_names;      // without the unspecified value, by number
  const MessagePlan* message = nullptr;  // kMessage
  // kMap: plan of the entry's fields "key" (1, a string) and "value" (2).
  const MessagePlan* map_entry = nullptr;
  const FieldPlan& map_value() const;
};

struct MessagePlan {
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  const google::protobuf::Descriptor* descriptor = nullptr;
  std::vector<FieldPlan> fields;  // in declaration order; made by add()

  FieldPlan& add(FieldPlan field);
  // Returns null if there is none of that name.
  const FieldPlan* find(std::string_view name) const;
  // Returns the place in `fields` of the field with this number, or kNowhere.
  std::size_t place_of(std::size_t number) const {
    return number < places_.size() ? places_[number] : kNowhere;
  }
  // Returns the object in which every field is absent, without those that are input_only:
  // {"name":null,"labels":{}}.
  std::string_view empty_text() const { return empty_text_; }

 private:
  std::vector<std::size_t> places_;  // by number
  std::string empty_text_ = "{}";
};

// Returns the plan of a message type, which lives as long as the program. Safe from any thread.
const MessagePlan& plan_of(const google::protobuf::Descriptor& descriptor);

// Returns the JSON name of a value, "QUEUED", or an empty text for the unspecified one; and back.
std::string_view enum_name(const FieldPlan& field, int number);
std::optional<int> enum_number(const FieldPlan& field, std::string_view name);
// Returns "HELD, PENDING, QUEUED", for messages about allowed values.
std::string allowed_names(const FieldPlan& field);

}  // namespace gpu_platform::api
