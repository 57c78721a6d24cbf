#pragma once

#include <string>

#include "base/result.h"
#include "kubernetes/kubeconfig.h"

// The server that requests go to, as libcurl wants it said, and in parts for connections that are
// not its own.

namespace gpu_platform::kubernetes {

struct Endpoint {
  std::string base_url;     // without a slash at its end; a path follows
  std::string host_header;  // empty: the one of the URL
  std::string connect_to;   // CURLOPT_CONNECT_TO; empty: as the URL says
  std::string ca_pem;       // empty: the host's authorities
  bool skips_verification = false;
  std::string proxy_url;  // empty: none, also if the environment names one

  // The parts.
  bool is_tls = false;
  std::string host;          // without brackets
  std::string port;          // a number
  std::string authority;     // "HOST:PORT" as a URL has it
  std::string path;          // before that of a request; without a slash at its end
  std::string checked_name;  // what the server's certificate must be for; without brackets
};

// Errors name the key of the access that is wrong, and never show a secret. Credentials that would
// go over the network in the clear are refused.
base::Result<Endpoint> endpoint_of(const ClusterAccess& access);

}  // namespace gpu_platform::kubernetes
