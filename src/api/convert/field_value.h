#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "api/convert/field_plan.h"

// Values on their way into the fields of messages, and the words for those that do not fit.

namespace gpu_platform::api {

// A job's fields have the same names wherever its specification stands: paths leave this out.
inline constexpr std::string_view kSpecPrefix = "spec.";

// The target of one value: a field of a message, or one more element of a list.
struct FieldSlot {
  google::protobuf::Message* message = nullptr;
  const FieldPlan* field = nullptr;
};

const google::protobuf::Reflection& reflection_of(const FieldSlot& slot);

// The rule that a value breaks, as in "must be a string"; nothing if it was put there. The caller
// that knows the path adds it.
using FieldError = std::optional<std::string>;

// Returns what the field takes: "must be true or false".
std::string must_be(const FieldPlan& field);
// Returns the same of a number: "must be a whole number from 0 to 100", with the field's own
// bounds, else those of its type.
std::string number_rule(const FieldPlan& field);

// Each puts the value there if the field is of such a kind and its type can hold it. Limits are for
// check_limits() (message_limits.h).
FieldError put_bool(const FieldSlot& slot, bool value);
FieldError put_double(const FieldSlot& slot, double value);
FieldError put_integer(const FieldSlot& slot, std::int64_t value);
FieldError put_integer(const FieldSlot& slot, std::uint64_t value);
// Also for names of an enumeration, times and Base64. `text` may be moved from.
FieldError put_string(const FieldSlot& slot, std::string& text);

}  // namespace gpu_platform::api
