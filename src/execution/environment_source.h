#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpu_platform::execution {

// Gives an engine the environment that a job was submitted with. The values are secrets: they go to
// the job and nowhere else. Safe from any thread; takes the time of a local query.
class EnvironmentSource {
 public:
  virtual ~EnvironmentSource() = default;
  // Returns what JobSpec::environment_ref names: NAME=VALUE strings, each ended by NUL. An empty
  // ref has none.
  virtual base::Result<std::string> environment(std::string_view ref) const = 0;
};

}  // namespace gpu_platform::execution
