#pragma once

#include <cstdint>
#include <string>

#include "cli/client_names.h"

namespace gpu_platform::cli {

struct PortForward {
  std::string job;
  std::uint16_t local = 0;  // 0: one that is free
  std::uint16_t remote = 0;
};

// Listens on 127.0.0.1 and carries each connection to the job's port until Ctrl-C or until the job
// can be entered no more. Prints the address on standard output once it listens. Returns the exit
// code.
int forward_port(Console& console, Client& client, const PortForward& forward);

}  // namespace gpu_platform::cli
