#pragma once

#include <string>

#include "base/units.h"
#include "execution/container/container_failure.h"
#include "execution/container/engine_calls.h"
#include "execution/container/long_step.h"

namespace gpu_platform::execution {

// How long a job waits for an engine that is away: a restart takes seconds.
inline constexpr base::Duration kEngineTimeout = base::seconds(120);

// Opens the engine. One that does not answer, or is not able to yet, is asked again every second,
// for that long.
ContainerDone<> open_engine(EngineCalls& engine, const std::string& socket, const LongStep& step,
                            base::Duration timeout = kEngineTimeout);

}  // namespace gpu_platform::execution
