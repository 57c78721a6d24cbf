#pragma once

#include <string>

// The verbs that are done here and not by the daemon's client. Each gets its words as main would
// (argv[0] is the verb) and returns the exit code.

namespace gpu_platform::bin {

int serve_main(int argc, char** argv);
int store_main(int argc, char** argv);
int doctor_main(int argc, char** argv);
int simulate_main(int argc, char** argv);

// /var/lib/gpu-platform for root, $XDG_STATE_HOME/gpu-platform (or ~/.local/state/gpu-platform) for
// others.
std::string default_data_dir();
// /run/gpu-platform/gpu-platform.sock for root, $XDG_RUNTIME_DIR/gpu-platform.sock for others.
std::string default_socket();

}  // namespace gpu_platform::bin
