#pragma once

#include <memory>
#include <string>

#include "api/identity/certificate_prover.h"
#include "api/rest/server.h"
#include "base/result.h"
#include "config/configuration.h"
#include "listener/host/listener_host.h"
#include "logging/log.h"

namespace gpu_platform::bin {

// Returns what the configuration says of the listener: its addresses, limits and certificate; no
// addresses: it has none.
listener::ListenerHostOptions listener_options(const config::Configuration& configuration);

// Starts the listener at the addresses of the configuration, and has `server` serve the connections
// that it makes. `users`: of the site. `server`, `certificates` and `log` outlive it. Null: there
// are no addresses.
base::Result<std::unique_ptr<listener::ListenerHost>> open_network_listener(
    const config::Configuration& configuration, const std::string& program, api::Server& server,
    api::CertificateProver& certificates, const model::UserRange& users,
    host::UserDirectory& directory, logging::Log& log);

}  // namespace gpu_platform::bin
