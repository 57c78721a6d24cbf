#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {

// Signing in at an OpenID Connect issuer from a terminal, with a browser anywhere: the device
// authorization grant (RFC 8628). The issuer must speak TLS 1.3.
struct DeviceGrant {
  std::string issuer;     // https://HOST[:PORT][/PATH]
  std::string client_id;  // of this platform at the issuer
  std::string scope = "openid profile email";
  std::string authorities;  // the PEM file that the issuer's certificate must come from; empty: the
                            // system's
};

// Says on stderr where to go and what to enter, and waits until the person has done so there.
// Returns the ID token, or the access token of an issuer that gives none; nothing after Ctrl-C.
// kInvalidArgument names the option; kPermissionDenied: the person or the issuer refused;
// kUnavailable: the issuer does not answer as it should, the message says what came.
base::Result<std::optional<std::string>> device_token(const DeviceGrant& grant, Console& console);

}  // namespace gpu_platform::cli
