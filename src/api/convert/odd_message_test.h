#pragma once

#include <cstdint>

#include <google/protobuf/message.h>

#include "base/prng.h"

namespace gpu_platform::api {

struct Oddness {
  std::uint64_t percent = 50;  // of the fields that are filled
  int depth = 4;               // of messages in messages
  bool is_sayable = false;     // no values that JSON has no word for
};

// Fills fields of a message with the values that are most likely to be written or read wrongly;
// lists get up to three elements.
void fill_oddly(google::protobuf::Message& message, base::Prng& random, const Oddness& oddness);

}  // namespace gpu_platform::api
