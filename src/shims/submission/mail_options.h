#pragma once

#include <string>
#include <vector>

#include "gpu_platform/v1/jobs.pb.h"
#include "shims/options/option_table.h"

// --mail-type and --mail-user: the events and the address for the site's notification command.
// Pure.

namespace gpu_platform::shims {

// Puts both into `spec` if the site has such a command. Returns what is ignored, in words.
std::vector<std::string> put_mail(const Settings& settings, bool can_notify, v1::JobSpec& spec);

}  // namespace gpu_platform::shims
