#pragma once

#include "client/client.h"
#include "client/exit_code.h"
#include "client/session.h"

// The names of room client that every command uses.

namespace gpu_platform::cli {

using client::BackOff;
using client::Called;
using client::Client;
using client::Console;
using client::Failure;
using client::name_at;
using client::ProcessEnvironment;
using client::time_of;
using enum client::ExitCode;

}  // namespace gpu_platform::cli
