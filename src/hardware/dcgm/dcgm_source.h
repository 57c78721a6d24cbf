#pragma once

#include <string>
#include <vector>

// Where DCGM is, and what is wanted of it.

namespace gpu_platform::hardware {

struct DcgmSource {
  std::vector<std::string> libraries;  // the first that is there is taken
  // A host engine that runs ("localhost:5555"). Where none answers, or this is empty, the library
  // starts one in this process.
  std::string address;
};

// A GPU of which values are wanted.
struct DcgmGpu {
  std::string uuid;
  // Its activity, too. That takes the GPU's counters, which a profiler then does not get.
  bool wants_activity = false;

  friend bool operator==(const DcgmGpu&, const DcgmGpu&) = default;
};

}  // namespace gpu_platform::hardware
