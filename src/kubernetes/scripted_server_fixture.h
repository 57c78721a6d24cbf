#pragma once

#include <signal.h>

#include "base/units.h"
#include "http/testing/certificates.h"
#include "http/testing/scripted_server.h"

// What this room's tests use of the scripted server.

namespace gpu_platform::kubernetes {

using http::make_authority;
using http::make_certificate;
using http::ScriptedServer;
using http::SeenRequest;
using http::TestCertificate;
using http::Wire;

// How long a test waits for what must come.
inline constexpr base::Duration kTimeout = base::seconds(20);

// As the daemon does: libcurl writes to connections that the server has closed.
inline const auto kFormerPipeHandler = ::signal(SIGPIPE, SIG_IGN);

}  // namespace gpu_platform::kubernetes
