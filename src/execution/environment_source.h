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
  // ref has none. kNotFound and kDataLoss: it is lost; another error may go away.
  virtual base::Result<std::string> environment(std::string_view ref) const = 0;
};

inline constexpr std::string_view kEnvironmentLostDetail =
    "the store has lost the environment variables that it was submitted with";
inline bool is_environment_lost(const base::Error& error) {
  return error.code == base::ErrorCode::kNotFound || error.code == base::ErrorCode::kDataLoss;
}

}  // namespace gpu_platform::execution
