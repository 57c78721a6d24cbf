#pragma once

#include "cli/cli.h"
#include "config/configuration.h"

// What a configuration needs of this host, for `config check`.

namespace gpu_platform::bin {

// Finds what `serve` would end with: files, keys and certificates that cannot be read or do not
// fit, and ranges of users. Users that the configuration names and this host does not know are
// notes: they may get an account later. So are files that the caller may not read, which another
// user than root may check. Waits for the user database, at most some seconds. Any thread.
cli::SiteFindings check_site(const config::Configuration& configuration);

}  // namespace gpu_platform::bin
