#include "kubernetes/json_reader.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <simdjson.h>

namespace gpu_platform::kubernetes {
namespace {

using Json = nlohmann::json;
namespace ondemand = simdjson::ondemand;

constexpr std::string_view kManagedFields = "managedFields";
// Events of a watch; what larger texts need is given back.
constexpr std::size_t kSmallText = std::size_t{64} << 10;
constexpr int kMaxDepth = 1000;  // each level is a call; a user's parameters may have thousands

// A whole number that is too large for both becomes one with a floating point. Of what a user has
// written the server passes on numbers that are too large, halves of surrogates, and any depth: one
// such value must not make the whole text unreadable.
Json number(ondemand::value value) {
  std::uint64_t natural = 0;
  if (value.get_uint64().get(natural) == simdjson::SUCCESS) return natural;
  std::int64_t whole = 0;
  if (value.get_int64().get(whole) == simdjson::SUCCESS) return whole;
  double rounded = 0;
  return value.get_double().get(rounded) == simdjson::SUCCESS ? Json(rounded) : Json();
}

Json text(ondemand::value value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? Json(text) : Json();
}

Json read(ondemand::value value, const JsonFields& fields, int depth);

Json read_object(ondemand::object object, const JsonFields& fields, int depth) {
  Json::object_t members;
  for (auto entry : object) {
    ondemand::field field = std::move(entry).take_value();
    const std::string_view name = field.unescaped_key();
    const JsonFields* wanted = fields.of(name);
    if (wanted == nullptr) continue;
    ondemand::value value = field.value();
    if (name == kManagedFields && value.type() == ondemand::json_type::array) continue;
    members.insert_or_assign(std::string(name), read(value, *wanted, depth + 1));
  }
  return members;
}

Json read_array(ondemand::array array, const JsonFields& fields, int depth) {
  Json::array_t entries;
  for (auto entry : array)
    entries.push_back(read(std::move(entry).take_value(), fields, depth + 1));
  return entries;
}

Json read(ondemand::value value, const JsonFields& fields, int depth) {
  if (depth > kMaxDepth) return nullptr;
  const ondemand::json_type type = value.type();
  switch (type) {
    case ondemand::json_type::object:
      return read_object(value.get_object(), fields, depth);
    case ondemand::json_type::array:
      return read_array(value.get_array(), fields, depth);
    case ondemand::json_type::string:
      return text(value);
    case ondemand::json_type::number:
      return number(value);
    case ondemand::json_type::boolean:
      return bool(value.get_bool());
    case ondemand::json_type::null:
      break;
  }
  if (!value.is_null()) throw simdjson::simdjson_error(simdjson::N_ATOM_ERROR);
  return nullptr;
}

class Reader {
 public:
  Json operator()(std::string_view text, const JsonFields& fields) {
    text_.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    text_.assign(text);
    ondemand::document document = parser_.iterate(text_.data(), text_.size(), text_.capacity());
    Json value = read(document.get_value(), fields, 1);
    const bool is_at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (!is_at_end) throw simdjson::simdjson_error(simdjson::TAPE_ERROR);
    return value;
  }

 private:
  ondemand::parser parser_;
  std::string text_;  // the parser reads beyond its end
};

}  // namespace

JsonFields::JsonFields(std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) add(path);
}

JsonFields JsonFields::within(std::string_view name, JsonFields fields) {
  JsonFields outer;
  outer.members_.emplace_back(name, std::move(fields));
  return outer;
}

void JsonFields::add(std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  auto member = std::ranges::find(members_, name, &std::pair<std::string, JsonFields>::first);
  const bool is_new = member == members_.end();
  if (is_new) member = members_.insert(member, {std::string(name), {}});
  const bool is_whole = dot == std::string_view::npos;
  if (is_whole) {
    member->second = {};
  } else if (is_new || !member->second.are_all()) {
    member->second.add(path.substr(dot + 1));
  }
}

const JsonFields* JsonFields::of(std::string_view member) const {
  if (are_all()) return this;
  const auto found =
      std::ranges::find(members_, member, &std::pair<std::string, JsonFields>::first);
  return found == members_.end() ? nullptr : &found->second;
}

Json read_json(std::string_view text, const JsonFields& fields) {
  thread_local Reader small;
  try {
    return text.size() <= kSmallText ? small(text, fields) : Reader()(text, fields);
  } catch (const simdjson::simdjson_error&) {
    return Json::value_t::discarded;
  }
}

}  // namespace gpu_platform::kubernetes
