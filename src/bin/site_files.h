#pragma once

#include <memory>
#include <string>

#include "api/identity/certificate_prover.h"
#include "api/identity/web_token_prover.h"
#include "base/result.h"
#include "config/configuration.h"
#include "config/network_file.h"

// The files that a configuration names, read. An error names the key, the file and what is wrong.

namespace gpu_platform::bin {

// Returns the places of nodes of cluster.network_file; none if there is no such file to read.
base::Result<config::NetworkPlaces> read_network_places(const config::Configuration& configuration);

// Returns what proves tokens by the keys of access.openid.keys; it reads them again when they
// change. Null: the site trusts no issuer.
base::Result<std::unique_ptr<api::WebTokenProver>> read_web_token_keys(
    const config::Configuration& configuration);

// Has `certificates` take the authorities of api.tls.client_ca, as the file has them now. After an
// error those before stay in force.
base::Status read_authorities(const config::Configuration& configuration,
                              api::CertificateProver& certificates);

}  // namespace gpu_platform::bin
