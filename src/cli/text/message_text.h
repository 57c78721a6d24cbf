#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/repeated_field.h>

#include "cli/client_names.h"
#include "cli/text/text.h"
#include "client/answer.h"

// Fields of the daemon's messages as text, and lists of them in an order for people.

namespace gpu_platform::cli {

// The state of a job, an attempt, a GPU or a node as the daemon wrote it: "RUNNING".
template <class Message>
std::string state_name(const Message& message) {
  return name_at(message, Message::kStateFieldNumber);
}

// A value that the daemon may not know, and how it is written; empty if it is not known.
template <class Value>
std::string if_known(bool is_known, const Value& value,
                     fmt::format_string<const Value&> form = "{}") {
  return is_known ? fmt::format(form, value) : std::string();
}

// A time as local_time() and short_time() write it; empty if the field is not set.
inline std::string time_text(const google::protobuf::Timestamp& field) {
  const auto at = time_of(field);
  return at ? local_time(*at) : std::string();
}
inline std::string minute_of(const google::protobuf::Timestamp& field) {
  const auto at = time_of(field);
  return at ? short_time(*at) : std::string();
}

// A time as a number to sort by; 0 if the field is not set.
inline double time_rank(const google::protobuf::Timestamp& field) {
  const auto at = time_of(field);
  return at ? static_cast<double>(at->unix_ns()) : 0;
}

// Signed, as sizes and differences are shown.
constexpr std::int64_t as_signed(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

using TextList = google::protobuf::RepeatedPtrField<std::string>;

inline std::vector<std::string> texts_of(const TextList& list) {
  return {list.begin(), list.end()};
}

// Sorts a list by the name of a node, "dgx-9" before "dgx-10"; equal ones stay as they came.
template <class Message, class NodeOf>
void put_in_node_order(google::protobuf::RepeatedPtrField<Message>& list, NodeOf&& node_of) {
  std::vector<std::pair<decltype(split_name("")), Message*>> keyed;
  for (Message& message : list) keyed.emplace_back(split_name(node_of(message)), &message);
  std::ranges::stable_sort(keyed, {}, [](const auto& pair) -> const auto& { return pair.first; });
  auto place = list.pointer_begin();
  for (const auto& [name, message] : keyed) *place++ = message;
}

}  // namespace gpu_platform::cli
