#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "listener/rest/request.h"

namespace gpu_platform::listener {

// The site's rules for requests. No input or output of its own.
struct Policy {
  std::vector<std::string> host_names;   // in lower case; empty: any
  std::vector<std::string> web_origins;  // empty: none
};

// Returns whether a browser says that a page of another site has caused the request. Such a page
// can have the browser send what it sends by itself: certificates and cookies. A page that the site
// allows is none of another site.
bool is_from_elsewhere(const Request& request, const Policy& policy);

// Returns why the request goes no further; its body need not be there yet. `has_certificate`: the
// client has shown one, so the request needs no token.
std::optional<Refusal> judge(const Request& request, const std::string& host, const Policy& policy,
                             bool has_certificate = false);

// The methods that are let through: "GET, HEAD, …".
std::string known_methods();

// An answer that the listener gives itself.
struct OwnAnswer {
  int status = 200;
  std::string content_type;  // empty: no body
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;
};
// The answer to a request that the daemon need not see: a web page's question whether it may call,
// and, from a client without a credential, whether this door is open.
std::optional<OwnAnswer> own_answer(const Request& request);

// Fields that every answer to the request gets.
std::vector<std::pair<std::string, std::string>> fields_for(const Request& request);

}  // namespace gpu_platform::listener
