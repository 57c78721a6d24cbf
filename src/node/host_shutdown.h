#pragma once

#include <string_view>

namespace gpu_platform::node {

// Returns true once the host's first process has become systemd's last program, which sends SIGTERM
// and then SIGKILL to every process before it powers off or reboots. A process that ends from then
// on was ended by the shutdown, however it handles the signal. Returns false under any other first
// process.
bool host_is_shutting_down();

// The same from the text of /proc/1/comm.
bool is_shutdown_program(std::string_view comm);

}  // namespace gpu_platform::node
