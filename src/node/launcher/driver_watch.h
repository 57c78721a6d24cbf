#pragma once

#include <string>

#include "node/identity.h"
#include "node/protocol.h"

namespace gpu_platform::node {

struct DriverWatch {
  const RunDriver* order = nullptr;
  std::string program;             // of gpu-platform-driver
  const Identity* user = nullptr;  // that it becomes first; null: none
  int socket = -1;                 // for the answer
  int lock = -1;                   // held while the program is at work on real GPUs
};

// Runs the program in a child and kills it with all that it has started at the deadline, and a
// check as soon as the other end of the socket is shut: another job may have its GPUs by then.
// Whatever its end, an answer was sent when this process ends. Called in a process of its own,
// where signals are blocked; a program that no signal ends is left to the kernel.
[[noreturn]] void run_driver_watch(const DriverWatch& watch);

}  // namespace gpu_platform::node
