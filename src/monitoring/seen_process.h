#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/ids.h"

namespace gpu_platform::monitoring {

// A process that a reading shows on a GPU.
struct SeenProcess {
  std::uint32_t pid = 0;
  bool has_ended = false;  // or it lives where this host cannot see it
  // Its attempt. The owner of an ended process is remembered from the readings before; none: it is
  // of no job, or was never seen alive.
  std::optional<model::AttemptId> attempt;
  bool is_server = false;  // an MPS server of ours: of no attempt, and not unmanaged

  friend bool operator==(const SeenProcess&, const SeenProcess&) = default;
};

// By UUID of the GPU. A GPU whose reading says nothing of processes is missing.
using SeenProcesses = std::map<std::string, std::vector<SeenProcess>, std::less<>>;

}  // namespace gpu_platform::monitoring
