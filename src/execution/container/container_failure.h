#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "execution/container/engine_calls.h"

namespace gpu_platform::execution {

// What a job whose container could not be made exits with, as with the engines' own tools; 126 and
// 127 mean the program, as everywhere.
inline constexpr int kNoContainer = 125;

// Why there is no container, for its user.
struct ContainerFailure {
  std::string why;
  int exit_code = kNoContainer;
};
template <class T = void>
using ContainerDone = std::expected<T, ContainerFailure>;

inline std::unexpected<ContainerFailure> container_failed(std::string why,
                                                          int exit_code = kNoContainer) {
  return std::unexpected(ContainerFailure{std::move(why), exit_code});
}
inline std::unexpected<ContainerFailure> container_failed(std::string_view what,
                                                          const EngineFailure& failure) {
  return container_failed(fmt::format("{}: {}", what, failure.message));
}

}  // namespace gpu_platform::execution
