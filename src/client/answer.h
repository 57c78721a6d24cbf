#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include "base/units.h"

// Reading the daemon's documents into the messages that they were written from. Lenient on purpose,
// because the daemon may be older or newer: a field that is unknown, null or of another type is
// absent, never an error. api/convert/json_writer.h is the other side.

namespace gpu_platform::client {

// Reads one JSON object into an empty message. False if the text is none.
bool read_document(std::string_view text, google::protobuf::Message& message);

template <class Message>
std::optional<Message> message_of(std::string_view text) {
  std::optional<Message> message(std::in_place);
  if (!read_document(text, *message)) message.reset();
  return message;
}

// Returns the name of an enumeration's value as the daemon wrote it, "QUEUED", also one that only a
// newer daemon knows; empty if the field is absent. `field` is the number of a field of the message
// that is an enumeration and no list: v1::Job::kStateFieldNumber.
std::string name_at(const google::protobuf::Message& message, int field);

// Returns the time in a field, or nothing if the field is absent: no time of the daemon's is the
// beginning of 1970. Nothing, too, for a time that an Instant does not hold.
std::optional<base::Instant> time_of(const google::protobuf::Timestamp& field);

// Returns the entries of a map in the order of their keys, as its JSON has them.
template <class Map>
std::map<typename Map::key_type, typename Map::mapped_type> sorted(const Map& map) {
  return {map.begin(), map.end()};
}

}  // namespace gpu_platform::client
