#pragma once

#include <string>

#include "base/result.h"
#include "outbound/channel.h"

namespace gpu_platform::outbound {

// Where a URL leads, as libcurl reads it.
struct Address {
  std::string scheme;  // lower case
  std::string host;    // without brackets
  bool is_this_machine = false;
};

// kInvalidArgument: it is no URL, or has a user or password in it. Errors show no part of the URL.
base::Result<Address> parse_address(const std::string& url);

// Whether the channel may send to this URL: its scheme fits the kind, and http leads to this
// machine alone and by no proxy, unless the channel allows plain text.
base::Result<Address> check_address(const Channel& channel, const std::string& url);

}  // namespace gpu_platform::outbound
