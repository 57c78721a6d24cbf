#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/units.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {

struct PortForward {
  std::string job;
  std::uint16_t local = 0;  // 0: one that is free
  std::uint16_t remote = 0;
  bool or_any_local = false;  // if `local` is taken: one that is free
};

// What a command does beside forwarding. Called on the same thread; calls of the daemon may block
// the connections for a moment.
struct ForwardEvents {
  // Told once it listens; null: the address is printed on standard output.
  std::function<void(std::uint16_t local)> listening;
  // Readable after Ctrl-C, and what to do then; false leaves. -1: Ctrl-C leaves.
  int interrupt_fd = -1;
  std::function<bool()> interrupted;
  // Asked again and again; true leaves. Null: not asked.
  std::function<bool()> is_over;
};

// Listens on 127.0.0.1 and carries each connection to the job's port until Ctrl-C or until the job
// can be entered no more. Returns the exit code.
int forward_port(Console& console, Client& client, const PortForward& forward,
                 const ForwardEvents& events = {});

// Whether a program in the job listens on the port now.
Called<bool> answers_on_port(Client& client, const std::string& job, std::uint16_t port);

}  // namespace gpu_platform::cli
