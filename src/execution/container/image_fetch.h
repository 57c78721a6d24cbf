#pragma once

#include <string>

#include "execution/container/container_failure.h"
#include "execution/container/engine_calls.h"
#include "model/job.h"

namespace gpu_platform::execution {

// Makes the engine have the image, which it fetches from its registry where `pull` says so.
// Blocking, as long as the engine takes. The failure has the registry's words.
ContainerDone<> fetch_image(EngineCalls& engine, const std::string& image, model::ImagePull pull);

}  // namespace gpu_platform::execution
